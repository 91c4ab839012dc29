//! ArchiveExecution: a finished one is put away.

use super::Ruling;
use super::draft::Draft;
use crate::command::ArchiveExecution;
use crate::event::ExecutionArchived;
use crate::outcome::{Outcome, Reason};
use crate::state::Phase;

pub(super) fn decide(draft: &mut Draft<'_>, command: &ArchiveExecution) -> Ruling {
    match draft.state.phase {
        Phase::Absent => Err(Reason::UnknownExecution(draft.state.id.clone())),
        Phase::Created | Phase::Started | Phase::Failing | Phase::Canceling => Err(Reason::StillActive),
        Phase::Completed | Phase::Failed | Phase::Canceled if draft.state.archived_at.is_some() => {
            Ok(Outcome::AlreadyArchived)
        }
        Phase::Completed | Phase::Failed | Phase::Canceled => {
            draft.emit(ExecutionArchived { reason: command.reason.clone(), extra: Default::default() });
            Ok(Outcome::Accepted)
        }
    }
}
