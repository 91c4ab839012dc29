//! Workers as the registry shows them.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::Extra;

/// A worker. Times are unix seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WorkerRecord {
    /// Its name.
    pub worker_id: String,
    /// Its process.
    #[serde(default)]
    pub instance_id: Option<String>,
    /// `RUNNING`, `IDLE`, `STOPPED_GRACEFUL` or `DISCONNECTED`.
    pub state: String,
    /// Somebody does not want to see it.
    #[serde(default)]
    pub hidden: bool,
    /// Which runs it takes.
    #[serde(default)]
    pub tags: Vec<String>,
    /// When it was last seen.
    #[serde(default)]
    pub last_seen_at: Option<f64>,
    /// When it last reported.
    #[serde(default)]
    pub last_heartbeat_at: Option<f64>,
    /// The same, as the first version called it.
    #[serde(default)]
    pub heartbeat_at: Option<f64>,
    /// What it runs now.
    #[serde(default)]
    pub current_run_id: Option<String>,
    /// Everything it runs now; a worker that runs one at a time need not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_run_ids: Option<Vec<String>>,
    /// How many runs it takes at once; older workers do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u64>,
    /// What it ran last.
    #[serde(default)]
    pub last_run_id: Option<String>,
    /// How that ended.
    #[serde(default)]
    pub last_run_status: Option<String>,
    /// When that began.
    #[serde(default)]
    pub last_run_started_at: Option<f64>,
    /// When that ended.
    #[serde(default)]
    pub last_run_finished_at: Option<f64>,
    /// When it stopped.
    #[serde(default)]
    pub stopped_at: Option<f64>,
    /// Why it stopped.
    #[serde(default)]
    pub stop_reason: Option<String>,
    /// When its record changed last.
    #[serde(default)]
    pub updated_at: Option<f64>,
    /// Which wheels it has.
    #[serde(default)]
    pub wheel_sync: Value,
    /// What else the server says.
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

/// The body of `PATCH /workers/{worker_id}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkerPatch {
    /// Hide it, or show it again.
    pub hidden: bool,
}

/// The answer of `PATCH /workers/{worker_id}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WorkerPatched {
    /// Which worker.
    pub worker_id: String,
    /// Whether it is hidden now.
    pub hidden: bool,
    /// When that changed.
    pub updated_at: f64,
}
