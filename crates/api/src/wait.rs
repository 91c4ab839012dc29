//! Nodes that wait for a person.

use pyoco_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::Extra;

/// A node that waits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Wait {
    /// Of which execution.
    pub execution_id: String,
    /// Of which graph.
    pub graph_id: String,
    /// Which node.
    pub node_id: String,
    /// What a resume must name.
    #[serde(default)]
    pub wait_key: Option<String>,
    /// A hint for the person.
    #[serde(default)]
    pub prompt: Value,
    /// Since when.
    #[schema(value_type = String, format = DateTime)]
    pub since: Timestamp,
    /// The labels of the execution.
    #[serde(default)]
    pub tags: Vec<String>,
    /// What else the server says.
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

/// A page of waits, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaitPage {
    /// The waits.
    pub items: Vec<Wait>,
    /// What to send as `cursor` for the next page; null when there is none.
    #[serde(default)]
    pub next_cursor: Option<String>,
}
