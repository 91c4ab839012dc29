//! The job message, as the original writes it: lenient about what is missing, strict about what is there.

use pyoco_core::ids::ExecutionId;
use pyoco_core::json::{self, Limits, Object};
use serde::Deserialize;

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
}

/// A message that no worker can use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidJob(pub String);

impl JobMessage {
    /// Reads a message.
    pub fn decode(body: &[u8]) -> Result<Self, InvalidJob> {
        json::decode(body, Limits::BODY).map_err(|error| InvalidJob(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_run_and_the_flow_are_required() {
        let message =
            JobMessage::decode(br#"{"run_id":"e-1","flow_name":"main","tags":[1],"new":true}"#).unwrap();
        assert_eq!((message.run_id.as_str(), message.flow_name.as_str()), ("e-1", "main"));
    }

    #[test]
    fn anything_else_is_an_error() {
        for body in [
            &b""[..],
            b"{",
            b"[]",
            b"{}",
            b"{\"run_id\":\"a.>\",\"flow_name\":\"x\"}",
            b"{\"run_id\":\"a\",\"flow_name\":5}",
            b"\xff",
        ] {
            assert!(JobMessage::decode(body).is_err());
        }
    }
}
