//! ConfirmNodeStopped: the worker has ended an attempt that was asked to stop.

use super::draft::Draft;
use super::{Ruling, advance, guard};
use crate::command::ConfirmNodeStopped;
use crate::outcome::{Outcome, Reason};
use crate::state::{NodeStatus, Phase};

pub(super) fn decide(draft: &mut Draft<'_>, command: &ConfirmNodeStopped) -> Ruling {
    guard::may_report(draft)?;
    guard::from_owner(draft)?;
    let id = &command.node_id;
    let (_, node) = guard::driven(draft, id)?;
    let was_asked = match draft.state.phase {
        Phase::Canceling | Phase::Failing => true,
        Phase::Absent | Phase::Created | Phase::Started => node.cancel_requested,
        Phase::Completed | Phase::Failed | Phase::Canceled => false,
    };
    match node.status {
        NodeStatus::Running if was_asked => {}
        NodeStatus::Running | NodeStatus::Ready | NodeStatus::Waiting => {
            return Err(guard::node_is(id, node));
        }
        NodeStatus::Pending => return Err(Reason::NodeNotReached(id.clone())),
        NodeStatus::Succeeded | NodeStatus::Failed | NodeStatus::Canceled => {
            return Err(guard::node_is(id, node));
        }
    }
    draft.cancel_node(id.clone(), None);
    advance::advance(draft);
    Ok(Outcome::Accepted)
}
