//! CancelNode: one node is to stop; the rest goes on without it.

use super::draft::Draft;
use super::{Ruling, advance, guard};
use crate::command::CancelNode;
use crate::event::{NodeCancelRequested, NodeInterruptRequested};
use crate::outcome::{Effect, Outcome, Reason};
use crate::state::{NodeStatus, Phase};

pub(super) fn decide(draft: &mut Draft<'_>, command: &CancelNode) -> Ruling {
    match draft.state.phase {
        Phase::Absent => return Err(Reason::UnknownExecution(draft.state.id.clone())),
        Phase::Created => return Err(Reason::NotStarted),
        Phase::Started | Phase::Failing => {}
        Phase::Canceling => return Err(Reason::CancelRequested),
        Phase::Completed | Phase::Failed | Phase::Canceled => {
            return Err(Reason::Ended(draft.state.phase.status()));
        }
    }
    let id = &command.node_id;
    let (_, node) = guard::reached(draft, id)?;
    match node.status {
        NodeStatus::Ready | NodeStatus::Waiting | NodeStatus::Running => {}
        NodeStatus::Pending => return Err(Reason::NodeNotReached(id.clone())),
        NodeStatus::Succeeded | NodeStatus::Failed | NodeStatus::Canceled => {
            return Err(guard::node_is(id, node));
        }
    }
    if node.task.is_none() {
        // A loop or switch ends with what is in it; cancel that, or the execution.
        return Err(guard::node_is(id, node));
    }
    if node.cancel_requested {
        return Ok(Outcome::Unchanged);
    }
    let runs_in_worker = node.status == NodeStatus::Running && draft.state.is_worker_node(node);
    let (was_running, worker_id) = (node.status == NodeStatus::Running, node.worker.clone());
    let reason = command.reason.clone();
    draft.emit(NodeCancelRequested {
        node_id: id.clone(),
        reason: reason.clone(),
        extra: Default::default(),
    });
    if was_running {
        if let Some(worker) = worker_id.clone().filter(|_| runs_in_worker) {
            draft.effect(Effect::InterruptWorker(worker));
        }
        draft.emit(NodeInterruptRequested {
            node_id: id.clone(),
            worker_id,
            reason: reason.clone(),
            extra: Default::default(),
        });
    }
    if !runs_in_worker {
        draft.cancel_node(id.clone(), reason);
        advance::advance(draft);
    }
    Ok(Outcome::Accepted)
}
