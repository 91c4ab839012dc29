//! FailNode: an attempt failed. Another one follows, or the node has failed.

use std::sync::Arc;

use super::draft::Draft;
use super::{Ruling, advance, ending, guard};
use crate::command::FailNode;
use crate::event::{Changes, ErrorInfo, NodeFailReported, NodeFailed};
use crate::ids::NodeId;
use crate::json::Object;
use crate::outcome::{Outcome, Reason};
use crate::plan::{FailPolicy, Policy, Runner};
use crate::state::{NodeStatus, Phase};

pub(super) fn decide(draft: &mut Draft<'_>, command: &FailNode) -> Ruling {
    guard::may_report(draft)?;
    let id = &command.node_id;
    let (_, node) = guard::driven(draft, id)?;
    match node.status {
        NodeStatus::Running | NodeStatus::Waiting if node.task.is_none() => {
            return Err(guard::node_is(id, node));
        }
        NodeStatus::Running | NodeStatus::Waiting => {}
        NodeStatus::Pending => return Err(Reason::NodeNotReached(id.clone())),
        NodeStatus::Ready => return Err(guard::node_is(id, node)),
        NodeStatus::Succeeded | NodeStatus::Failed | NodeStatus::Canceled => {
            return Err(guard::node_is(id, node));
        }
    }
    guard::same_attempt(node.attempt, command.attempt)?;
    guard::may_change(draft, command.changes.as_deref())?;
    let error = command.error.clone().unwrap_or_else(|| ErrorInfo::new("FAILED", "failed without a message"));
    fail_attempt(draft, id, error, command.inputs.clone(), command.changes.clone());
    advance::advance(draft);
    Ok(Outcome::Accepted)
}

/// Records a failed attempt of a running node: retry it, or let it fail by its policy.
pub(super) fn fail_attempt(
    draft: &mut Draft<'_>,
    id: &NodeId,
    error: ErrorInfo,
    inputs: Option<Arc<Object>>,
    changes: Option<Box<Changes>>,
) {
    let Some(node) = draft.state.nodes.get(id) else { return };
    let policy = draft.state.task_of(node).map_or_else(Policy::default, |task| task.policy);
    let is_wait = draft.state.task_of(node).is_some_and(|task| matches!(task.runner, Runner::Wait { .. }));
    let may_retry = match draft.state.phase {
        // A person is asked once.
        Phase::Started if is_wait => false,
        Phase::Started => !node.cancel_requested && node.failures < policy.retries,
        // Nothing is tried again once the end is certain.
        Phase::Absent | Phase::Created | Phase::Failing | Phase::Canceling => false,
        Phase::Completed | Phase::Failed | Phase::Canceled => false,
    };
    let retry_at = may_retry.then(|| draft.at.after(policy.retry_delay));
    draft.emit(NodeFailReported {
        node_id: id.clone(),
        error: Some(error.clone()),
        inputs,
        changes,
        retry_at,
        extra: Default::default(),
    });
    if may_retry {
        return;
    }
    draft.emit(NodeFailed {
        node_id: id.clone(),
        error: Some(error.clone()),
        inherited: false,
        extra: Default::default(),
    });
    match policy.fail {
        FailPolicy::Stop => ending::fail(draft, Some(id), error),
        FailPolicy::Isolate => {}
    }
}
