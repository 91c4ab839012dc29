//! StartNode: an attempt begins. Its record is durable before the task is handed to a process.

use super::draft::Draft;
use super::{Ruling, guard};
use crate::command::{Issuer, StartNode};
use crate::event::NodeStarted;
use crate::outcome::{Outcome, Reason};
use crate::state::NodeStatus;

pub(super) fn decide(draft: &mut Draft<'_>, command: &StartNode) -> Ruling {
    guard::may_begin(draft.state)?;
    let id = &command.node_id;
    let (number, node) = guard::driven(draft, id)?;
    match node.status {
        // A loop or switch starts by an answer to its question, not by a start.
        NodeStatus::Ready if node.task.is_none() => return Err(guard::node_is(id, node)),
        NodeStatus::Ready => {}
        NodeStatus::Pending => return Err(Reason::NodeNotReached(id.clone())),
        NodeStatus::Running | NodeStatus::Waiting => return Err(guard::node_is(id, node)),
        NodeStatus::Succeeded | NodeStatus::Failed | NodeStatus::Canceled => {
            return Err(guard::node_is(id, node));
        }
    }
    let attempt = node.attempt.next();
    guard::same_attempt(attempt, command.attempt)?;
    if let Some(retry_at) = node.retry_at.filter(|at| *at > draft.at) {
        return Err(Reason::RetryNotDue(retry_at));
    }
    debug_assert!(draft.state.open.ready.contains(&number), "a ready task is in the ready set");
    let worker_id = match draft.issuer {
        Issuer::Worker { id, .. } => Some(id.clone()),
        Issuer::Caller(_) | Issuer::Scheduler | Issuer::Foreign { .. } => command.worker_id.clone(),
    };
    draft.emit(NodeStarted {
        node_id: id.clone(),
        attempt,
        worker_id,
        choice: None,
        extra: Default::default(),
    });
    Ok(Outcome::Accepted)
}
