//! ForceEnd: the grace period is over, and a worker that hangs or is cut off must not hold the end open.

use super::draft::Draft;
use super::{Ruling, ending};
use crate::outcome::{Outcome, Reason};
use crate::state::Phase;

pub(super) fn decide(draft: &mut Draft<'_>) -> Ruling {
    match draft.state.phase {
        Phase::Absent => Err(Reason::UnknownExecution(draft.state.id.clone())),
        Phase::Created | Phase::Started => Err(Reason::StillActive),
        Phase::Canceling => {
            ending::stop_running(draft);
            ending::end_canceled(draft);
            Ok(Outcome::Accepted)
        }
        Phase::Failing => {
            ending::stop_running(draft);
            ending::end_failing(draft);
            Ok(Outcome::Accepted)
        }
        Phase::Completed | Phase::Failed | Phase::Canceled => {
            Ok(Outcome::AlreadyEnded(draft.state.phase.status()))
        }
    }
}
