//! PutNodeWaiting: a running node waits for somebody.

use super::draft::Draft;
use super::{Ruling, guard};
use crate::command::PutNodeWaiting;
use crate::event::NodeWaiting;
use crate::outcome::{Outcome, Reason};
use crate::state::NodeStatus;

pub(super) fn decide(draft: &mut Draft<'_>, command: &PutNodeWaiting) -> Ruling {
    guard::may_begin(draft.state)?;
    let id = &command.node_id;
    let (_, node) = guard::driven(draft, id)?;
    if draft.state.is_worker_node(node) {
        // Its process would have to live on without a claim.
        return Err(Reason::CannotWait(id.clone()));
    }
    match node.status {
        NodeStatus::Running if node.task.is_none() => return Err(guard::node_is(id, node)),
        NodeStatus::Running => {}
        NodeStatus::Pending => return Err(Reason::NodeNotReached(id.clone())),
        NodeStatus::Ready | NodeStatus::Waiting => return Err(guard::node_is(id, node)),
        NodeStatus::Succeeded | NodeStatus::Failed | NodeStatus::Canceled => {
            return Err(guard::node_is(id, node));
        }
    }
    draft.emit(NodeWaiting {
        node_id: id.clone(),
        wait_key: command.wait_key.clone(),
        prompt: command.prompt.clone().filter(|prompt| !prompt.is_null()),
        extra: Default::default(),
    });
    Ok(Outcome::Accepted)
}
