//! FailExecution: it cannot be run at all (no such flow, a flow that does not load).

use super::draft::Draft;
use super::{Ruling, ending, guard};
use crate::command::FailExecution;
use crate::outcome::{Outcome, Reason};
use crate::state::Phase;

pub(super) fn decide(draft: &mut Draft<'_>, command: &FailExecution) -> Ruling {
    match draft.state.phase {
        Phase::Absent => return Err(Reason::UnknownExecution(draft.state.id.clone())),
        Phase::Created | Phase::Started | Phase::Failing | Phase::Canceling => {}
        Phase::Completed | Phase::Failed | Phase::Canceled => {
            return Err(Reason::Ended(draft.state.phase.status()));
        }
    }
    // Before its first claim any worker may find that it cannot be run; after that only its owner.
    if draft.state.claim.is_some() || draft.state.epoch.0 > 0 {
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
    ending::end_failing(draft);
    if command.dead_letter.is_none() {
        draft.no_dead_letter();
    }
    Ok(Outcome::Accepted)
}
