//! Executions: how one is shown, alone and in a list. Times are RFC 3339.

use pyoco_core::state::{NodeStatus, Status};
use pyoco_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::{Extra, UsedWheel};

/// An execution with its nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Execution {
    /// Its id.
    pub execution_id: String,
    /// Which graph it runs.
    pub graph_id: String,
    /// Which version of it, when it is a registered one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph_version: Option<u64>,
    /// `ACTIVE`, `COMPLETED`, `FAILED` or `CANCELED`.
    #[schema(value_type = String, example = "ACTIVE")]
    pub status: Status,
    /// When a cancel was requested.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub cancel_requested_at: Option<Timestamp>,
    /// Who requested it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_requested_by: Option<Party>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_reason: Option<String>,
    /// When it was created.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub created_at: Option<Timestamp>,
    /// When it was allowed to run.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub started_at: Option<Timestamp>,
    /// When anything about it changed last.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub updated_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub ended_at: Option<Timestamp>,
    /// When it was put away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub archived_at: Option<Timestamp>,
    /// Its parameters.
    #[serde(default)]
    pub input: Value,
    /// Which workers may run it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Its labels.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Whose it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    /// Who runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
    /// It holds no worker: everything that is open waits for somebody.
    #[serde(default)]
    pub parked: bool,
    /// What ended it badly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorInfo>,
    /// The node whose failure it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_node_id: Option<String>,
    /// The execution it repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_of: Option<String>,
    /// The execution that repeats it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retried_by: Option<String>,
    /// The trace that its caller was in, as a `traceparent` of the W3C.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// The number of the last event that this shows.
    pub seq: u64,
    /// What its author should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The wheels that it runs with: those of the worker that took it first. Nothing when that worker installs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wheels: Option<Vec<UsedWheel>>,
    /// Its nodes: those of the graph, then those that loops unfolded.
    pub nodes: Vec<ExecutionNode>,
    /// What else the server says.
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

/// One node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionNode {
    /// Its id.
    pub node_id: String,
    /// Its kind.
    #[schema(example = "Task")]
    pub node_type: String,
    /// `PENDING`, `READY`, `RUNNING`, `WAITING`, `SUCCEEDED`, `FAILED` or `CANCELED`.
    #[schema(value_type = String, example = "RUNNING")]
    pub status: NodeStatus,
    /// It was canceled because its execution was.
    #[serde(default)]
    pub canceled_by_execution: bool,
    /// The last attempt that started.
    #[serde(default)]
    pub attempt: u32,
    /// When its first attempt started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub started_at: Option<Timestamp>,
    /// When it settled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub ended_at: Option<Timestamp>,
    /// When its next attempt may start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub retry_at: Option<Timestamp>,
    /// Who runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
    /// How far it is, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<f64>,
    /// What it says about that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<NodeWait>,
    /// What it produced.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub output: Value,
    /// What failed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorInfo>,
    /// What else the server says.
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

/// What a node waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeWait {
    /// Since when.
    #[schema(value_type = String, format = DateTime)]
    pub since: Timestamp,
    /// What a resume must name.
    #[serde(default)]
    pub wait_key: Option<String>,
    /// A hint for the person.
    #[serde(default)]
    pub prompt: Value,
}

/// Somebody who asked for something.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Party {
    /// What kind of party.
    #[schema(example = "user")]
    pub kind: String,
    /// Which one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What else the server says.
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

/// Something that failed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ErrorInfo {
    /// A stable word for the kind of failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 256, example = "ERR_TIMEOUT")]
    pub code: Option<String>,
    /// What happened, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 4_000)]
    pub message: Option<String>,
    /// Whatever else is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<std::collections::HashMap<String, Value>>)]
    pub detail: Option<Extra>,
    /// What else the server says.
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

/// An execution in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionSummary {
    /// Its id.
    pub execution_id: String,
    /// Which graph it runs.
    pub graph_id: String,
    /// `ACTIVE`, `COMPLETED`, `FAILED` or `CANCELED`.
    #[schema(value_type = String, example = "COMPLETED")]
    pub status: Status,
    /// It is going to be canceled, or was.
    pub cancel_requested: bool,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When anything about it changed last.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
    /// Its labels.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Who runs it, or ran it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What else the server says.
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

/// A page of executions, newest change first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionPage {
    /// The executions.
    pub items: Vec<ExecutionSummary>,
    /// What to send as `cursor` for the next page; null when there is none.
    #[serde(default)]
    pub next_cursor: Option<String>,
}

#[cfg(test)]
mod tests {
    use pyoco_core::command::CancelExecution;
    use pyoco_core::view::ExecutionView;
    use pyoco_testkit::{Execution as Driven, Graph, caller, external, start_node, succeed};
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_core_shows_is_read_back_as_it_was() {
        let plan = Graph::new().task("a", external()).task("b", external()).edge("a", "b").plan();
        let driven = Driven::started(&plan)
            .given(&caller(), start_node("a"))
            .given(&caller(), succeed("a", json!({"n": 1})))
            .given(&caller(), CancelExecution { reason: Some("enough".to_owned()) });
        let shown = serde_json::to_value(ExecutionView::of(driven.state())).unwrap();
        let read: Execution = serde_json::from_value(shown.clone()).unwrap();
        assert!(read.extra.is_empty() && read.nodes.iter().all(|node| node.extra.is_empty()), "{read:?}");
        assert_eq!(serde_json::to_value(&read).unwrap(), shown);
    }
}
