//! ImportSnapshot: what another implementation wrote about an execution becomes events of ours.

use super::draft::Draft;
use super::{Ruling, ending};
use crate::command::{ForeignStatus, ImportSnapshot, Workflow};
use crate::event::{ErrorInfo, ExecutionCompleted, ExecutionCreated, ExecutionStarted};
use crate::ids::WorkerId;
use crate::outcome::{Outcome, Reason};
use crate::state::{Claim, Phase};

pub(super) fn decide(draft: &mut Draft<'_>, command: &ImportSnapshot) -> Ruling {
    // Once one of ours has taken it, only our own log counts.
    if draft.state.claim.as_ref().is_some_and(|claim| !claim.is_foreign()) || draft.state.epoch.0 > 0 {
        return Err(Reason::OwnedHere);
    }
    let before = draft.written();
    match draft.state.phase {
        Phase::Absent => create(draft, command),
        Phase::Created | Phase::Started | Phase::Failing | Phase::Canceling => {}
        Phase::Completed | Phase::Failed | Phase::Canceled => {
            return Ok(Outcome::AlreadyEnded(draft.state.phase.status()));
        }
    }
    let claimed = draft.state.claim.is_some();
    match command.status {
        ForeignStatus::Pending => {}
        ForeignStatus::Running => claim(draft, command),
        ForeignStatus::Cancelling => {
            claim(draft, command);
            request_cancel(draft);
        }
        ForeignStatus::Completed => {
            draft.emit(ExecutionCompleted { result: None, extra: Default::default() });
            end_if_canceling(draft);
        }
        ForeignStatus::Failed => {
            let message = command.error.as_deref().unwrap_or("failed");
            ending::fail(draft, None, ErrorInfo::new("FOREIGN", message));
            ending::conclude(draft);
            end_if_canceling(draft);
        }
        ForeignStatus::Cancelled => {
            request_cancel(draft);
            end_if_canceling(draft);
        }
    }
    let changed = draft.written() > before || draft.state.claim.is_some() != claimed;
    Ok(if changed { Outcome::Accepted } else { Outcome::Unchanged })
}

fn create(draft: &mut Draft<'_>, command: &ImportSnapshot) {
    if let Some(workflow) = &command.workflow {
        draft.keep_workflow(&workflow.text);
    }
    draft.emit(ExecutionCreated {
        graph_id: command.graph_id.clone(),
        input: Some(command.input.clone()),
        tag: command.tag.clone(),
        labels: command.labels.clone(),
        tenant_id: command.tenant_id.clone(),
        api_key_id: command.api_key_id.clone(),
        workflow: command.workflow.as_ref().map(Workflow::reference),
        graph_version: None,
        retry_of: None,
        traceparent: None,
        extra: Default::default(),
    });
    draft.emit(ExecutionStarted { started_by: Some(draft.issuer.actor().into()), extra: Default::default() });
}

/// The foreign worker is written down as the holder; its snapshots go on to count until one of ours claims.
fn claim(draft: &mut Draft<'_>, command: &ImportSnapshot) {
    let name = command.worker.as_deref().unwrap_or("foreign");
    if let (None, Ok(worker)) = (&draft.state.claim, WorkerId::new(name)) {
        let epoch = draft.state.epoch;
        let at = draft.at;
        draft.claim(Claim { worker, job: None, epoch, at });
    }
}

/// A snapshot is read again and again; the cancel it shows is requested once.
fn request_cancel(draft: &mut Draft<'_>) {
    match draft.state.phase {
        Phase::Created | Phase::Started | Phase::Failing => ending::cancel(draft, None),
        Phase::Absent | Phase::Canceling | Phase::Completed | Phase::Failed | Phase::Canceled => {}
    }
}

/// Cancel wins over whatever end the foreign worker reports, and its report ends the cancel.
fn end_if_canceling(draft: &mut Draft<'_>) {
    if draft.state.phase == Phase::Canceling {
        ending::stop_running(draft);
        ending::end_canceled(draft);
    }
}
