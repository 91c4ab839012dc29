//! PutNodeWaiting: a running node waits for somebody.

use super::draft::Draft;
use super::{Verdict, guard};
use crate::command::PutNodeWaiting;
use crate::event::NodeWaiting;
use crate::outcome::{Outcome, Reason};
use crate::state::NodeStatus;

pub(super) fn decide(draft: &mut Draft<'_>, command: &PutNodeWaiting) -> Verdict {
    guard::may_begin(draft.state)?;
    let id = &command.node_id;
    let (_, node) = guard::driven(draft, id)?;
    match node.status {
        NodeStatus::Running if node.task.is_none() => return Err(guard::node_is(id, node)),
        NodeStatus::Running => {}
        NodeStatus::Pending => return Err(Reason::NodeNotReached(id.clone())),
        NodeStatus::Ready | NodeStatus::Waiting => return Err(guard::node_is(id, node)),
        NodeStatus::Succeeded | NodeStatus::Failed | NodeStatus::Canceled => {
            return Err(guard::node_is(id, node));
        }
    }
    guard::fits(command.prompt.iter().map(|prompt| &prompt.0))?;
    draft.emit(NodeWaiting {
        node_id: id.clone(),
        wait_key: command.wait_key.clone(),
        prompt: command.prompt.clone().filter(|prompt| !prompt.is_null()),
        extra: Default::default(),
    });
    Ok(Outcome::Accepted)
}
