//! ReleaseExecution: the worker lets go, because everything waits for somebody else or because it stops.

use super::draft::Draft;
use super::{Verdict, ending, guard};
use crate::command::ReleaseExecution;
use crate::outcome::{Outcome, Reason};
use crate::state::{Phase, State};

pub(super) fn decide(draft: &mut Draft<'_>, command: &ReleaseExecution) -> Verdict {
    match draft.state.phase {
        Phase::Absent => return Err(Reason::UnknownExecution(draft.state.id.clone())),
        Phase::Created => return Err(Reason::NotStarted),
        Phase::Started | Phase::Failing | Phase::Canceling => {}
        Phase::Completed | Phase::Failed | Phase::Canceled => {
            return Ok(Outcome::AlreadyEnded(draft.state.phase.status()));
        }
    }
    guard::from_owner(draft)?;
    if command.parked && runs_worker_task(draft.state) {
        return Err(Reason::TasksRunning);
    }
    draft.release();
    ending::conclude(draft);
    Ok(Outcome::Accepted)
}

fn runs_worker_task(state: &State) -> bool {
    let mut running = state.open.running.iter().filter_map(|number| state.node(*number));
    running.any(|(_, node)| state.is_worker_node(node))
}
