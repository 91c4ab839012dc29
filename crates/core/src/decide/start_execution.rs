//! StartExecution: it may run from here on.

use super::draft::Draft;
use super::{Ruling, advance};
use crate::event::ExecutionStarted;
use crate::outcome::{Outcome, Reason};
use crate::state::Phase;

pub(super) fn decide(draft: &mut Draft<'_>) -> Ruling {
    match draft.state.phase {
        Phase::Absent => Err(Reason::UnknownExecution(draft.state.id.clone())),
        Phase::Created => {
            let started_by = Some(draft.issuer.actor().into());
            draft.emit(ExecutionStarted { started_by, extra: Default::default() });
            advance::advance(draft);
            Ok(Outcome::Accepted)
        }
        Phase::Started => Err(Reason::AlreadyStarted),
        Phase::Failing => Err(Reason::FailRequested),
        Phase::Canceling => Err(Reason::CancelRequested),
        Phase::Completed | Phase::Failed | Phase::Canceled => Err(Reason::Ended(draft.state.phase.status())),
    }
}
