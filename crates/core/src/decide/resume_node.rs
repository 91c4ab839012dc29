//! ResumeNode: somebody answered. A wait node ends with the answer, any other node runs on.

use super::draft::Draft;
use super::{Ruling, advance, guard};
use crate::command::ResumeNode;
use crate::event::{NodeResumeRequested, NodeResumed, NodeSucceeded};
use crate::outcome::{Outcome, Reason};
use crate::plan::Runner;
use crate::state::{NodeState, NodeStatus, State};

pub(super) fn decide(draft: &mut Draft<'_>, command: &ResumeNode) -> Ruling {
    guard::may_begin(draft.state)?;
    let id = &command.node_id;
    let (_, node) = guard::reached(draft, id)?;
    match node.status {
        NodeStatus::Waiting => {}
        NodeStatus::Pending => return Err(Reason::NodeNotReached(id.clone())),
        NodeStatus::Ready | NodeStatus::Running => return Err(guard::node_is(id, node)),
        NodeStatus::Succeeded | NodeStatus::Failed | NodeStatus::Canceled => {
            return Err(guard::node_is(id, node));
        }
    }
    let wanted = node.waiting.as_ref().and_then(|waiting| waiting.key.as_ref());
    if wanted.is_some() && wanted != command.resume_key.as_ref() {
        return Err(Reason::WrongResumeKey);
    }
    let is_wait_node = is_wait_node(draft.state, node);
    draft.emit(NodeResumeRequested {
        node_id: id.clone(),
        resume_key: command.resume_key.clone(),
        requested_by: Some(draft.issuer.actor().into()),
        extra: Default::default(),
    });
    draft.emit(NodeResumed { node_id: id.clone(), extra: Default::default() });
    if is_wait_node {
        draft.emit(NodeSucceeded {
            node_id: id.clone(),
            output: command.output.clone().filter(|output| !output.is_null()),
            output_ref: None,
            inputs: None,
            changes: None,
            extra: Default::default(),
        });
        advance::advance(draft);
    }
    Ok(Outcome::Accepted)
}

fn is_wait_node(state: &State, node: &NodeState) -> bool {
    match state.task_of(node).map(|task| &task.runner) {
        Some(Runner::Wait { .. }) => true,
        Some(Runner::Callable(_) | Runner::Registered(_) | Runner::Command(_) | Runner::External) | None => {
            false
        }
    }
}
