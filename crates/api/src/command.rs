//! What is asked of an execution and of its nodes: the bodies of the commands, and what every accepted one is answered.
//!
//! Members that are not named here are ignored.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::{ErrorInfo, Extra};

/// The body of `POST /executions`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateExecution {
    /// Which registered graph.
    #[schema(min_length = 1, max_length = 256, example = "approval")]
    pub graph_id: String,
    /// Its parameters.
    #[serde(default)]
    #[schema(value_type = Option<std::collections::HashMap<String, Value>>)]
    pub input: Extra,
    /// Which workers may run it; the gateway's default when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[A-Za-z0-9_-]{1,128}$")]
    pub tag: Option<String>,
    /// Free labels; the tag when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Option<Vec<String>>)]
    pub tags: Vec<String>,
    /// Which version of a registered graph; the newest when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub graph_version: Option<u64>,
}

/// The body of a cancel (of an execution or a node) and of an archive. It may be left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Why {
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 2_000)]
    pub reason: Option<String>,
}

/// The body of `POST /executions/{executionId}/nodes/{nodeId}/start`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StartNode {
    /// Which attempt; the next one when it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub attempt: Option<u32>,
    /// Who runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 512, example = "worker-1")]
    pub worker_id: Option<String>,
}

/// The body of `POST /executions/{executionId}/nodes/{nodeId}/progress`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ReportProgress {
    /// In percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 100, example = 42)]
    pub progress: Option<f64>,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 4_000)]
    pub message: Option<String>,
    /// For machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<std::collections::HashMap<String, Value>>)]
    pub metrics: Option<Extra>,
}

/// The body of `POST /executions/{executionId}/nodes/{nodeId}/wait`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PutWaiting {
    /// What a resume must name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 256, example = "approval-123")]
    pub wait_key: Option<String>,
    /// A hint for the person who is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<std::collections::HashMap<String, Value>>)]
    pub prompt: Option<Extra>,
}

/// The body of `POST /executions/{executionId}/nodes/{nodeId}/resume`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResumeNode {
    /// What the wait asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 256, example = "approval-123")]
    pub resume_key: Option<String>,
    /// The answer; the output of a wait node.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub output: Value,
}

/// The body of `POST /executions/{executionId}/nodes/{nodeId}/success`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SucceedNode {
    /// What it produced.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub output: Value,
    /// Which attempt; the running one when it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub attempt: Option<u32>,
}

/// The body of `POST /executions/{executionId}/nodes/{nodeId}/fail`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FailNode {
    /// What failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorInfo>,
    /// Which attempt; the running one when it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub attempt: Option<u32>,
}

/// The body of `POST /executions/{executionId}/retry`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetryExecution {
    /// Other parameters than the first time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<std::collections::HashMap<String, Value>>)]
    pub input: Option<Extra>,
    /// From here on everything runs again, also what succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 2_048)]
    pub from_node: Option<String>,
}

/// What every accepted command is answered, and each of its repeats.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Accepted {
    /// Of which execution; of a retry the new one.
    pub execution_id: String,
    /// What was asked.
    #[schema(example = "StartNode")]
    pub command: String,
    /// Always true.
    pub accepted: bool,
    /// The caller's, or one that was made up.
    pub correlation_id: String,
    /// The caller's, or one that was made up.
    pub idempotency_key: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_said_is_not_sent() {
        assert_eq!(serde_json::to_value(Why::default()).unwrap(), json!({}));
        assert_eq!(serde_json::to_value(ResumeNode::default()).unwrap(), json!({}));
        assert_eq!(serde_json::to_value(SucceedNode::default()).unwrap(), json!({}));
        let create = CreateExecution { graph_id: "g".to_owned(), ..CreateExecution::default() };
        assert_eq!(serde_json::to_value(create).unwrap(), json!({"graphId": "g", "input": {}}));
    }
}
