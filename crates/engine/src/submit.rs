//! Submitting: an execution is created and started in one record.
//!
//! With an idempotency key the id of the execution is derived from the key, so that "create if absent" is itself the
//! de-duplication: across gateways, restarts and time, without a table of keys.

use std::borrow::Cow;
use std::sync::Arc;

use pyoco_core::command::{
    AnnotateExecution, CancelExecution, Command, CreateExecution, ForeignStatus, ImportSnapshot, Issuer,
    Request,
};
use pyoco_core::decide::Answer;
use pyoco_core::digest::Digest;
use pyoco_core::ids::{CommandId, ExecutionId, TenantId, Version};
use pyoco_core::json::Object;
use pyoco_core::notice::Notice;
use pyoco_core::outcome::{Outcome, Reason, Rejection};
use pyoco_core::state::State;
use pyoco_figures::Stopwatch;
use pyoco_ports::{Durability, ErrorKind, StoreError};
use tokio::sync::MutexGuard;

use crate::command::kept;
use crate::{Engine, EngineError, Graph, GraphError, count};

/// What is submitted, by whom, through which door.
#[derive(Debug, Clone)]
pub struct Submission {
    /// What to create.
    pub command: CreateExecution,
    /// Where its flow comes from.
    pub flow: Flow,
    /// Who asks.
    pub issuer: Issuer,
    /// The door, e.g. `POST /runs`: a key counts for its own door only.
    pub endpoint: Cow<'static, str>,
    /// The caller's key, if there is one.
    pub key: Option<CommandId>,
    /// Nobody but the answer knows the key, so nobody repeats it who was not answered.
    pub is_key_made_up: bool,
    /// The fingerprint of what the caller sent, where the command says more than that.
    pub digest: Option<Digest>,
    /// The caller's thread through several commands.
    pub correlation_id: Option<String>,
}

/// Where the flow of a submission comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// From the submission itself.
    Given,
    /// From the registered graph of its name, if there is one; else from whoever runs it.
    Named,
    /// From the registered graph of its name, in this version or the newest. There has to be one.
    Registered(Option<u64>),
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
        let watch = Stopwatch::start();
        let answer = self.create_or_find(submission).await;
        self.figures().submitted(count::submitted(&answer), watch.seconds());
        answer
    }

    async fn create_or_find(&self, submission: Submission) -> Result<Submitted, EngineError> {
        let tenant = submission.command.tenant_id.as_ref().map_or("", |tenant| tenant.as_str());
        let execution = match &submission.key {
            Some(key) => derived_id(tenant, &submission.endpoint, key),
            None => None,
        };
        let execution = match execution {
            Some(execution) => execution,
            None => self.unused(self.ids.execution()).await,
        };
        let (flow, tenant) = (submission.flow, submission.command.tenant_id.clone());
        let mut command = submission.command;
        // Another key of the same tenant may repeat it, as part of another trace.
        let (api_key_id, traceparent) = (command.api_key_id.take(), command.traceparent.take());
        let mut request = Request::new(submission.issuer, self.clock.now(), command);
        request.correlation_id = submission.correlation_id;
        // Without a key of the caller's the execution's own name serves: it tells an append that timed out.
        let own = || CommandId::new(execution.as_str()).ok();
        let has_key = submission.key.is_some();
        let may_be_repeated = has_key && !submission.is_key_made_up;
        if let Some(id) = submission.key.or_else(own) {
            request = match submission.digest {
                Some(digest) => request.known_by(id, digest),
                None if has_key => request.with_id(id),
                // Nobody else knows this name, so there is nothing to compare.
                None => request.known_by(id, Digest::default()),
            };
        }
        // What the name stands for now is no part of what was asked.
        if let Command::CreateExecution(command) = &mut request.command {
            command.api_key_id = api_key_id;
            command.traceparent = traceparent;
        }
        let over = self.deadline();
        if let Command::CreateExecution(command) = &mut request.command
            && let Some(graph) = self.graph_of(flow, tenant.as_ref(), &command.graph_id, &execution).await?
        {
            command.graph_version = Some(graph.record.version);
            command.plan.clone_from(&graph.plan);
            command.workflow.clone_from(&graph.workflow);
        }
        // On the heap: half a dozen futures hold this one, and each is moved when it begins.
        let asked = Box::pin(async {
            if may_be_repeated {
                self.create_unless_removed(&execution, &request).await
            } else {
                self.create_unknown(&execution, &request).await.map(Some)
            }
        });
        let answered = match self.in_time(over, asked).await {
            Some(answered) => answered,
            None => {
                self.doubts.add(&execution);
                Err(StoreError::plain(ErrorKind::Timeout, "submit").into())
            }
        };
        match answered {
            Ok(None) => Ok(Submitted { execution, is_repeat: true }),
            Ok(Some(answer)) => {
                let is_repeat = matches!(answer.outcome, Outcome::Repeated(_));
                if is_repeat {
                    self.complete(&execution).await?;
                }
                pyoco_faults::at("start.before_reply", "submit")?;
                Ok(Submitted { execution, is_repeat })
            }
            Err(error) => {
                // It may be there, or come: a request that timed out may still be on its way. Under a key of the caller's the
                // repeat finds it and completes it; otherwise nobody will ask again.
                let may_be_there = match &error {
                    EngineError::Unfollowed(_) | EngineError::Busy(_) => true,
                    EngineError::Store(error) => error.kind == ErrorKind::Timeout,
                    EngineError::Rejected(_) | EngineError::Log { .. } => false,
                    EngineError::UnknownGraph(_) | EngineError::UnusableGraph { .. } => false,
                };
                // What failed last is not all that happened: the append may have timed out, and the look for its record was refused.
                // The mark stays for whoever comes to this execution next.
                let may_be_there = may_be_there || self.doubts.has(&execution);
                if may_be_there
                    && !may_be_repeated
                    // On the heap: it is rare, and whoever moves this future would move the room for it too.
                    && self.in_time(over, Box::pin(self.refuse(execution.clone()))).await.is_none()
                {
                    self.refused.add(&execution);
                }
                Err(error)
            }
        }
    }

    /// The registered graph of a submission.
    async fn graph_of(
        &self,
        flow: Flow,
        tenant: Option<&TenantId>,
        id: &str,
        execution: &ExecutionId,
    ) -> Result<Option<Arc<Graph>>, EngineError> {
        let found = match flow {
            Flow::Given => return Ok(None),
            Flow::Named => self.known_graph(tenant, id).await,
            Flow::Registered(version) => self.graph(tenant, id, version).await,
        };
        let found = found.map_err(|error| match error {
            GraphError::Store(error) => error.into(),
            GraphError::Invalid(error) => EngineError::UnusableGraph { id: id.to_owned(), error },
            GraphError::Changed { .. } | GraphError::Busy => EngineError::Busy(execution.clone()),
        })?;
        let must_be = matches!(flow, Flow::Registered(_));
        // A repeat is answered as the first asking was, also when the graph is deleted since, or the execution is.
        if found.is_none()
            && must_be
            && self.look(execution, |_| ()).await?.is_none()
            && !self.was_removed(execution).await?
        {
            return Err(EngineError::UnknownGraph(id.to_owned()));
        }
        Ok(found)
    }

    /// Asks for an execution that may have been there before. `None` if the same submission made one that was removed since.
    ///
    /// First the log, then the tombstone, and nobody here gets in between: whoever removes does it the other way round, so one of them
    /// is there to be seen.
    async fn create_unless_removed(
        &self,
        execution: &ExecutionId,
        request: &Request,
    ) -> Result<Option<Answer>, EngineError> {
        let watch = Stopwatch::start();
        let entry = self.cache.entry(execution);
        let mut slot = entry.lock().await;
        let state = self.bring_up(execution, slot.take()).await?;
        let has_log = state.version > Version(0);
        *slot = Some(state);
        if !has_log && let Some(tombstone) = self.store.tombstone(execution).await? {
            if tombstone.digest == Some(request.digest) {
                return Ok(None);
            }
            return Err(Rejection { command: request.command.name(), reason: Reason::KeyReused }.into());
        }
        // Nobody else gets to it before it is on the disk: a repeat would be answered.
        let answer = self.append_first(execution, request, Durability::Full, slot).await;
        self.figures().commanded(request.command.name(), count::answered(&answer), watch.seconds());
        answer.map(Some)
    }

    /// Asks for an execution that nobody else knows of. Its worker may begin while it is on its way to the disk; only who asked has to wait.
    async fn create_unknown(
        &self,
        execution: &ExecutionId,
        request: &Request,
    ) -> Result<Answer, EngineError> {
        let watch = Stopwatch::start();
        let entry = self.cache.entry(execution);
        let slot = entry.lock().await;
        let answer = self.append_first(execution, request, Durability::Promised, slot).await;
        // From here on it is its worker's. Whoever asks for it here looks at the end of its log in any case, and that is all of it.
        if answer.is_ok() && !self.store.is_exclusive() {
            self.cache.let_go(execution, &entry);
        }
        self.figures().commanded(request.command.name(), count::answered(&answer), watch.seconds());
        answer
    }

    async fn append_first(
        &self,
        execution: &ExecutionId,
        request: &Request,
        durability: Durability,
        mut slot: MutexGuard<'_, Option<Box<State>>>,
    ) -> Result<Answer, EngineError> {
        let requests = std::slice::from_ref(request);
        let (mut answers, promise) = self.append_some(execution, requests, durability, &mut slot).await?;
        drop(slot);
        kept(promise).await?;
        let answer = answers.pop().unwrap_or_else(|| Err(EngineError::Busy(execution.clone())))?;
        self.go_on(execution, &answer.effects).await?;
        Ok(answer)
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
        entry.lock().await.get_or_insert_with(|| Box::new(State::absent(execution.clone())));
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
pub(crate) fn derived_id(tenant: &str, endpoint: &str, key: &CommandId) -> Option<ExecutionId> {
    let mut endpoint = Cow::Borrowed(endpoint);
    if pyoco_faults::is_planted("keys-forgotten") {
        endpoint = format!("{endpoint} {}", std::process::id()).into();
    }
    ExecutionId::new(&uuid(&(tenant, &*endpoint, key.as_str()))).ok()
}

/// The fingerprint of some texts, written as a UUID of version 4.
pub(crate) fn uuid(parts: &(&str, &str, &str)) -> String {
    // Texts have a JSON form, in which they cannot be shifted into each other.
    let text = serde_json::to_vec(parts).unwrap_or_default();
    let mut bytes = *Digest::of_bytes(&text).as_bytes();
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex: String = bytes.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    [(0, 8), (8, 12), (12, 16), (16, 20), (20, 32)]
        .map(|(from, to)| hex.get(from..to).unwrap_or_default())
        .join("-")
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
