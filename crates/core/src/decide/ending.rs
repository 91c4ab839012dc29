//! How executions end. Cancel wins: once it was requested, `end_canceled` is the only way out.

use super::draft::Draft;
use crate::command::{DeadLetter, Issuer};
use crate::event::{
    ErrorInfo, ExecutionCancelRequested, ExecutionCanceled, ExecutionCompleted, ExecutionFailRequested,
    ExecutionFailed, NodeInterruptRequested,
};
use crate::ids::NodeId;
use crate::outcome::Effect;
use crate::state::{NodeNumber, Phase};

/// Takes a cancel: everything that has not begun is canceled, what runs is asked to stop.
pub(super) fn cancel(draft: &mut Draft<'_>, reason: Option<&str>) {
    let reason = reason.map(str::to_owned);
    let requested_by = Some(draft.issuer.actor().into());
    draft.emit(ExecutionCancelRequested { reason: reason.clone(), requested_by, extra: Default::default() });
    cancel_open(draft, true);
    let running: Vec<NodeNumber> = draft.state.open.running.iter().copied().collect();
    for number in running {
        interrupt(draft, number, reason.clone());
    }
    if let Some(claim) = &draft.state.claim {
        let worker = claim.worker.clone();
        draft.effect(Effect::InterruptWorker(worker));
    } else {
        draft.effect(Effect::DropJob);
    }
    conclude(draft);
}

/// A worker's task is asked to stop and reports back; a caller's node is simply no longer wanted.
fn interrupt(draft: &mut Draft<'_>, number: NodeNumber, reason: Option<String>) {
    let Some((id, node)) = draft.state.node(number) else { return };
    let (node_id, worker_id) = (id.clone(), node.worker.clone());
    let reports_back = draft.state.is_worker_node(node) && draft.state.claim.is_some();
    draft.emit(NodeInterruptRequested {
        node_id: node_id.clone(),
        worker_id,
        reason: reason.clone(),
        extra: Default::default(),
    });
    if !reports_back {
        draft.cancel_node(node_id, reason);
    }
}

/// Cancels what waits for somebody and, when `all`, what never started. A record has room for so many; the
/// rest counts as canceled all the same, because its execution is.
fn cancel_open(draft: &mut Draft<'_>, all: bool) {
    let open = &draft.state.open;
    let mut numbers: Vec<NodeNumber> = open.waiting.iter().chain(&open.asking).copied().collect();
    if all {
        numbers.extend(&open.ready);
    }
    for number in numbers.into_iter().take(super::RECORD_EVENTS) {
        if let Some((id, _)) = draft.state.node(number) {
            let id = id.clone();
            draft.cancel_node(id, None);
        }
    }
}

/// Ends what runs without waiting for it any longer.
pub(super) fn stop_running(draft: &mut Draft<'_>) {
    let running: Vec<NodeNumber> = draft.state.open.running.iter().copied().collect();
    for number in running {
        if let Some((id, _)) = draft.state.node(number) {
            let id = id.clone();
            draft.cancel_node(id, Some("not waited for any longer".to_owned()));
        }
    }
}

/// A failure that ends the execution: nothing more is started, what runs may finish.
pub(super) fn fail(draft: &mut Draft<'_>, node: Option<&NodeId>, error: ErrorInfo) {
    match draft.state.phase {
        Phase::Created | Phase::Started => {}
        // Cancel wins, and the first failure is the one that is shown.
        Phase::Canceling | Phase::Failing => return,
        Phase::Absent | Phase::Completed | Phase::Failed | Phase::Canceled => return,
    }
    cancel_open(draft, false);
    if draft.state.open.running.is_empty() {
        end_failed(draft, node.cloned(), error);
    } else {
        draft.emit(ExecutionFailRequested {
            reason: Some(error.text().to_owned()),
            requested_by: Some(draft.issuer.actor().into()),
            failed_node_id: node.cloned(),
            error: Some(error),
            extra: Default::default(),
        });
    }
}

/// Ends the execution if nothing is left to wait for.
pub(super) fn conclude(draft: &mut Draft<'_>) {
    match draft.state.phase {
        Phase::Started if draft.state.is_settled() => {
            draft.emit(ExecutionCompleted { result: None, extra: Default::default() });
        }
        Phase::Started => {
            let state = &*draft.state;
            if !state.frames.is_empty() && state.open.is_empty() && state.agenda.is_empty() {
                let error = ErrorInfo::new("DEADLOCK", "Deadlock or cycle detected in workflow");
                end_failed(draft, None, error);
            }
        }
        Phase::Failing if draft.state.open.running.is_empty() => {
            if let Some(failure) = draft.state.failure.clone() {
                end_failed(draft, failure.node, failure.error);
            }
        }
        Phase::Canceling if draft.state.open.running.is_empty() && may_end_cancel(draft) => {
            end_canceled(draft)
        }
        Phase::Failing | Phase::Canceling | Phase::Absent | Phase::Created => {}
        Phase::Completed | Phase::Failed | Phase::Canceled => {}
    }
}

/// While a worker holds the execution, the worker ends its cancel (or the sweeper, after the grace period):
/// it may be between two tasks with a process still alive.
fn may_end_cancel(draft: &Draft<'_>) -> bool {
    draft.state.claim.is_none() || matches!(draft.issuer, Issuer::Worker { .. })
}

pub(super) fn end_canceled(draft: &mut Draft<'_>) {
    let reason = draft.state.cancel.as_ref().and_then(|cancel| cancel.reason.clone());
    let canceled_at = Some(draft.at);
    draft.emit(ExecutionCanceled { reason, canceled_at, extra: Default::default() });
}

fn end_failed(draft: &mut Draft<'_>, failed_node_id: Option<NodeId>, error: ErrorInfo) {
    let text = error.text().to_owned();
    draft.emit(ExecutionFailed {
        reason: Some(text.clone()),
        failed_node_id,
        error: Some(error),
        extra: Default::default(),
    });
    draft.dead_letter(DeadLetter::ExecutionError, text);
}
