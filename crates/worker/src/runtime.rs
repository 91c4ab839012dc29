//! What a worker needs to run tasks: where plans come from, and how one attempt is run and stopped.

use std::sync::Arc;

use async_trait::async_trait;
use pyoco_core::event::{BlobRef, Changes, ErrorInfo};
use pyoco_core::ids::{Attempt, ExecutionId, NodeId};
use pyoco_core::json::{Json, Object};
use pyoco_core::plan::{Plan, TaskSpec};
use pyoco_core::state::{Context, LoopFrame};
use pyoco_core::trace::TraceContext;
use tokio::sync::watch;

use crate::JobMessage;
use crate::wheels::WheelFolder;

/// Where the plan of a flow comes from.
#[async_trait]
pub trait Flows: Send + Sync {
    /// The plan for a job whose modules may come from wheels. Asked once for an execution: the first claim fixes it.
    async fn plan(&self, job: &JobMessage, wheels: Option<&WheelFolder>) -> Result<Arc<Plan>, LoadError>;
}

/// Why a flow cannot be run at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// This worker knows no such flow.
    #[error("flow_not_found: '{0}'")]
    NotFound(String),
    /// It knows it, and it does not load.
    #[error("{0}")]
    Failed(String),
}

/// How tasks are run.
#[async_trait]
pub trait Runtime: Send + Sync {
    /// Runs one attempt to its end. Once `stop` asks for it, it should end soon; once `stop` says so, it is to be ended.
    /// Dropping the future ends it at once, and then nothing of the attempt may be left running.
    async fn run(&self, call: Call, stop: Stop) -> End;
}

/// One attempt of a task, with everything it may see. A copy: what it changes comes back in its end.
#[derive(Debug, Clone)]
pub struct Call {
    /// Whose.
    pub execution: ExecutionId,
    /// Which node.
    pub node: NodeId,
    /// Which try.
    pub attempt: Attempt,
    /// What to run.
    pub task: TaskSpec,
    /// The flow that it belongs to: its name, and what of the environment its tasks may see.
    pub plan: Arc<Plan>,
    /// What tasks share.
    pub context: Context,
    /// The loops around it, outermost first.
    pub loops: Vec<LoopFrame>,
    /// The wheels that the execution runs with, if there are any; all its tasks have the same.
    pub wheels: Option<Arc<WheelFolder>>,
    /// The span of this attempt, for whoever traces it further; `None` if nobody traces the execution.
    pub trace: Option<TraceContext>,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// With a result.
    Succeeded {
        /// The value, or what is shown of it.
        output: Option<Arc<Json>>,
        /// The value where it stands outside the log.
        output_ref: Option<BlobRef>,
        /// The arguments of the call.
        inputs: Option<Arc<Object>>,
        /// What it changed in the context.
        changes: Option<Box<Changes>>,
    },
    /// With an error.
    Failed {
        /// What failed.
        error: ErrorInfo,
        /// The arguments of the call.
        inputs: Option<Arc<Object>>,
        /// What it changed in the context.
        changes: Option<Box<Changes>>,
    },
    /// Because it was told to stop.
    Stopped,
}

impl End {
    /// A result and nothing else.
    pub fn value(output: serde_json::Value) -> Self {
        Self::Succeeded {
            output: Some(Arc::new(Json(output))),
            output_ref: None,
            inputs: None,
            changes: None,
        }
    }

    /// An error and nothing else.
    pub fn error(message: &str) -> Self {
        Self::Failed { error: ErrorInfo::new("TASK_ERROR", message), inputs: None, changes: None }
    }
}

/// How urgently an attempt is to stop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// It may go on.
    #[default]
    None,
    /// The execution has failed: it may still end by itself, but not for long.
    Finishing,
    /// It is asked to stop by itself.
    Asked,
    /// The grace period is over: whatever runs it is ended. Some seconds later the future is dropped.
    Ending,
}

/// Tells an attempt to stop.
#[derive(Debug, Clone)]
pub struct Stop(pub(crate) watch::Receiver<Urgency>);

impl From<watch::Receiver<Urgency>> for Stop {
    fn from(urgency: watch::Receiver<Urgency>) -> Self {
        Self(urgency)
    }
}

impl Stop {
    /// Whether it should stop now.
    pub fn is_requested(&self) -> bool {
        *self.0.borrow() >= Urgency::Asked
    }

    /// Returns when it should stop by itself.
    pub async fn requested(&mut self) {
        self.at_least(Urgency::Asked).await;
    }

    /// Returns when it should be ended.
    pub async fn ending(&mut self) {
        self.at_least(Urgency::Ending).await;
    }

    async fn at_least(&mut self, urgency: Urgency) {
        // When the worker lets go of the attempt it is to stop as well.
        let _ = self.0.wait_for(|now| *now >= urgency).await;
    }
}
