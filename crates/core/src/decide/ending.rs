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
    // Workers are told in any case; a record has room for so many others, and the rest counts as canceled because
    // its execution is.
    let open = &draft.state.open;
    let in_workers: Vec<NodeNumber> = open.in_workers.iter().copied().collect();
    let outside: Vec<NodeNumber> = open.running.difference(&open.in_workers).copied().collect();
    for number in in_workers.into_iter().chain(outside) {
        if draft.written() < super::RECORD_EVENTS {
            interrupt(draft, number, reason.clone());
        }
    }
    cancel_open(draft, true);
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

/// Cancels what waits for somebody and, when `all`, what never started, as far as the record has room.
fn cancel_open(draft: &mut Draft<'_>, all: bool) {
    let open = &draft.state.open;
    let mut numbers: Vec<NodeNumber> = open.waiting.iter().chain(&open.asking).copied().collect();
    if all {
        numbers.extend(&open.ready);
    }
    cancel_nodes(draft, &numbers, None);
}

/// Ends what runs without waiting for it any longer, as far as the record has room.
pub(super) fn stop_running(draft: &mut Draft<'_>) {
    let running: Vec<NodeNumber> = draft.state.open.running.iter().copied().collect();
    cancel_nodes(draft, &running, Some("not waited for any longer"));
}

fn cancel_nodes(draft: &mut Draft<'_>, numbers: &[NodeNumber], reason: Option<&str>) {
    for number in numbers {
        if let Some((id, _)) = draft.state.node(*number).filter(|_| draft.written() < super::RECORD_EVENTS) {
            let id = id.clone();
            draft.cancel_node(id, reason.map(str::to_owned));
        }
    }
}

/// Nodes that were to be canceled and run in a worker that is about to be gone.
pub(super) fn unwanted(draft: &Draft<'_>) -> Vec<NodeId> {
    let state = &*draft.state;
    let running = state.open.in_workers.iter().filter_map(|number| state.node(*number));
    running.filter(|(_, node)| node.cancel_requested).map(|(id, _)| id.clone()).collect()
}

/// Their worker can no longer confirm it, and nobody is to start them again.
pub(super) fn cancel_unwanted(draft: &mut Draft<'_>, unwanted: Vec<NodeId>) {
    for id in unwanted {
        draft.cancel_node(id, None);
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
        Phase::Failing if draft.state.open.running.is_empty() => end_failing(draft),
        Phase::Canceling if draft.state.open.in_workers.is_empty() && may_end_cancel(draft) => {
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

/// The announced failure becomes the end.
pub(super) fn end_failing(draft: &mut Draft<'_>) {
    if let Some(failure) = draft.state.failure.clone().filter(|_| draft.state.phase == Phase::Failing) {
        end_failed(draft, failure.node, failure.error);
    }
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
