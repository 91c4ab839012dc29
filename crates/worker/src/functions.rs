//! Flows whose tasks are Rust functions, run in the worker itself, without Python.
//!
//! ```
//! use pyoco_worker::{Functions, RustFlow};
//! use serde_json::json;
//!
//! let flow = RustFlow::new("fetch >> report")
//!     .task("fetch", |_| async { Ok(json!(41)) })
//!     .task("report", |task| async move { Ok(json!({"rows": task.result("fetch")})) });
//! let functions = Functions::new().flow("nightly", flow)?;
//! # let _ = functions;
//! # Ok::<(), pyoco_worker::InvalidFlow>(())
//! ```

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use pyoco_core::event::ErrorInfo;
use pyoco_core::plan::{Plan, Runner};
use pyoco_core::state::Root;
use pyoco_flow::{Limits, Loaded};
use serde_json::{Map, Value, json};

use crate::message::JobMessage;
use crate::runtime::{Call, End, Flows, LoadError, Runtime, Stop};
use crate::wheels::WheelFolder;

/// Callables of this module are ours.
const MODULE: &str = "rust:";

type Answer = Pin<Box<dyn Future<Output = Result<Value, String>> + Send>>;
type Function = Arc<dyn Fn(RustTask) -> Answer + Send + Sync>;

/// A flow in the making: a graph and its tasks.
pub struct RustFlow {
    graph: String,
    tasks: Map<String, Value>,
    functions: HashMap<String, Function>,
}

impl fmt::Debug for RustFlow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RustFlow")
            .field("graph", &self.graph)
            .field("tasks", &self.tasks)
            .finish_non_exhaustive()
    }
}

/// The graph or a task of a Rust flow makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidFlow(String);

impl RustFlow {
    /// A flow with a graph in the language of flow.yaml.
    pub fn new(graph: &str) -> Self {
        Self { graph: graph.to_owned(), tasks: Map::new(), functions: HashMap::new() }
    }

    /// A task of the flow. An error fails the attempt, with its text.
    #[must_use]
    pub fn task<F, A>(self, name: &str, function: F) -> Self
    where
        F: Fn(RustTask) -> A + Send + Sync + 'static,
        A: Future<Output = Result<Value, String>> + Send + 'static,
    {
        self.task_with(name, Map::new(), function)
    }

    /// A task with settings of flow.yaml version 2, e.g. `retries` and `timeout_sec`.
    #[must_use]
    pub fn task_with<F, A>(mut self, name: &str, mut settings: Map<String, Value>, function: F) -> Self
    where
        F: Fn(RustTask) -> A + Send + Sync + 'static,
        A: Future<Output = Result<Value, String>> + Send + 'static,
    {
        settings.insert("callable".to_owned(), json!(format!("{MODULE}{name}")));
        self.tasks.insert(name.to_owned(), Value::Object(settings));
        self.functions.insert(name.to_owned(), Arc::new(move |task| Box::pin(function(task))));
        self
    }

    /// A JSON document is a YAML document: the compiler of flow.yaml does the rest.
    fn compile(&self, name: &str) -> Result<Plan, InvalidFlow> {
        let document = json!({"version": 2, "flow": {"graph": self.graph}, "tasks": self.tasks}).to_string();
        let invalid = |error: pyoco_flow::FlowError| InvalidFlow(format!("flow {name}: {error}"));
        let workflow = pyoco_flow::parse(document.as_bytes(), Limits::default()).map_err(invalid)?;
        workflow.compile(name, &Loaded::default()).map_err(invalid)
    }
}

/// What a Rust task sees.
#[derive(Debug, Clone)]
pub struct RustTask {
    call: Call,
    stop: Stop,
}

impl RustTask {
    /// Which attempt this is, with everything that it may see.
    pub const fn call(&self) -> &Call {
        &self.call
    }

    /// A parameter of the run; null when there is none.
    pub fn param(&self, name: &str) -> Value {
        self.member(Root::Params, name)
    }

    /// What another task returned; null when it has not.
    pub fn result(&self, task: &str) -> Value {
        self.member(Root::Results, task)
    }

    fn member(&self, root: Root, name: &str) -> Value {
        self.call.context.member(root, name).cloned().unwrap_or_default()
    }

    /// Whether the run was asked to stop.
    pub fn is_cancelled(&self) -> bool {
        self.stop.is_requested()
    }

    /// Returns when the run is asked to stop.
    pub async fn cancelled(&mut self) {
        self.stop.requested().await;
    }
}

/// Flows of Rust functions by name, and where everything else is looked for.
#[derive(Clone, Default)]
pub struct Functions {
    plans: HashMap<String, Arc<Plan>>,
    functions: HashMap<(String, String), Function>,
    otherwise: Option<(Arc<dyn Flows>, Arc<dyn Runtime>)>,
}

impl fmt::Debug for Functions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Functions").field("flows", &self.plans.keys()).finish_non_exhaustive()
    }
}

impl Functions {
    /// No flows yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a flow under a name.
    pub fn flow(mut self, name: &str, flow: RustFlow) -> Result<Self, InvalidFlow> {
        self.plans.insert(name.to_owned(), Arc::new(flow.compile(name)?));
        let functions = flow.functions.into_iter();
        self.functions.extend(functions.map(|(task, function)| ((name.to_owned(), task), function)));
        Ok(self)
    }

    /// What to ask for flows and tasks that are not here.
    #[must_use]
    pub fn or(mut self, flows: Arc<dyn Flows>, runtime: Arc<dyn Runtime>) -> Self {
        self.otherwise = Some((flows, runtime));
        self
    }
}

#[async_trait]
impl Flows for Functions {
    async fn plan(&self, job: &JobMessage, wheels: Option<&WheelFolder>) -> Result<Arc<Plan>, LoadError> {
        match (&job.workflow_yaml, self.plans.get(&job.flow_name), &self.otherwise) {
            (None, Some(plan), _) => Ok(plan.clone()),
            (_, _, Some((flows, _))) => flows.plan(job, wheels).await,
            (_, _, None) => Err(LoadError::NotFound(job.flow_name.clone())),
        }
    }
}

#[async_trait]
impl Runtime for Functions {
    async fn run(&self, call: Call, stop: Stop) -> End {
        let ours = matches!(&call.task.runner, Runner::Callable(callable) if callable.starts_with(MODULE));
        match (&self.otherwise, ours) {
            (Some((_, runtime)), false) => runtime.run(call, stop).await,
            (Some(_) | None, _) => self.call(call, stop).await,
        }
    }
}

impl Functions {
    async fn call(&self, call: Call, mut stop: Stop) -> End {
        let key = (call.plan.flow.clone(), call.task.name.clone());
        let Some(function) = self.functions.get(&key).cloned() else {
            let message =
                format!("this worker has no Rust function for task '{}' of flow '{}'", key.1, key.0);
            return End::Failed {
                error: ErrorInfo::new("TASK_NOT_FOUND", message),
                inputs: None,
                changes: None,
            };
        };
        let task = RustTask { call, stop: stop.clone() };
        // A function that does not listen is let go of when it is to be ended.
        tokio::select! {
            biased;
            answer = function(task) => match answer {
                Ok(value) => End::value(value),
                Err(message) => End::error(&message),
            },
            () = stop.ending() => End::Stopped,
        }
    }
}
