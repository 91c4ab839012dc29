//! The graph of a run as it can be drawn, and why the run is where it is.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Extra;

/// The graph of a run, loops and switches unfolded as far as they were opened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunPlan {
    /// Which run.
    pub run_id: String,
    /// Its flow.
    pub flow_name: String,
    /// How many changes of the run it shows.
    pub version: u64,
    /// Its nodes. A node of a loop or switch comes after the nodes beside that.
    pub nodes: Vec<PlanNode>,
    /// What comes before what.
    pub edges: Vec<PlanEdge>,
    /// There are more nodes than are shown.
    pub is_truncated: bool,
    /// What else the server says.
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

/// A node of the graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlanNode {
    /// Its id; that of the execution's node, once it is reached.
    #[schema(example = "repeat/1/fetch")]
    pub id: String,
    /// Its name.
    #[schema(example = "fetch")]
    pub name: String,
    /// What it is, as the event `NODE_CREATED` says it.
    #[schema(example = "Task")]
    pub kind: String,
    /// The task behind it.
    pub task: Option<String>,
    /// The loop or switch that it stands in.
    pub parent: Option<String>,
    /// The round of a loop, from 1.
    pub round: Option<u64>,
    /// The value of a case, as JSON, or `default`.
    pub case: Option<String>,
    /// Where it stands; null as long as its loop or switch was not opened.
    #[schema(example = "RUNNING")]
    pub status: Option<String>,
    /// The last attempt that started; 0 for none.
    pub attempt: u32,
    /// When its first attempt started, in unix seconds.
    pub started_at: Option<f64>,
    /// When it settled.
    pub ended_at: Option<f64>,
}

/// One node comes before another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanEdge {
    /// The first.
    pub from: String,
    /// The second.
    pub to: String,
}

/// Why a run is where it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Explanation {
    /// Which run.
    pub run_id: String,
    /// Where it stands.
    #[schema(example = "PENDING")]
    pub status: String,
    /// The first reason, as a sentence.
    pub summary: String,
    /// All reasons, the most telling first.
    pub reasons: Vec<Reason>,
    /// What to do about it, if anything.
    pub hint: Option<String>,
    /// What else the server says.
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

/// One reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Reason {
    /// What it is: `not_started`, `queued`, `no_worker`, `workers_busy`, `running`, `retry_pause`, `waiting_for_person`, `parked`,
    /// `failing`, `cancelling`, `stale`, `failed`, `completed` or `cancelled`. There may be others one day.
    #[schema(example = "no_worker")]
    pub code: String,
    /// The same in a sentence.
    pub message: String,
    /// The node that it is about.
    pub node_id: Option<String>,
    /// Since when, in unix seconds.
    pub since: Option<f64>,
    /// Until when, if that is known.
    pub until: Option<f64>,
}
