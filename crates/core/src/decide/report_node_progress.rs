//! ReportNodeProgress: how far an attempt is. It changes nothing else.

use super::draft::Draft;
use super::{Ruling, guard};
use crate::command::ReportNodeProgress;
use crate::event::NodeProgressReported;
use crate::outcome::{Outcome, Reason};
use crate::state::NodeStatus;

pub(super) fn decide(draft: &mut Draft<'_>, command: &ReportNodeProgress) -> Ruling {
    if command.progress.is_some_and(|progress| !(0.0..=100.0).contains(&progress)) {
        return Err(Reason::ProgressOutOfRange);
    }
    guard::may_report(draft)?;
    let (_, node) = guard::driven(draft, &command.node_id)?;
    match node.status {
        NodeStatus::Running | NodeStatus::Waiting => {}
        NodeStatus::Pending => return Err(Reason::NodeNotReached(command.node_id.clone())),
        NodeStatus::Ready => return Err(guard::node_is(&command.node_id, node)),
        NodeStatus::Succeeded | NodeStatus::Failed | NodeStatus::Canceled => {
            return Err(guard::node_is(&command.node_id, node));
        }
    }
    draft.emit(NodeProgressReported {
        node_id: command.node_id.clone(),
        progress: command.progress,
        message: command.message.clone(),
        metrics: command.metrics.clone(),
        choice: None,
        extra: Default::default(),
    });
    Ok(Outcome::Accepted)
}
