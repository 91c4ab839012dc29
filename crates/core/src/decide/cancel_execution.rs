//! CancelExecution: always taken while an execution has not ended.

use super::draft::Draft;
use super::{Ruling, ending};
use crate::command::CancelExecution;
use crate::outcome::{Outcome, Reason};
use crate::state::Phase;

pub(super) fn decide(draft: &mut Draft<'_>, command: &CancelExecution) -> Ruling {
    match draft.state.phase {
        Phase::Absent => Err(Reason::UnknownExecution(draft.state.id.clone())),
        Phase::Created | Phase::Started | Phase::Failing => {
            ending::cancel(draft, command.reason.as_deref());
            Ok(Outcome::Accepted)
        }
        Phase::Canceling => Ok(Outcome::AlreadyCanceling),
        Phase::Canceled => Ok(Outcome::AlreadyCanceled),
        Phase::Completed | Phase::Failed => Err(Reason::Ended(draft.state.phase.status())),
    }
}
