//! Submitting: an execution is created and started in one record.
//!
//! With an idempotency key the id of the execution is derived from the key, so that "create if absent" is itself the
//! de-duplication: across gateways, restarts and time, without a table of keys.

use pyoco_core::command::{
    AnnotateExecution, CancelExecution, Command, CreateExecution, ForeignStatus, ImportSnapshot, Issuer,
    Request,
};
use pyoco_core::digest::Digest;
use pyoco_core::ids::{CommandId, ExecutionId};
use pyoco_core::json::Object;
use pyoco_core::notice::Notice;
use pyoco_core::outcome::Outcome;
use pyoco_core::state::State;
use pyoco_ports::{ErrorKind, StoreError};

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
        let execution = match execution {
            Some(execution) => execution,
            None => self.unused(self.ids.execution()).await,
        };
        let mut request = Request::new(submission.issuer, self.clock.now(), submission.command);
        request.correlation_id = submission.correlation_id;
        // Without a key of the caller's the execution's own name serves: it tells an append that timed out.
        let own = || CommandId::new(execution.as_str()).ok();
        let has_key = submission.key.is_some();
        if let Some(id) = submission.key.or_else(own) {
            request = request.with_id(id);
        }
        let over = self.deadline();
        let answered = match self.in_time(over, self.command(&execution, &request)).await {
            Some(answered) => answered,
            None => {
                self.doubts.add(&execution);
                Err(StoreError::plain(ErrorKind::Timeout, "submit").into())
            }
        };
        match answered {
            Ok(answer) => {
                let is_repeat = matches!(answer.outcome, Outcome::Repeated(_));
                if is_repeat {
                    self.complete(&execution).await?;
                }
                Ok(Submitted { execution, is_repeat })
            }
            Err(error) => {
                // It may be there, or come: a request that timed out may still be on its way. Under a key of the caller's the
                // repeat finds it and completes it; otherwise nobody will ask again.
                let may_be_there = match &error {
                    EngineError::Unfollowed(_) | EngineError::Busy(_) => true,
                    EngineError::Store(error) => error.kind == ErrorKind::Timeout,
                    EngineError::Rejected(_) | EngineError::Log { .. } => false,
                };
                if may_be_there
                    && !has_key
                    && self.in_time(over, self.refuse(execution.clone())).await.is_none()
                {
                    self.refused.add(&execution);
                }
                Err(error)
            }
        }
    }

    /// The first answer to a key may have been a failure half-way.
    async fn complete(&self, execution: &ExecutionId) -> Result<(), EngineError> {
        if self.store.wants_snapshots() && self.store.snapshot(execution).await?.is_none() {
            let state = self.state(execution).await?;
            self.derive_again(&state).await?;
        }
        Ok(())
    }

    /// A name that nobody has used has no log to read. Were it used after all, the append would find out.
    async fn unused(&self, execution: ExecutionId) -> ExecutionId {
        let entry = self.cache.entry(&execution);
        entry.lock().await.get_or_insert_with(|| State::absent(execution.clone()));
        execution
    }
}

impl Engine {
    /// Takes an execution back that was not accepted: now, or when the store is there again.
    pub(crate) async fn refuse(&self, execution: ExecutionId) {
        if let Err(error) = self.take_back(&execution).await {
            let said = Notice::OrphanPossible;
            let (err_id, msg_id) = (said.err_id(), said.msg_id());
            tracing::error!(err_id, msg_id, run_id = %execution, reason = %error, "{}", said.text());
            self.refused.add(&execution);
        }
    }

    async fn take_back(&self, execution: &ExecutionId) -> Result<(), EngineError> {
        // Nobody is shown what was never accepted: as a word from outside it is only recorded.
        let issuer = Issuer::Foreign { id: Some("not accepted".to_owned()) };
        let state = self.state(execution).await?;
        if state.origin.is_none() {
            // It did not arrive, but it may be on its way: it finds its place taken.
            let request = Request::new(issuer.clone(), self.clock.now(), taken());
            match self.command(execution, &request).await {
                Ok(_) | Err(EngineError::Rejected(_)) => {}
                Err(error) => return Err(error),
            }
        }
        let hide = AnnotateExecution {
            add_labels: Vec::new(),
            remove_labels: Vec::new(),
            hidden: Some(true),
            retried_by: None,
        };
        let cancel = CancelExecution { reason: Some("it was not accepted".to_owned()) };
        for command in [Command::from(cancel), Command::from(hide)] {
            let request = Request::new(issuer.clone(), self.clock.now(), command);
            match self.command(execution, &request).await {
                Ok(_) | Err(EngineError::Rejected(_)) => {}
                Err(error) => return Err(error),
            }
        }
        self.store.forget(execution).await?;
        Ok(())
    }
}

/// What stands in the place of an execution that was not accepted.
fn taken() -> ImportSnapshot {
    ImportSnapshot {
        status: ForeignStatus::Cancelled,
        input: Object::default(),
        worker: None,
        error: None,
        graph_id: "not accepted".to_owned(),
        tag: None,
        labels: Vec::new(),
        tenant_id: None,
        api_key_id: None,
        workflow: None,
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
