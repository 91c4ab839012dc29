//! FailExecution: it cannot be run at all (no such flow, a flow that does not load).

use super::draft::Draft;
use super::{Verdict, ending, guard};
use crate::command::FailExecution;
use crate::outcome::{Outcome, Reason};
use crate::state::Phase;

pub(super) fn decide(draft: &mut Draft<'_>, command: &FailExecution) -> Verdict {
    match draft.state.phase {
        Phase::Absent => return Err(Reason::UnknownExecution(draft.state.id.clone())),
        Phase::Created | Phase::Started | Phase::Failing | Phase::Canceling => {}
        Phase::Completed | Phase::Failed | Phase::Canceled => {
            return Err(Reason::Ended(draft.state.phase.status()));
        }
    }
    guard::fits_error(Some(&command.error))?;
    // Before its first claim any worker may find that it cannot be run; after that only its owner.
    if draft.state.claim.is_some() {
        guard::not_fenced(draft)?;
    }
    if draft.state.phase == Phase::Canceling {
        // Cancel wins.
        ending::stop_running(draft);
        ending::end_canceled(draft);
        return Ok(Outcome::Accepted);
    }
    if let Some(reason) = command.dead_letter {
        draft.dead_letter(reason, command.error.text().to_owned());
    }
    ending::stop_running(draft);
    ending::fail(draft, None, command.error.clone());
    ending::conclude(draft);
    Ok(Outcome::Accepted)
}
