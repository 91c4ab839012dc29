//! ClaimExecution: a worker takes an execution, with an epoch that fences whoever held it before.

use super::draft::Draft;
use super::{Ruling, advance, ending};
use crate::command::ClaimExecution;
use crate::event::ErrorInfo;
use crate::outcome::{Outcome, Reason};
use crate::state::{Claim, Phase};

/// So many claims lost in a row without any progress: the execution itself kills its workers.
pub const MAX_LOST_CLAIMS: u32 = 5;

pub(super) fn decide(draft: &mut Draft<'_>, command: &ClaimExecution) -> Ruling {
    let state = &*draft.state;
    match state.phase {
        Phase::Absent => return Err(Reason::UnknownExecution(state.id.clone())),
        Phase::Created => return Err(Reason::NotStarted),
        Phase::Started | Phase::Failing | Phase::Canceling => {}
        // The job is left over from an execution that has ended: acknowledge it and go on.
        Phase::Completed | Phase::Failed | Phase::Canceled => {
            return Ok(Outcome::AlreadyEnded(state.phase.status()));
        }
    }
    if let Some(held) = &state.claim
        && !may_take_over(held, command)
    {
        return Err(Reason::ClaimHeld(held.worker.clone()));
    }
    if state.phase == Phase::Started && state.plan.is_none() && command.plan.is_none() {
        return Err(Reason::PlanMissing);
    }
    let epoch = state.epoch.next();
    if let Some(plan) = &command.plan {
        draft.fix_plan(plan);
    }
    if let Some(wheels) = &command.wheels
        && draft.state.may_fix_wheels()
    {
        draft.use_wheels(wheels);
    }
    let unwanted = ending::unwanted(draft);
    let (worker, job, at) = (command.worker_id.clone(), Some(command.job.clone()), draft.at);
    draft.claim(Claim { worker, job, epoch, at });
    ending::cancel_unwanted(draft, unwanted);
    if draft.state.lost_claims >= MAX_LOST_CLAIMS && draft.state.phase == Phase::Started {
        let message = format!("{MAX_LOST_CLAIMS} workers were lost while running it, without any progress");
        ending::fail(draft, None, ErrorInfo::new("WORKERS_LOST", message));
    }
    advance::advance(draft);
    if draft.state.phase.is_terminal() {
        return Ok(Outcome::AlreadyEnded(draft.state.phase.status()));
    }
    Ok(Outcome::Claimed(epoch))
}

/// A redelivery of the owner's own message means that the owner is lost; so does an expired registry record.
/// A job that reaches one of ours at all was given up by a foreign worker.
fn may_take_over(held: &Claim, command: &ClaimExecution) -> bool {
    held.is_foreign() || command.owner_expired || held.job.as_ref() == Some(&command.job)
}
