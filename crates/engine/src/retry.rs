//! Repeating an execution that has ended: a new one that keeps what succeeded and runs the rest.

use std::sync::Arc;

use pyoco_core::command::{AnnotateExecution, CreateExecution, Issuer, Request, Workflow};
use pyoco_core::digest::Digest;
use pyoco_core::event::{BlobRef, Encoding};
use pyoco_core::ids::{CommandId, ExecutionId, NodeId, Version};
use pyoco_core::json::{Object, Weight};
use pyoco_core::kept::{Kept, KeptNode};
use pyoco_core::outcome::{Reason, Rejection};
use pyoco_core::state::{Phase, State};
use pyoco_ports::{ErrorKind, StoreError};

use crate::history::decode;
use crate::submit::derived_id;
use crate::{Asked, Engine, EngineError, Flow, Submission};

/// What is kept stands in one record; when it is more than this, large values go beside the log.
const KEPT_BYTES: usize = 8 << 20;
const LARGE_VALUE: usize = 64 << 10;

/// How an execution is to be repeated.
#[derive(Debug, Clone)]
pub struct Retry {
    /// Other parameters than it had.
    pub input: Option<Object>,
    /// The first node to run again; without one, what failed or did not run.
    pub from: Option<NodeId>,
    /// Who asks.
    pub issuer: Issuer,
    /// The key of whoever asks.
    pub api_key_id: Option<String>,
    /// The caller's key; one is made up where there is none.
    pub key: Option<CommandId>,
    /// The caller's thread through several commands; one is made up where there is none.
    pub correlation_id: Option<String>,
    /// The trace that the caller is in.
    pub traceparent: Option<String>,
}

impl Engine {
    /// Repeats an execution. The new one is linked to it, and it to the new one.
    pub async fn retry(&self, execution: &ExecutionId, retry: Retry) -> Result<Asked, EngineError> {
        let reject = |reason| EngineError::from(Rejection { command: "RetryExecution", reason });
        let Some(state) = self.known(execution).await? else {
            return Err(reject(Reason::UnknownExecution(execution.clone())));
        };
        let is_key_made_up = retry.key.is_none();
        let endpoint = format!("POST /executions/{execution}/retry");
        let (key, correlation_id) = self.named(retry.key, retry.correlation_id, &endpoint);
        // What it is asked is compared with what was asked, not with what became of it since.
        let digest = Digest::of_json(&serde_json::json!({"input": retry.input, "from": retry.from}));
        may_repeat(&state, retry.from.as_ref()).map_err(reject)?;
        let origin = state.origin.as_deref();
        let tenant = origin.and_then(|origin| origin.tenant.as_ref()).map_or("", |tenant| tenant.as_str());
        let Some(repeat) = derived_id(tenant, &endpoint, &key) else {
            return Err(reject(Reason::UnknownExecution(execution.clone())));
        };
        let kept = self.kept(&state, &repeat, retry.from.as_ref(), retry.input.is_some()).await?;
        let workflow = origin.and_then(|origin| origin.workflow.as_ref());
        let command = CreateExecution {
            graph_id: origin.map(|origin| origin.flow.clone()).unwrap_or_default(),
            input: retry.input.or_else(|| origin.map(|origin| origin.input.clone())).unwrap_or_default(),
            tag: origin.and_then(|origin| origin.tag.clone()),
            labels: state.labels.clone(),
            tenant_id: origin.and_then(|origin| origin.tenant.clone()),
            api_key_id: retry.api_key_id,
            workflow: state
                .workflow
                .clone()
                .zip(workflow)
                .map(|(text, workflow)| Workflow { text, sha256: workflow.sha256.clone() }),
            graph_version: origin.and_then(|origin| origin.graph_version),
            plan: state.plan.clone(),
            retry_of: Some(execution.clone()),
            keep: (!kept.nodes.is_empty()).then(|| Arc::new(kept)),
            traceparent: retry.traceparent,
            start: true,
        };
        let submission = Submission {
            command,
            flow: Flow::Given,
            issuer: retry.issuer.clone(),
            endpoint: endpoint.into(),
            key: Some(key.clone()),
            is_key_made_up,
            digest: Some(digest),
            correlation_id: Some(correlation_id.clone()),
        };
        let asked = self.submitted(submission, key, correlation_id).await?;
        // A repeat only makes good what is missing: another one may have been made since.
        if !asked.is_repeat || state.retried_by.is_none() {
            let link = AnnotateExecution {
                add_labels: Vec::new(),
                remove_labels: Vec::new(),
                hidden: None,
                retried_by: Some(asked.execution.clone()),
            };
            // When this fails, the repeat under the same key does it.
            match self.command(execution, &Request::new(retry.issuer, self.clock.now(), link)).await {
                // It was removed a moment ago, and needs no link any more.
                Err(EngineError::Rejected(Rejection { reason: Reason::UnknownExecution(_), .. })) => {}
                linked => drop(linked?),
            }
        }
        Ok(asked)
    }

    /// An execution as its log has it. What another implementation has accepted has a log from now on.
    async fn known(&self, execution: &ExecutionId) -> Result<Option<State>, EngineError> {
        let found = self.look(execution, State::clone).await?;
        let is_foreign = found.as_ref().is_some_and(|state| state.version == Version(0));
        if is_foreign && self.adopt(execution).await? {
            return self.look(execution, State::clone).await;
        }
        Ok(found)
    }

    /// What the new execution keeps of the old one.
    async fn kept(
        &self,
        state: &State,
        repeat: &ExecutionId,
        from: Option<&NodeId>,
        is_input_changed: bool,
    ) -> Result<Kept, EngineError> {
        let removed = || {
            let reason = Reason::UnknownExecution(state.id.clone());
            EngineError::from(Rejection { command: "RetryExecution", reason })
        };
        let stored = self.store.read(&state.id, Version(0)).await?;
        if (stored.len() as u64) < state.version.0 {
            return Err(removed());
        }
        let (state_then, from) = (state.clone(), from.cloned());
        // A long history takes a while to read: not on a thread that others wait for.
        let kept = tokio::task::spawn_blocking(move || {
            let records = stored.iter().map(|stored| decode(&state_then.id, stored));
            let records = records.collect::<Result<Vec<_>, _>>()?;
            let history = records.iter().flat_map(|record| &record.events).map(|envelope| &envelope.event);
            Ok::<Kept, EngineError>(Kept::new(&state_then, history, from.as_ref(), is_input_changed))
        });
        let mut kept = kept.await.map_err(|_| StoreError::plain(ErrorKind::Closed, "read"))??;
        let mut bytes = Weight::of(&kept).bytes;
        while bytes > KEPT_BYTES {
            let Some(spared) = self.put_largest_aside(repeat, &mut kept).await? else {
                let reason = Reason::ValueTooLarge;
                return Err(Rejection { command: "RetryExecution", reason }.into());
            };
            bytes = bytes.saturating_sub(spared);
        }
        // Values beside the log stay for as long as one of the two does.
        for reference in kept.nodes.values().flat_map(references) {
            let is_there = self.store.share_blob(repeat, &reference.digest).await?;
            // One that was lost is the task's trouble that wants it.
            if !is_there && self.look(&state.id, |_| ()).await?.is_none() {
                return Err(removed());
            }
        }
        Ok(kept)
    }

    /// Puts the largest value beside the log, before the record that names it, and says what that spares; nothing if all are small.
    /// What is put aside is seen by tasks alone, so it is done only where there is no other way.
    async fn put_largest_aside(
        &self,
        repeat: &ExecutionId,
        kept: &mut Kept,
    ) -> Result<Option<usize>, EngineError> {
        let size = |node: &KeptNode| {
            let value = node.output.as_ref().filter(|_| node.output_ref.is_none());
            value.map_or(0, |value| Weight::of(value).bytes)
        };
        let largest = kept.nodes.values_mut().max_by_key(|node| size(node));
        let Some(node) = largest.filter(|node| size(node) > LARGE_VALUE) else { return Ok(None) };
        // A value that was read from a log can be written again.
        let bytes = serde_json::to_vec(&node.output.take()).unwrap_or_default();
        let digest = self.store.put_blob(repeat, &bytes).await?;
        node.output_ref = Some(BlobRef { digest, size: bytes.len() as u64, encoding: Encoding::Json });
        Ok(Some(bytes.len()))
    }
}

/// The values beside the log that a kept node names.
fn references(node: &KeptNode) -> impl Iterator<Item = &BlobRef> {
    node.output_ref.iter().chain(node.changes.iter().flat_map(|changes| changes.refs.values()))
}

/// Only what has ended is repeated, and only if there is something to run.
fn may_repeat(state: &State, from: Option<&NodeId>) -> Result<(), Reason> {
    match (state.phase, from) {
        (Phase::Absent, _) => return Err(Reason::UnknownExecution(state.id.clone())),
        (Phase::Created | Phase::Started | Phase::Failing | Phase::Canceling, _) => {
            return Err(Reason::StillActive);
        }
        (Phase::Completed, None) => return Err(Reason::NothingToRetry),
        (Phase::Completed | Phase::Failed | Phase::Canceled, _) => {}
    }
    match from {
        Some(from) if state.place_of(from).is_none() => Err(Reason::UnknownNode(from.clone())),
        Some(_) | None => Ok(()),
    }
}
