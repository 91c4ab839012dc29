//! Wire types of the HTTP surface, shared by the gateway (which describes itself with them) and the client (which reads
//! answers with them).
//!
//! An answer may have members that are not named here: they are kept in `extra`, never refused. Not here: how a request is
//! checked (gateway), and what an execution is (core).

mod audit;
mod bulk;
mod command;
mod denial;
mod error;
mod event;
mod execution;
mod graph;
mod job;
mod log;
mod plan;
mod run;
mod socket;
mod tag;
mod wait;
mod waiting;
mod watch;
mod wheel;
mod worker;

pub use audit::{AuditActor, AuditEntry, AuditOutcome, AuditPage};
pub use bulk::{BulkAction, BulkFailure, BulkFilter, BulkReport, BulkRequest, BulkSkip};
pub use command::{
    Accepted, CreateExecution, FailNode, PutWaiting, ReportProgress, ResumeNode, RetryExecution, StartNode,
    SucceedNode, Why,
};
pub use denial::{Denial, DenialBody, FieldProblem};
pub use error::{Detail, ErrorBody, InputProblem, Location, WorkflowProblem};
pub use event::{Actor, EventPage, ExecutionEvent};
pub use execution::{ErrorInfo, Execution, ExecutionNode, ExecutionPage, ExecutionSummary, NodeWait, Party};
pub use graph::{Graph, GraphNode, GraphPage, GraphSummary};
pub use job::{Job, JobPage, JobStatus, SubmitJob};
pub use log::{LogEntry, LogPage};
pub use plan::{Explanation, PlanEdge, PlanNode, Reason, RunPlan};
pub use pyoco_core::state::{NodeStatus, Status};
pub use pyoco_core::view::RunStatus;
pub use run::{
    RunEntry, RunList, RunPage, RunSnapshot, RunSummary, RunTasks, SubmitRequest, Submitted, TaskRecord,
};
pub use socket::{JobNews, JobProgress, JobWish, RunningTask};
pub use tag::{AddTag, TagCount, TagPage};
pub use wait::{Wait, WaitPage};
pub use waiting::{NoWorker, NoWorkerReason, Waiting, WaitingNode};
pub use watch::{WatchData, WatchEvent};
pub use wheel::{
    UsedWheel, WheelArtifact, WheelDeleted, WheelHistoryActor, WheelHistoryEvent, WheelHistorySource,
};
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
