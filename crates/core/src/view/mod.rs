//! Three views of one execution, each in the vocabulary of its surface; its graph, and why it is where it is.
//!
//! A view is computed from the state and holds nothing of its own. Spelling, case and time format are the
//! surface's; inside the core there is one spelling.

mod execution;
mod explain;
mod graph;
mod job;
mod run;

pub use execution::{ExecutionView, NodeView, WaitingView};
pub use explain::{Cause, CauseCode, causes};
pub use graph::{GraphEdge, GraphNode, GraphView};
pub use job::{JobStatus, JobView};
pub use run::{RunSnapshot, RunStatus, RunSummary, TaskStates, TaskView};

use crate::event::Party;
use crate::state::{NodeState, NodeStatus, Phase, State};

/// An execution that has ended shows nothing as running or still to come, recorded or not.
fn shown_status(state: &State, node: Option<&NodeState>) -> NodeStatus {
    let status = node.map_or(NodeStatus::Pending, |node| node.status);
    // Between two attempts, or around a task that failed, there is nothing left but the failure.
    let has_failed = node.is_some_and(|node| node.error.is_some() || (node.task.is_none() && node.round > 0));
    ended_status(state.phase, status, has_failed, node.is_some_and(|node| node.attempt.0 > 0))
}

/// What remains of an open node or task when its execution has ended.
const fn ended_status(phase: Phase, status: NodeStatus, has_failed: bool, was_tried: bool) -> NodeStatus {
    use NodeStatus::{Canceled, Failed, Pending, Ready, Running, Succeeded, Waiting};
    match (phase, status) {
        (_, Succeeded | Failed | Canceled) => status,
        (Phase::Canceling, Pending | Ready | Waiting)
        | (Phase::Canceled, Pending | Ready | Waiting | Running) => Canceled,
        (Phase::Failed, Running | Waiting | Ready) if has_failed => Failed,
        (Phase::Failed, Running | Waiting) => Canceled,
        (Phase::Failed, Ready) if was_tried => Canceled,
        (Phase::Failed, Pending | Ready) => Pending,
        (Phase::Canceling, Running) => status,
        (Phase::Absent | Phase::Created | Phase::Started | Phase::Failing | Phase::Completed, _) => status,
    }
}

/// `api_key:<id>` for the holder of a key, as the original writes it.
fn requested_by(party: Option<&Party>) -> Option<String> {
    party.and_then(|party| party.id.clone())
}
