//! Runs: what is submitted, and how one is shown.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::openapi::schema::AnyOfBuilder;
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::{Extra, RunStatus, UsedWheel, Waiting};

/// The body of `POST /runs`. Members that are not named here are ignored.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SubmitRequest {
    /// Which flow.
    #[schema(min_length = 1, example = "main")]
    pub flow_name: String,
    /// Its parameters.
    #[serde(default)]
    #[schema(value_type = std::collections::HashMap<String, Value>)]
    pub params: Extra,
    /// Which workers may run it; the gateway's default when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[A-Za-z0-9_-]+$")]
    pub tag: Option<String>,
    /// Free labels; the tag when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

/// The answer to a submission: it is kept, and will be run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Submitted {
    /// The new run.
    pub run_id: String,
    /// Always `PENDING`, also when the same submission is repeated under its key.
    #[schema(value_type = String, example = "PENDING")]
    pub status: RunStatus,
    /// What else the server says.
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

/// A run in full. Times are unix seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunSnapshot {
    /// Its id.
    pub run_id: String,
    /// Its flow.
    #[serde(default)]
    pub flow_name: String,
    /// Which workers may run it.
    #[serde(default)]
    pub tag: Option<String>,
    /// Its labels.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Whose it is.
    #[serde(default)]
    pub tenant_id: Option<String>,
    /// The key it was submitted with.
    #[serde(default)]
    pub api_key_id: Option<String>,
    /// SHA-256 of the submitted flow.yaml.
    #[serde(default)]
    pub workflow_yaml_sha256: Option<String>,
    /// Its size.
    #[serde(default)]
    pub workflow_yaml_bytes: Option<u64>,
    /// Where it stands.
    #[schema(value_type = String, example = "RUNNING")]
    pub status: RunStatus,
    /// Its parameters.
    #[serde(default)]
    pub params: Value,
    /// The state of each task.
    #[serde(default)]
    #[schema(value_type = std::collections::HashMap<String, String>)]
    pub tasks: IndexMap<String, String>,
    /// The record of each task; only when asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<std::collections::HashMap<String, TaskRecord>>)]
    pub task_records: Option<IndexMap<String, TaskRecord>>,
    /// The records were left out because of their size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_records_truncated: Option<bool>,
    /// When it began to run.
    #[serde(default)]
    pub start_time: Option<f64>,
    /// When it ended.
    #[serde(default)]
    pub end_time: Option<f64>,
    /// When its worker was last heard.
    #[serde(default)]
    pub heartbeat_at: Option<f64>,
    /// When anything about it changed last.
    #[serde(default)]
    pub updated_at: Option<f64>,
    /// What went wrong.
    #[serde(default)]
    pub error: Option<String>,
    /// When a cancel was requested.
    #[serde(default)]
    pub cancel_requested_at: Option<f64>,
    /// By whom.
    #[serde(default)]
    pub cancel_requested_by: Option<String>,
    /// Who runs it, or ran it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
    /// Whether that worker is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_alive: Option<bool>,
    /// What that worker does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_state: Option<String>,
    /// When that worker was last heard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_heartbeat_at: Option<f64>,
    /// Whether somebody has hidden that worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_hidden: Option<bool>,
    /// Which runs that worker takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_tags: Option<Vec<String>>,
    /// What it waits for, when it waits for somebody. Kinds that are not described here may come.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Waiting>)]
    pub waiting: Vec<Value>,
    /// What its author should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The wheels that it runs with: those of the worker that took it first. Nothing when that worker installs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wheels: Option<Vec<UsedWheel>>,
    /// The record that this snapshot shows; a later one has a larger number. Another implementation's has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// What else the server says.
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

/// The record of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TaskRecord {
    /// `PENDING`, `RUNNING`, `SUCCEEDED`, `FAILED` or `CANCELLED`.
    pub state: String,
    /// When its last execution started.
    #[serde(default)]
    pub started_at: Option<f64>,
    /// When it ended.
    #[serde(default)]
    pub ended_at: Option<f64>,
    /// How long it took.
    #[serde(default)]
    pub duration_ms: Option<f64>,
    /// What failed.
    #[serde(default)]
    pub error: Option<String>,
    /// Where, in the task's own language.
    #[serde(default)]
    pub traceback: Option<String>,
    /// The arguments of the last call.
    #[serde(default)]
    pub inputs: Value,
    /// The last result.
    #[serde(default)]
    pub output: Value,
    /// Files that it kept.
    #[serde(default)]
    pub artifacts: Value,
    /// Each attempt of the last execution.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Value>,
    /// What else the server says.
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

/// A run in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunSummary {
    /// Its id.
    pub run_id: String,
    /// Its flow.
    #[serde(default)]
    pub flow_name: String,
    /// Which workers may run it.
    #[serde(default)]
    pub tag: Option<String>,
    /// Its labels.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Whose it is.
    #[serde(default)]
    pub tenant_id: Option<String>,
    /// The key it was submitted with.
    #[serde(default)]
    pub api_key_id: Option<String>,
    /// Where it stands.
    #[schema(value_type = String, example = "COMPLETED")]
    pub status: RunStatus,
    /// When anything about it changed last.
    #[serde(default)]
    pub updated_at: Option<f64>,
    /// When its worker was last heard.
    #[serde(default)]
    pub heartbeat_at: Option<f64>,
    /// Who runs it, or ran it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
    /// What went wrong.
    #[serde(default)]
    pub error: Option<String>,
    /// What else the server says; the rest of the snapshot when it was asked for.
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

/// A page of a list in the form that can be gone on from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunPage {
    /// The runs, newest change first; whole snapshots when they were asked for.
    #[schema(value_type = Vec<RunEntry>)]
    pub items: Vec<RunSummary>,
    /// What to send as `cursor` for the next page; null when there is none.
    #[serde(default)]
    pub next_cursor: Option<String>,
}

/// The answer of `GET /runs`: a plain array, or a page when the query asks for one.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum RunList {
    /// The compatible form.
    Runs(Vec<RunEntry>),
    /// The form that can be gone on from.
    Page(RunPage),
}

/// One run of a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum RunEntry {
    /// What a list shows unless told otherwise.
    Summary(Box<RunSummary>),
    /// With `include=full` (or `all`): the whole run, with its task records.
    Full(Box<RunSnapshot>),
}

// Written by hand: derived, it would be `oneOf`, and a whole snapshot has all that a summary has.
impl PartialSchema for RunEntry {
    fn schema() -> RefOr<Schema> {
        let forms = [RunSummary::name(), RunSnapshot::name()].map(Ref::from_schema_name);
        let any = forms.into_iter().fold(AnyOfBuilder::new(), AnyOfBuilder::item);
        let description = "One run of a list: a summary, or with `include=full` (or `all`) the whole run.";
        RefOr::T(Schema::AnyOf(any.description(Some(description)).build()))
    }
}

impl ToSchema for RunEntry {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((RunSummary::name().into_owned(), RunSummary::schema()));
        schemas.push((RunSnapshot::name().into_owned(), RunSnapshot::schema()));
        RunSummary::schemas(schemas);
        RunSnapshot::schemas(schemas);
    }
}

/// The answer of `GET /runs/{run_id}/tasks`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunTasks {
    /// The run.
    pub run_id: String,
    /// Its flow.
    #[serde(default)]
    pub flow_name: String,
    /// Where it stands.
    #[schema(value_type = String, example = "RUNNING")]
    pub status: RunStatus,
    /// The state of each task.
    #[serde(default)]
    #[schema(value_type = std::collections::HashMap<String, String>)]
    pub tasks: IndexMap<String, String>,
    /// The record of each task.
    #[serde(default)]
    #[schema(value_type = std::collections::HashMap<String, TaskRecord>)]
    pub task_records: IndexMap<String, TaskRecord>,
    /// The records were left out because of their size.
    #[serde(default)]
    pub task_records_truncated: bool,
    /// What else the server says.
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_that_nobody_named_survive() {
        let answer = json!({"run_id": "r", "status": "RUNNING", "tasks": {"b": "PENDING", "a": "RUNNING"}, "new": [1]});
        let snapshot: RunSnapshot = serde_json::from_value(answer).unwrap();
        assert_eq!(snapshot.extra.get("new"), Some(&json!([1])));
        assert_eq!(snapshot.tasks.keys().collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!(serde_json::to_value(&snapshot).unwrap()["new"], json!([1]));
    }

    #[test]
    fn what_the_core_shows_is_read_without_loss() {
        let id = pyoco_core::ids::ExecutionId::new("e-1").unwrap();
        let mut state = pyoco_core::state::State::absent(id);
        let wheel = pyoco_core::wheels::UsedWheel {
            name: "a-1-py3-none-any.whl".to_owned(),
            version: "1".to_owned(),
            sha256: "00".repeat(32),
        };
        state.wheels = Some([wheel].into());
        let shown = serde_json::to_value(pyoco_core::view::RunSnapshot::of(&state, None)).unwrap();
        let read: RunSnapshot = serde_json::from_value(shown.clone()).unwrap();
        assert_eq!(read.wheels.as_ref().unwrap()[0].version, "1");
        assert!(read.extra.is_empty(), "{read:?}");
        assert_eq!(serde_json::to_value(&read).unwrap(), shown);
        let shown = serde_json::to_value(pyoco_core::view::RunSummary::of(&state, None)).unwrap();
        let read: RunSummary = serde_json::from_value(shown.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), shown);
    }

    #[test]
    fn a_submission_needs_a_flow_and_nothing_else() {
        let request: SubmitRequest = serde_json::from_value(json!({"flow_name": "main", "x": 1})).unwrap();
        assert_eq!(serde_json::to_value(request).unwrap(), json!({"flow_name": "main", "params": {}}));
        assert!(serde_json::from_value::<SubmitRequest>(json!({})).is_err());
    }
}
