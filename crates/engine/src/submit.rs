//! Submitting: an execution is created and started in one record.
//!
//! With an idempotency key the id of the execution is derived from the key, so that "create if absent" is itself the
//! de-duplication: across gateways, restarts and time, without a table of keys.

use pyoco_core::command::{CreateExecution, Issuer, Request};
use pyoco_core::digest::Digest;
use pyoco_core::ids::{CommandId, ExecutionId};
use pyoco_core::outcome::Outcome;

use crate::{Engine, EngineError};

/// What is submitted, by whom, through which door.
#[derive(Debug, Clone)]
pub struct Submission {
    /// What to create.
    pub command: CreateExecution,
    /// Who asks.
    pub issuer: Issuer,
    /// The door, e.g. `POST /runs`: a key counts for its own door only.
    pub endpoint: &'static str,
    /// The caller's key, if there is one.
    pub key: Option<CommandId>,
    /// The caller's thread through several commands.
    pub correlation_id: Option<String>,
}

/// An accepted submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submitted {
    /// The execution.
    pub execution: ExecutionId,
    /// It was submitted before under the same key.
    pub is_repeat: bool,
}

impl Engine {
    /// Creates and starts an execution, or finds the one that the same key has created.
    pub async fn submit(&self, submission: Submission) -> Result<Submitted, EngineError> {
        let tenant = submission.command.tenant_id.as_ref().map_or("", |tenant| tenant.as_str());
        let execution = match &submission.key {
            Some(key) => derived_id(tenant, submission.endpoint, key),
            None => None,
        };
        let execution = execution.unwrap_or_else(|| self.ids.execution());
        let mut request = Request::new(submission.issuer, self.clock.now(), submission.command);
        request.correlation_id = submission.correlation_id;
        // Without a key of the caller's the execution's own name serves: it tells an append that timed out.
        let own = || CommandId::new(execution.as_str()).ok();
        if let Some(id) = submission.key.or_else(own) {
            request = request.with_id(id);
        }
        let answer = self.command(&execution, &request).await?;
        let is_repeat = matches!(answer.outcome, Outcome::Repeated(_));
        Ok(Submitted { execution, is_repeat })
    }
}

/// SHA-256 of tenant, door and key, written as a UUID of version 4.
fn derived_id(tenant: &str, endpoint: &str, key: &CommandId) -> Option<ExecutionId> {
    let text = serde_json::to_vec(&(tenant, endpoint, key.as_str())).ok()?;
    let mut bytes = *Digest::of_bytes(&text).as_bytes();
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex: String = bytes.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let parts = [hex.get(..8)?, hex.get(8..12)?, hex.get(12..16)?, hex.get(16..20)?, hex.get(20..32)?];
    ExecutionId::new(&parts.join("-")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(tenant: &str, endpoint: &str, key: &str) -> String {
        derived_id(tenant, endpoint, &CommandId::new(key).unwrap()).unwrap().to_string()
    }

    #[test]
    fn an_id_depends_on_tenant_door_and_key_and_looks_like_any_other() {
        let one = id("team", "POST /runs", "k");
        assert_eq!(one, id("team", "POST /runs", "k"));
        for other in
            [id("else", "POST /runs", "k"), id("team", "POST /jobs", "k"), id("team", "POST /runs", "l")]
        {
            assert_ne!(one, other);
        }
        assert_eq!((one.len(), &one[14..15]), (36, "4"));
        assert!(matches!(&one[19..20], "8" | "9" | "a" | "b"));
    }

    #[test]
    fn parts_cannot_be_shifted_into_each_other() {
        assert_ne!(id("a", "b", "c"), id("", "ab", "c"));
        assert_ne!(id("a\",\"b", "x", "c"), id("a", "b\",\"x", "c"));
    }
}
