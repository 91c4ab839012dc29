//! Why an execution is where it is, as far as its log knows: in short sentences for people, with a code for programs. Whether there
//! is a worker for it is not known here.

use serde::Serialize;

use crate::ids::NodeId;
use crate::state::{NodeNumber, NodeState, Phase, State};
use crate::time::Timestamp;

/// So many nodes are named; nobody reads more.
const MOST_NODES: usize = 20;

/// One reason.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cause {
    /// What it is.
    pub code: CauseCode,
    /// The same in a sentence.
    pub message: String,
    /// The node that it is about.
    pub node_id: Option<NodeId>,
    /// Since when, in unix seconds.
    pub since: Option<f64>,
    /// Until when, if that is known.
    pub until: Option<f64>,
}

/// What a reason is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CauseCode {
    /// It was created and not started.
    NotStarted,
    /// A worker has to take it.
    Queued,
    /// There is no worker that would.
    NoWorker,
    /// All that would have their hands full.
    WorkersBusy,
    /// It, or a node of it, runs.
    Running,
    /// A node failed and rests before its next attempt.
    RetryPause,
    /// A node goes on when somebody answers.
    WaitingForPerson,
    /// Nothing is left for a worker to do until then.
    Parked,
    /// It is certain to fail; what runs may finish.
    Failing,
    /// Somebody wants it to stop.
    Cancelling,
    /// The worker that holds it has not been heard of late.
    Stale,
    /// It failed.
    Failed,
    /// It ended well.
    Completed,
    /// It was canceled.
    Cancelled,
}

impl Cause {
    /// A reason without a place and a time.
    pub fn new(code: CauseCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), node_id: None, since: None, until: None }
    }

    /// Since then.
    #[must_use]
    pub fn since(mut self, at: Option<Timestamp>) -> Self {
        self.since = at.map(Timestamp::as_unix_seconds);
        self
    }

    fn until(mut self, at: Timestamp) -> Self {
        self.until = Some(at.as_unix_seconds());
        self
    }

    fn of(mut self, node: &NodeId) -> Self {
        self.node_id = Some(node.clone());
        self
    }
}

/// Why an execution is where it is, the most telling first; nothing about one that does not exist.
pub fn causes(state: &State) -> Vec<Cause> {
    use CauseCode::{Cancelled, Cancelling, Completed, Failed, Failing, NotStarted};
    match state.phase {
        Phase::Absent => Vec::new(),
        Phase::Created => vec![Cause::new(NotStarted, "it was created and nobody has started it")],
        Phase::Started => under_way(state),
        Phase::Failing => {
            let mut causes = vec![failure(state, Failing, "it fails as soon as what runs has ended")];
            causes.extend(running(state));
            causes
        }
        Phase::Canceling => {
            let since = state.cancel.as_ref().map(|cancel| cancel.at);
            let mut causes =
                vec![Cause::new(Cancelling, canceled_by(state, "is being canceled")).since(since)];
            causes.extend(running(state));
            causes
        }
        Phase::Completed => vec![Cause::new(Completed, "it ended well").since(state.ended_at)],
        Phase::Failed => vec![failure(state, Failed, "it failed").since(state.ended_at)],
        Phase::Canceled => {
            vec![Cause::new(Cancelled, canceled_by(state, "was canceled")).since(state.ended_at)]
        }
    }
}

fn under_way(state: &State) -> Vec<Cause> {
    use CauseCode::{Parked, Queued, RetryPause, Running, WaitingForPerson};
    let mut causes = Vec::new();
    for (id, node) in named(state, state.open.waiting.iter().copied()) {
        let since = node.waiting.as_ref().map(|waiting| waiting.since);
        let message = format!("{id} waits for somebody's answer");
        causes.push(Cause::new(WaitingForPerson, message).of(id).since(since));
    }
    for (until, number) in state.open.resting.iter().take(MOST_NODES) {
        if let Some((id, node)) = state.node(*number) {
            let message = format!("{id} failed {} times and is tried again", node.failures);
            causes.push(Cause::new(RetryPause, message).of(id).until(*until));
        }
    }
    causes.extend(running(state));
    if state.claim.is_none() && state.wants_worker() {
        causes.push(Cause::new(Queued, "it is in the queue and waits for a worker").since(state.updated_at));
    } else if state.claim.is_none() && !state.open.waiting.is_empty() && state.open.running.is_empty() {
        causes.push(Cause::new(Parked, "nothing is left to do until then, and it holds no worker"));
    } else if causes.is_empty() {
        causes.push(Cause::new(Running, "a worker has it in hand").since(state.active_since));
    }
    causes
}

fn running(state: &State) -> impl Iterator<Item = Cause> {
    named(state, state.open.running.iter().copied()).map(|(id, node)| {
        let who = node.worker.as_ref().map_or_else(String::new, |worker| format!(" on {worker}"));
        let cause = Cause::new(CauseCode::Running, format!("{id} runs{who}, attempt {}", node.attempt.0));
        cause.of(id).since(node.attempt_started_at)
    })
}

fn named(
    state: &State,
    numbers: impl Iterator<Item = NodeNumber>,
) -> impl Iterator<Item = (&NodeId, &NodeState)> {
    numbers.take(MOST_NODES).filter_map(|number| state.node(number))
}

fn failure(state: &State, code: CauseCode, otherwise: &str) -> Cause {
    let Some(failure) = &state.failure else { return Cause::new(code, otherwise) };
    let node = failure.node.as_ref().map_or_else(String::new, |node| format!(": {node}"));
    let error = failure.error.message.as_ref().map_or_else(String::new, |error| format!(": {error}"));
    let mut cause = Cause::new(code, format!("{otherwise}{node}{error}"));
    cause.node_id.clone_from(&failure.node);
    cause.since(Some(failure.at))
}

fn canceled_by(state: &State, what: &str) -> String {
    let cancel = state.cancel.as_ref();
    let who = super::requested_by(cancel.and_then(|cancel| cancel.by.as_ref()));
    let by = who.map_or_else(String::new, |who| format!(" by {who}"));
    let why = cancel.and_then(|cancel| cancel.reason.as_ref());
    let why = why.map_or_else(String::new, |why| format!(": {why}"));
    format!("it {what}{by}{why}")
}
