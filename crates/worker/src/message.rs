//! The job message, as the original writes it: lenient about what is missing, strict about what is there.

use pyoco_core::command::{ForeignStatus, ImportSnapshot, Workflow};
use pyoco_core::digest::Digest;
use pyoco_core::ids::{ExecutionId, Tag, TenantId};
use pyoco_core::json::{self, Limits, Object};
use serde::Deserialize;
use serde_json::Value;

/// What a worker needs of a job message; other members are ignored.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct JobMessage {
    /// Which execution.
    pub run_id: ExecutionId,
    /// Which flow.
    pub flow_name: String,
    /// Its parameters.
    #[serde(default)]
    pub params: Option<Object>,
    /// The text of the flow, when it came with the submission.
    #[serde(default)]
    pub workflow_yaml: Option<String>,
    /// Its labels.
    #[serde(default)]
    pub tags: Option<Vec<Value>>,
    /// Whose it is.
    #[serde(default)]
    pub tenant_id: Option<String>,
    /// The key it was submitted with.
    #[serde(default)]
    pub api_key_id: Option<String>,
    /// When it was submitted; read only so that a wrong one is noticed.
    #[serde(default)]
    pub submitted_at: Option<f64>,
}

/// A submission that was accepted fits, with everything that its message adds.
const LIMITS: Limits = Limits { bytes: 2 * Limits::BODY.bytes, depth: Limits::BODY.depth + 2 };

/// A message that no worker can use. The contract names the first three reasons.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidJob(pub String);

impl JobMessage {
    /// Reads a message.
    pub fn decode(body: &[u8]) -> Result<Self, InvalidJob> {
        let invalid = |reason: &str| InvalidJob(reason.to_owned());
        let value: Value = json::decode(body, LIMITS).map_err(|_| invalid("invalid_json"))?;
        let members = value.as_object().ok_or_else(|| invalid("invalid_schema"))?;
        let is_given = |name: &str| !matches!(members.get(name), None | Some(Value::Null));
        if !is_given("run_id") || !is_given("flow_name") {
            return Err(invalid("missing_fields"));
        }
        Self::deserialize(&value).map_err(|error| InvalidJob(error.to_string()))
    }

    /// The execution that it asks for, as one that another implementation has accepted.
    pub(crate) fn adopted(&self, tag: &Tag) -> ImportSnapshot {
        let labels = self.tags.iter().flatten().filter_map(Value::as_str).map(str::to_owned);
        let workflow = self.workflow_yaml.as_deref().map(|text| Workflow {
            text: text.into(),
            sha256: Digest::of_bytes(text.as_bytes()).to_string(),
        });
        ImportSnapshot {
            status: ForeignStatus::Pending,
            input: self.params.clone().unwrap_or_default(),
            worker: None,
            error: None,
            graph_id: self.flow_name.clone(),
            tag: Some(tag.clone()),
            labels: labels.collect(),
            tenant_id: self.tenant_id.as_deref().and_then(|tenant| TenantId::new(tenant).ok()),
            api_key_id: self.api_key_id.clone(),
            workflow,
        }
    }

    /// Whose a message is, also when it makes no sense otherwise.
    pub(crate) fn run_of(body: &[u8]) -> Option<ExecutionId> {
        let value: Value = json::decode(body, LIMITS).ok()?;
        value.get("run_id")?.as_str().and_then(|text| ExecutionId::new(text).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_run_and_the_flow_are_required() {
        let message =
            JobMessage::decode(br#"{"run_id":"e-1","flow_name":"main","tags":["a"],"new":true}"#).unwrap();
        assert_eq!((message.run_id.as_str(), message.flow_name.as_str()), ("e-1", "main"));
    }

    #[test]
    fn anything_else_is_an_error_in_the_contracts_words() {
        for (body, reason) in [
            (&b""[..], "invalid_json"),
            (b"{", "invalid_json"),
            (b"\xff", "invalid_json"),
            (b"[]", "invalid_schema"),
            (b"{}", "missing_fields"),
            (b"{\"run_id\":\"a\"}", "missing_fields"),
        ] {
            assert_eq!(JobMessage::decode(body), Err(InvalidJob(reason.to_owned())));
        }
        for body in [
            &b"{\"run_id\":\"a.>\",\"flow_name\":\"x\"}"[..],
            b"{\"run_id\":\"a\",\"flow_name\":5}",
            b"{\"run_id\":\"a\",\"flow_name\":\"x\",\"tags\":5}",
            b"{\"run_id\":\"a\",\"flow_name\":\"x\",\"submitted_at\":{\"a\":1}}",
        ] {
            assert!(JobMessage::decode(body).is_err());
        }
    }
}
