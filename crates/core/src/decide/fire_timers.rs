//! FireTimers: what is due without anybody asking. The sweeper sends it at `State::next_timer`.

use super::draft::Draft;
use super::{Verdict, advance, fail_node, guard};
use crate::event::ErrorInfo;
use crate::ids::NodeId;
use crate::outcome::{Effect, Outcome, Reason};
use crate::plan::{FailPolicy, TaskSpec};
use crate::state::Phase;

pub(super) fn decide(draft: &mut Draft<'_>) -> Verdict {
    match draft.state.phase {
        Phase::Absent => return Err(Reason::UnknownExecution(draft.state.id.clone())),
        Phase::Created | Phase::Canceling => return Ok(Outcome::Unchanged),
        Phase::Started | Phase::Failing => {}
        Phase::Completed | Phase::Failed | Phase::Canceled => {
            return Ok(Outcome::AlreadyEnded(draft.state.phase.status()));
        }
    }
    guard::exists(draft.state)?;
    let overdue = overdue(draft);
    for (id, error) in &overdue {
        fail_node::fail_attempt(draft, id, error.clone(), None, None);
    }
    if !overdue.is_empty() {
        advance::advance(draft);
    }
    // The pause of a retry may be over while the execution is parked: somebody has to look at it again.
    if draft.state.claim.is_none() && draft.state.wants_worker(draft.at) {
        let tag = draft.state.origin.as_ref().and_then(|origin| origin.tag.clone());
        draft.effect(Effect::EnqueueJob(tag));
    }
    Ok(if overdue.is_empty() { Outcome::Unchanged } else { Outcome::Accepted })
}

/// Attempts past their deadline that no worker watches.
fn overdue(draft: &Draft<'_>) -> Vec<(NodeId, ErrorInfo)> {
    let state = &*draft.state;
    let is_overdue = |number| {
        let (id, node) = state.node(number)?;
        let due = state.deadline_of(node).is_some_and(|deadline| deadline <= draft.at);
        (due && !state.is_worker_node(node)).then(|| Some((id.clone(), state.task_of(node)?.timed_out())))?
    };
    state.open.running.iter().filter_map(|number| is_overdue(*number)).collect()
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
