//! Wire types of the HTTP surface, shared by the gateway (which describes itself with them) and the client (which reads
//! answers with them).
//!
//! An answer may have members that are not named here: they are kept in `extra`, never refused. Not here: how a request is
//! checked (gateway), and what an execution is (core).

mod error;
mod run;
mod waiting;
mod watch;
mod worker;

pub use error::{Detail, ErrorBody, InputProblem, Location, WorkflowProblem};
pub use pyoco_core::view::RunStatus;
pub use run::{
    RunEntry, RunList, RunPage, RunSnapshot, RunSummary, RunTasks, SubmitRequest, Submitted, TaskRecord,
};
pub use waiting::{NoWorker, NoWorkerReason, Waiting, WaitingNode};
pub use watch::{WatchData, WatchEvent};
pub use worker::{WorkerPatch, WorkerPatched, WorkerRecord};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Members that these types do not name.
pub type Extra = serde_json::Map<String, serde_json::Value>;

/// The answer of `GET /health`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// `ok`.
    #[schema(example = "ok")]
    pub status: String,
}
