//! Registered graphs: flows with a name, in numbered versions.

use pyoco_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Extra;

/// A version of a graph, as it is answered when it was put.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Graph {
    /// Its name.
    pub graph_id: String,
    /// The number of this version.
    pub version: u64,
    /// When it was put.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// The version of the document's format: 1 or 2.
    pub flow_version: i64,
    /// Its nodes; none when only the worker that runs it knows its tasks.
    pub nodes: Vec<GraphNode>,
    /// What its author should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The text, as it was put; only where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// How the text is written: `yaml` or `json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "yaml")]
    pub format: Option<String>,
    /// What else the server says.
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

/// A node of a graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GraphNode {
    /// Its id.
    pub node_id: String,
    /// Its kind.
    #[schema(example = "Task")]
    pub node_type: String,
    /// Who runs it: `callable`, `registered`, `command`, `wait` or `external`; null when it is no task.
    #[serde(default)]
    #[schema(example = "external")]
    pub runner: Option<String>,
}

/// A graph in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GraphSummary {
    /// Its name.
    pub graph_id: String,
    /// Its newest version.
    pub version: u64,
    /// When that was put.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}

/// A page of graphs, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GraphPage {
    /// The graphs.
    pub items: Vec<GraphSummary>,
    /// What to send as `cursor` for the next page; null when there is none.
    #[serde(default)]
    pub next_cursor: Option<String>,
}
