//! The `/runs` view: snake_case, unix seconds, `CANCELLED` with two l.

use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::{ended_status, requested_by};
use crate::ids::{Tag, TenantId, WorkerId};
use crate::plan::Plan;
use crate::state::{AttemptEnd, AttemptRecord, NodeStatus, Phase, State, TaskRecord};
use crate::time::Timestamp;
use crate::wheels::UsedWheel;

/// The status of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RunStatus {
    /// Created, taken by nobody.
    Pending,
    /// Taken by a worker, or a node was started.
    Running,
    /// Asked to stop.
    Cancelling,
    /// Ended well.
    Completed,
    /// Ended badly.
    Failed,
    /// Stopped.
    Cancelled,
}

impl RunStatus {
    /// The status of an execution, in this vocabulary.
    pub const fn of(state: &State) -> Self {
        match state.phase {
            Phase::Absent | Phase::Created => Self::Pending,
            Phase::Started | Phase::Failing if state.active_since.is_none() => Self::Pending,
            Phase::Started | Phase::Failing => Self::Running,
            Phase::Canceling => Self::Cancelling,
            Phase::Completed => Self::Completed,
            Phase::Failed => Self::Failed,
            Phase::Canceled => Self::Cancelled,
        }
    }
}

impl fmt::Display for RunStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pending => "PENDING",
            Self::Running => "RUNNING",
            Self::Cancelling => "CANCELLING",
            Self::Completed => "COMPLETED",
            Self::Failed => "FAILED",
            Self::Cancelled => "CANCELLED",
        })
    }
}

/// A run in full, as it stands in the KV bucket and in `GET /runs/{id}`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunSnapshot {
    /// The execution's id.
    pub run_id: String,
    /// Its flow.
    pub flow_name: String,
    /// Which workers may run it.
    pub tag: Option<Tag>,
    /// Its labels.
    pub tags: Vec<String>,
    /// Whose it is.
    pub tenant_id: Option<TenantId>,
    /// The key it was submitted with.
    pub api_key_id: Option<String>,
    /// SHA-256 of the submitted flow.yaml.
    pub workflow_yaml_sha256: Option<String>,
    /// Its size.
    pub workflow_yaml_bytes: Option<u64>,
    /// Where it stands.
    pub status: RunStatus,
    /// Its parameters.
    pub params: Value,
    /// The state of each task.
    pub tasks: TaskStates,
    /// The record of each task; empty when it was cut for size, and `None` when nobody asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_records: Option<IndexMap<String, TaskView>>,
    /// Present when the records were cut.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub task_records_truncated: bool,
    /// When it began to run.
    pub start_time: Option<f64>,
    /// When it ended.
    pub end_time: Option<f64>,
    /// When its worker was last heard.
    pub heartbeat_at: Option<f64>,
    /// When anything about it changed last.
    pub updated_at: Option<f64>,
    /// What went wrong.
    pub error: Option<String>,
    /// When a cancel was requested.
    pub cancel_requested_at: Option<f64>,
    /// By whom.
    pub cancel_requested_by: Option<String>,
    /// Who runs it, or ran it last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<WorkerId>,
    /// What it waits for, when it waits for somebody.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<Value>,
    /// What the author should know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The wheels that it runs with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wheels: Option<Arc<[UsedWheel]>>,
    /// The record that this view shows. A snapshot without it is another implementation's.
    pub version: u64,
}

/// The state of each task, by its name. The names stay where they are, in the plan: a flow may have very many.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskStates {
    plan: Option<Arc<Plan>>,
    /// In the order of the plan's tasks.
    states: Vec<&'static str>,
}

impl Serialize for TaskStates {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tasks = self.plan.iter().flat_map(|plan| &plan.tasks);
        serializer.collect_map(tasks.map(|task| &task.name).zip(&self.states))
    }
}

/// The record of a task.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TaskView {
    /// What it is.
    pub state: &'static str,
    /// When its last execution started.
    pub started_at: Option<f64>,
    /// When it ended.
    pub ended_at: Option<f64>,
    /// How long it took.
    pub duration_ms: Option<f64>,
    /// What failed.
    pub error: Option<String>,
    /// Where, in the task's own language.
    pub traceback: Option<String>,
    /// The arguments of the last call.
    pub inputs: Value,
    /// The last result.
    pub output: Value,
    /// Kept for the contract; artifacts are listed in the context.
    pub artifacts: Map<String, Value>,
    /// Each attempt of the last execution.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Value>,
}

/// A run in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// The execution's id.
    pub run_id: String,
    /// Its flow.
    pub flow_name: String,
    /// Which workers may run it.
    pub tag: Option<Tag>,
    /// Its labels.
    pub tags: Vec<String>,
    /// Whose it is.
    pub tenant_id: Option<TenantId>,
    /// The key it was submitted with.
    pub api_key_id: Option<String>,
    /// Where it stands.
    pub status: RunStatus,
    /// When anything about it changed last.
    pub updated_at: Option<f64>,
    /// When its worker was last heard.
    pub heartbeat_at: Option<f64>,
    /// Who runs it, or ran it last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<WorkerId>,
    /// What went wrong.
    pub error: Option<String>,
}

fn unix(at: Option<Timestamp>) -> Option<f64> {
    at.map(Timestamp::as_unix_seconds)
}

impl RunSnapshot {
    /// The run as it is. `heartbeat_at` is when its worker was last heard, which no log holds.
    pub fn of(state: &State, heartbeat_at: Option<Timestamp>) -> Self {
        Self { task_records: Some(records_of(state)), ..Self::without_records(state, heartbeat_at) }
    }

    /// The run as it is, for those who do not ask for the records of its tasks.
    pub fn without_records(state: &State, heartbeat_at: Option<Timestamp>) -> Self {
        let origin = state.origin.as_deref();
        let workflow = origin.and_then(|origin| origin.workflow.as_ref());
        Self {
            run_id: state.id.to_string(),
            flow_name: origin.map(|origin| origin.flow.clone()).unwrap_or_default(),
            tag: origin.and_then(|origin| origin.tag.clone()),
            tags: state.labels.clone(),
            tenant_id: origin.and_then(|origin| origin.tenant.clone()),
            api_key_id: origin.and_then(|origin| origin.api_key_id.clone()),
            workflow_yaml_sha256: workflow.map(|workflow| workflow.sha256.clone()),
            workflow_yaml_bytes: workflow.map(|workflow| workflow.bytes),
            status: RunStatus::of(state),
            params: state.params(),
            tasks: TaskStates::of(state),
            task_records: None,
            task_records_truncated: false,
            start_time: unix(state.active_since),
            end_time: unix(state.ended_at),
            heartbeat_at: unix(heartbeat_at.or(state.updated_at)),
            updated_at: unix(state.updated_at),
            error: state.last_error.clone(),
            cancel_requested_at: unix(state.cancel.as_ref().map(|cancel| cancel.at)),
            cancel_requested_by: requested_by(state.cancel.as_ref().and_then(|cancel| cancel.by.as_ref())),
            worker_id: state.last_worker.clone(),
            waiting: waiting_of(state),
            warnings: state.plan.as_ref().map(|plan| plan.warnings.clone()).unwrap_or_default(),
            wheels: state.wheels.clone(),
            version: state.version.0,
        }
    }

    /// The JSON form, without the task records when it would be longer than `max_bytes`. The states of the
    /// tasks are always kept.
    pub fn to_json(mut self, max_bytes: usize) -> Vec<u8> {
        // Room for a small one, taken once. Snapshots hold strings, numbers and lists only, so they always have a JSON form.
        let mut full = Vec::with_capacity(1024);
        let _ = serde_json::to_writer(&mut full, &self);
        if full.len() <= max_bytes {
            return full;
        }
        self.cut();
        serde_json::to_vec(&self).unwrap_or_default()
    }

    /// Leaves the task records out, because there is no room for them.
    pub fn cut(&mut self) {
        self.task_records = Some(IndexMap::new());
        self.task_records_truncated = true;
    }
}

impl RunSummary {
    /// The run as a list shows it.
    pub fn of(state: &State, heartbeat_at: Option<Timestamp>) -> Self {
        let origin = state.origin.as_deref();
        Self {
            run_id: state.id.to_string(),
            flow_name: origin.map(|origin| origin.flow.clone()).unwrap_or_default(),
            tag: origin.and_then(|origin| origin.tag.clone()),
            tags: state.labels.clone(),
            tenant_id: origin.and_then(|origin| origin.tenant.clone()),
            api_key_id: origin.and_then(|origin| origin.api_key_id.clone()),
            status: RunStatus::of(state),
            updated_at: unix(state.updated_at),
            heartbeat_at: unix(heartbeat_at.or(state.updated_at)),
            worker_id: state.last_worker.clone(),
            error: state.last_error.clone(),
        }
    }
}

const fn task_state(status: NodeStatus) -> &'static str {
    match status {
        NodeStatus::Pending | NodeStatus::Ready => "PENDING",
        NodeStatus::Running | NodeStatus::Waiting => "RUNNING",
        NodeStatus::Succeeded => "SUCCEEDED",
        NodeStatus::Failed => "FAILED",
        NodeStatus::Canceled => "CANCELLED",
    }
}

impl TaskStates {
    fn of(state: &State) -> Self {
        let never = TaskRecord::default();
        let tasks = state.plan.as_ref().map_or(0, |plan| plan.tasks.len());
        let record = |number| state.tasks.get(number).unwrap_or(&never);
        let states = (0..tasks).map(|number| task_state(shown(state, record(number)))).collect();
        Self { plan: state.plan.clone(), states }
    }
}

fn records_of(state: &State) -> IndexMap<String, TaskView> {
    let never = TaskRecord::default();
    let tasks = state.plan.iter().flat_map(|plan| &plan.tasks).enumerate();
    let record = |number| state.tasks.get(number).unwrap_or(&never);
    tasks.map(|(number, spec)| (spec.name.clone(), task_view(state, record(number)))).collect()
}

fn shown(state: &State, record: &TaskRecord) -> NodeStatus {
    ended_status(state.phase, record.status, record.error.is_some(), !record.attempts.is_empty())
}

fn task_view(state: &State, record: &TaskRecord) -> TaskView {
    let status = shown(state, record);
    let ended_by_cancel = status == NodeStatus::Canceled && record.status != NodeStatus::Canceled;
    let canceled_at =
        state.cancel.as_ref().map(|cancel| cancel.at).or(state.ended_at).filter(|_| ended_by_cancel);
    let duration = record.started_at.zip(record.ended_at).map(|(start, end)| end.millis_since(start));
    TaskView {
        state: task_state(status),
        started_at: unix(record.started_at),
        ended_at: unix(record.ended_at.or(canceled_at)),
        duration_ms: duration,
        error: record.error.as_ref().map(|error| error.text().to_owned()),
        traceback: record.error.as_ref().and_then(|error| error.traceback()).map(str::to_owned),
        inputs: record.inputs.as_ref().map_or_else(|| json!({}), |inputs| Value::Object(inputs.0.clone())),
        output: record.output.value.as_ref().map_or(Value::Null, |value| value.0.clone()),
        artifacts: Map::new(),
        attempts: record.attempts.iter().map(attempt_view).collect(),
    }
}

fn attempt_view(attempt: &AttemptRecord) -> Value {
    let (state, ended_at, error) = match &attempt.end {
        None => ("RUNNING", None, None),
        Some(AttemptEnd::Succeeded(at)) => ("SUCCEEDED", Some(*at), None),
        Some(AttemptEnd::Failed(at, error)) => ("FAILED", Some(*at), Some(error.text())),
        Some(AttemptEnd::Lost(at)) => ("LOST", Some(*at), None),
        Some(AttemptEnd::Canceled(at)) => ("CANCELLED", Some(*at), None),
    };
    json!({
        "attempt": attempt.attempt,
        "state": state,
        "started_at": attempt.started_at.as_unix_seconds(),
        "ended_at": unix(ended_at),
        "worker_id": attempt.worker,
        "error": error,
    })
}

fn waiting_of(state: &State) -> Vec<Value> {
    if state.phase.is_terminal() {
        return Vec::new();
    }
    let waiting = state.open.waiting.iter().filter_map(|number| state.node(*number));
    let shown = waiting.filter_map(|(id, node)| {
        let waiting = node.waiting.as_ref()?;
        let since = waiting.since.as_unix_seconds();
        Some(json!({"node_id": id, "wait_key": waiting.key, "prompt": waiting.prompt, "since": since}))
    });
    shown.collect()
}
