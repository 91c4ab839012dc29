//! What comes over a watch: snapshots, and heartbeats in between.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Extra, RunSnapshot};

/// One event of `GET /runs/{run_id}/watch`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WatchEvent {
    /// Where to go on from, as `Last-Event-ID`; heartbeats have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// `snapshot` or `heartbeat`; others may come.
    pub event: String,
    /// What it says.
    pub data: WatchData,
}

/// The data line of an event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WatchData {
    /// The run.
    pub run_id: String,
    /// The run as it is; a heartbeat has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Box<RunSnapshot>>,
    /// When it was sent.
    pub ts: f64,
    /// What else the server says.
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}
