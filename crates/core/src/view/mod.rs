//! Three views of one execution, each in the vocabulary of its surface.
//!
//! A view is computed from the state and holds nothing of its own. Spelling, case and time format are the
//! surface's; inside the core there is one spelling.

mod execution;
mod job;
mod run;

pub use execution::{ExecutionView, NodeView, WaitingView};
pub use job::{JobStatus, JobView};
pub use run::{RunSnapshot, RunStatus, RunSummary, TaskView};

use crate::event::Party;
use crate::state::{NodeState, NodeStatus, Phase, State};

/// A canceled execution has no node that is still to come, recorded or not.
fn shown_status(state: &State, node: Option<&NodeState>) -> NodeStatus {
    let status = node.map_or(NodeStatus::Pending, |node| node.status);
    match (state.phase, status) {
        (
            Phase::Canceling | Phase::Canceled,
            NodeStatus::Pending | NodeStatus::Ready | NodeStatus::Waiting,
        )
        | (Phase::Canceled, NodeStatus::Running) => NodeStatus::Canceled,
        (
            Phase::Absent
            | Phase::Created
            | Phase::Started
            | Phase::Failing
            | Phase::Canceling
            | Phase::Completed
            | Phase::Failed
            | Phase::Canceled,
            _,
        ) => status,
    }
}

/// `api_key:<id>` for the holder of a key, as the original writes it.
fn requested_by(party: Option<&Party>) -> Option<String> {
    party.and_then(|party| party.id.clone())
}
