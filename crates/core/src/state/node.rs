//! One node of an execution, and one task as the `/runs` surface shows it.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Output, Place, Settled};
use crate::event::ErrorInfo;
use crate::ids::{Attempt, Epoch, WorkerId};
use crate::json::{Json, Object};
use crate::plan::TaskIndex;
use crate::time::Timestamp;

/// The number of a node: the order in which nodes were reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeNumber(pub u32);

impl NodeNumber {
    /// From a position in `State::nodes`; an execution is bounded far below the last number.
    pub(crate) fn from_index(index: usize) -> Self {
        Self(u32::try_from(index).unwrap_or(u32::MAX))
    }
}

/// What a node is at a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum NodeStatus {
    /// Not reached, or reached and not ready.
    #[default]
    Pending,
    /// It may start.
    Ready,
    /// An attempt runs; for a loop or switch: its body runs.
    Running,
    /// It waits for somebody.
    Waiting,
    /// It ended well.
    Succeeded,
    /// It ended badly.
    Failed,
    /// It was canceled.
    Canceled,
}

impl NodeStatus {
    /// Whether nothing can change it any more.
    pub const fn is_settled(self) -> bool {
        match self {
            Self::Pending | Self::Ready | Self::Running | Self::Waiting => false,
            Self::Succeeded | Self::Failed | Self::Canceled => true,
        }
    }
}

impl fmt::Display for NodeStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pending => "PENDING",
            Self::Ready => "READY",
            Self::Running => "RUNNING",
            Self::Waiting => "WAITING",
            Self::Succeeded => "SUCCEEDED",
            Self::Failed => "FAILED",
            Self::Canceled => "CANCELED",
        })
    }
}

/// A node that was reached.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodeState {
    /// Where it stands in the plan; a node of a foreign log has no place.
    pub place: Option<Place>,
    /// Its kind, as NODE_CREATED named it.
    pub node_type: String,
    /// Its task, if it is one.
    pub task: Option<TaskIndex>,
    /// What it is.
    pub status: NodeStatus,
    /// The last attempt that started.
    pub attempt: Attempt,
    /// Attempts that failed. One that was lost with its worker does not count.
    pub failures: u32,
    /// When its first attempt started.
    pub started_at: Option<Timestamp>,
    /// When the running attempt started.
    pub attempt_started_at: Option<Timestamp>,
    /// When it settled.
    pub ended_at: Option<Timestamp>,
    /// The claim under which the running attempt started.
    pub epoch: Epoch,
    /// Who runs it.
    pub worker: Option<WorkerId>,
    /// How far it is, in percent.
    pub progress: Option<f64>,
    /// What it says about that.
    pub message: Option<String>,
    /// What it waits for.
    pub waiting: Option<Waiting>,
    /// What it produced.
    pub output: Output,
    /// What failed last.
    pub error: Option<ErrorInfo>,
    /// Somebody wants this node to stop.
    pub cancel_requested: bool,
    /// It was canceled because its execution was.
    pub canceled_by_execution: bool,
    /// It never ran because a node before it failed.
    pub inherited: bool,
    /// The pause before the next attempt ends then.
    pub retry_at: Option<Timestamp>,
    /// For a loop: its round (from 1), how many there will be, and what the last until-condition said.
    pub round: u64,
    /// Rounds of a repeat or for-each.
    pub rounds: Option<u64>,
    /// Items of a for-each.
    pub items: Option<Arc<Vec<Json>>>,
    /// What the condition of an until was after the round before.
    pub condition: Option<bool>,
    /// An until asks whether it goes on.
    pub asking: bool,
    /// How the body of a loop or switch ended, if not well.
    pub body: Option<Settled>,
}

/// What a waiting node waits for.
#[derive(Debug, Clone, PartialEq)]
pub struct Waiting {
    /// Since when.
    pub since: Timestamp,
    /// What a resume must name.
    pub key: Option<String>,
    /// A hint for the person.
    pub prompt: Option<Json>,
}

/// One task as the `/runs` surface shows it. A task that runs several times (in a loop) has one record,
/// which each round overwrites.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskRecord {
    /// What it is.
    pub status: NodeStatus,
    /// It was reached at least once.
    pub reached: bool,
    /// When its last execution started.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// What failed last.
    pub error: Option<ErrorInfo>,
    /// The arguments of the last call.
    pub inputs: Option<Arc<Object>>,
    /// The last result.
    pub output: Output,
    /// What it waits for.
    pub waiting: Option<Waiting>,
    /// How each attempt of the last execution ended.
    pub attempts: Vec<AttemptRecord>,
}

/// One attempt of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptRecord {
    /// Its number.
    pub attempt: Attempt,
    /// When it started.
    pub started_at: Timestamp,
    /// Who ran it.
    pub worker: Option<WorkerId>,
    /// How it ended; `None` while it runs.
    pub end: Option<AttemptEnd>,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq)]
pub enum AttemptEnd {
    /// With a result.
    Succeeded(Timestamp),
    /// With an error.
    Failed(Timestamp, ErrorInfo),
    /// With its worker; it does not count as a failure.
    Lost(Timestamp),
    /// By a cancel.
    Canceled(Timestamp),
}
