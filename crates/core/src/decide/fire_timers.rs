//! FireTimers: what is due without anybody asking. The sweeper sends it at `State::next_timer`.

use super::draft::Draft;
use super::{RECORD_EVENTS, Ruling, advance, fail_node};
use crate::event::{ErrorInfo, NodeReady};
use crate::ids::NodeId;
use crate::outcome::{Outcome, Reason};
use crate::plan::{FailPolicy, TaskSpec};
use crate::state::Phase;

/// A failure takes two events, and what depends on it more; the next sweep sees to the rest.
const MOST: usize = RECORD_EVENTS / 4;

pub(super) fn decide(draft: &mut Draft<'_>) -> Ruling {
    match draft.state.phase {
        Phase::Absent => return Err(Reason::UnknownExecution(draft.state.id.clone())),
        Phase::Created | Phase::Canceling => return Ok(Outcome::Unchanged),
        Phase::Started | Phase::Failing => {}
        Phase::Completed | Phase::Failed | Phase::Canceled => {
            return Ok(Outcome::AlreadyEnded(draft.state.phase.status()));
        }
    }
    let overdue = overdue(draft);
    for (id, error) in overdue {
        fail_node::fail_attempt(draft, &id, error, None, None);
    }
    for node_id in rested(draft) {
        draft.emit(NodeReady { node_id, extra: Default::default() });
    }
    advance::advance(draft);
    Ok(if draft.written() == 0 { Outcome::Unchanged } else { Outcome::Accepted })
}

/// Attempts past their deadline that no worker watches, as many as one record has room for.
fn overdue(draft: &Draft<'_>) -> Vec<(NodeId, ErrorInfo)> {
    let state = &*draft.state;
    let due = state.open.deadlines.iter().take_while(|(at, _)| *at <= draft.at).take(MOST);
    let timed_out = |number: &_| {
        let (id, node) = state.node(*number)?;
        Some((id.clone(), state.task_of(node)?.timed_out()))
    };
    due.filter_map(|(_, number)| timed_out(number)).collect()
}

/// Retries whose pause is over while nobody holds the execution; a worker that holds it looks at its own clock.
fn rested(draft: &Draft<'_>) -> Vec<NodeId> {
    let state = &*draft.state;
    if state.phase != Phase::Started || state.claim.is_some() {
        return Vec::new();
    }
    let due = state.open.resting.iter().take_while(|(at, _)| *at <= draft.at).take(MOST);
    due.filter_map(|(_, number)| Some(state.node(*number)?.0.clone())).collect()
}

impl TaskSpec {
    /// The error of an attempt that took longer than it may.
    pub fn timed_out(&self) -> ErrorInfo {
        let limit = self.policy.timeout.unwrap_or_default().as_seconds();
        // The original names the task only where its timeout ends the run.
        let who = match self.policy.fail {
            FailPolicy::Stop => format!("Task '{}'", self.name),
            FailPolicy::Isolate => "Task".to_owned(),
        };
        ErrorInfo::new("TIMEOUT", format!("{who} exceeded timeout of {limit}s"))
    }
}
