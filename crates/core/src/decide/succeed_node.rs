//! SucceedNode: a node ended well, and what waited for it goes on.

use super::draft::Draft;
use super::{Ruling, advance, guard};
use crate::command::{Issuer, SucceedNode};
use crate::event::NodeSucceeded;
use crate::outcome::{Outcome, Reason};
use crate::state::NodeStatus;

pub(super) fn decide(draft: &mut Draft<'_>, command: &SucceedNode) -> Ruling {
    guard::may_report(draft)?;
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
    guard::same_attempt(node.attempt, command.attempt)?;
    guard::may_change(draft, command.changes.as_deref())?;
    // Opaque bytes are opened by task processes, so only a worker may point at some.
    let output_ref = match draft.issuer {
        Issuer::Worker { .. } => command.output_ref.clone(),
        Issuer::Caller(_) | Issuer::Scheduler | Issuer::Foreign { .. } if command.output_ref.is_some() => {
            return Err(Reason::OnlyAWorker);
        }
        Issuer::Caller(_) | Issuer::Scheduler | Issuer::Foreign { .. } => None,
    };
    draft.emit(NodeSucceeded {
        node_id: id.clone(),
        output: command.output.clone().filter(|output| !output.is_null()),
        output_ref,
        inputs: command.inputs.clone(),
        changes: command.changes.clone(),
        extra: Default::default(),
    });
    advance::advance(draft);
    Ok(Outcome::Accepted)
}
