//! ReleaseExecution: the worker lets go, because everything waits for somebody else or because it stops.

use super::draft::Draft;
use super::{Ruling, advance, ending, guard};
use crate::command::ReleaseExecution;
use crate::outcome::{Outcome, Reason};
use crate::state::Phase;

pub(super) fn decide(draft: &mut Draft<'_>, command: &ReleaseExecution) -> Ruling {
    match draft.state.phase {
        Phase::Absent => return Err(Reason::UnknownExecution(draft.state.id.clone())),
        Phase::Created => return Err(Reason::NotStarted),
        Phase::Started | Phase::Failing | Phase::Canceling => {}
        Phase::Completed | Phase::Failed | Phase::Canceled => {
            return Ok(Outcome::AlreadyEnded(draft.state.phase.status()));
        }
    }
    guard::from_owner(draft)?;
    if command.parked && !draft.state.open.in_workers.is_empty() {
        return Err(Reason::TasksRunning);
    }
    let unwanted = ending::unwanted(draft);
    draft.release();
    ending::cancel_unwanted(draft, unwanted);
    advance::advance(draft);
    Ok(Outcome::Accepted)
}
