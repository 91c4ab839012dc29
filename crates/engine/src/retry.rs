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

use crate::history::decode;
use crate::{Asked, Engine, EngineError, Flow, Submission};

/// What is kept stands in one record; when it is more than this, larger values go beside the log.
const KEPT_BYTES: usize = 256 << 10;
const LARGE_VALUE: usize = 1 << 10;

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
}

impl Engine {
    /// Repeats an execution. The new one is linked to it, and it to the new one.
    pub async fn retry(&self, execution: &ExecutionId, retry: Retry) -> Result<Asked, EngineError> {
        let reject = |reason| EngineError::from(Rejection { command: "RetryExecution", reason });
        let Some(state) = self.look(execution, State::clone).await? else {
            return Err(reject(Reason::UnknownExecution(execution.clone())));
        };
        let endpoint = format!("POST /executions/{execution}/retry");
        let (key, correlation_id) = self.named(retry.key, retry.correlation_id, &endpoint);
        // What it is asked is compared with what was asked, not with what became of it since.
        let digest = Digest::of_json(&serde_json::json!({"input": retry.input, "from": retry.from}));
        may_repeat(&state, retry.from.as_ref()).map_err(reject)?;
        let kept = self.kept(&state, retry.from.as_ref()).await?;
        let origin = state.origin.as_deref();
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
            start: true,
        };
        let submission = Submission {
            command,
            flow: Flow::Given,
            issuer: retry.issuer.clone(),
            endpoint: endpoint.into(),
            key: Some(key.clone()),
            digest: Some(digest),
            correlation_id: Some(correlation_id.clone()),
        };
        let asked = self.submitted(submission, key, correlation_id).await?;
        if state.retried_by.as_ref() != Some(&asked.execution) {
            let link = AnnotateExecution {
                add_labels: Vec::new(),
                remove_labels: Vec::new(),
                hidden: None,
                retried_by: Some(asked.execution.clone()),
            };
            // When this fails, the repeat under the same key does it.
            self.command(execution, &Request::new(retry.issuer, self.clock.now(), link)).await?;
        }
        Ok(asked)
    }

    /// What the new execution keeps of the old one.
    async fn kept(&self, state: &State, from: Option<&NodeId>) -> Result<Kept, EngineError> {
        let stored = self.store.read(&state.id, Version(0)).await?;
        let records = stored.iter().map(|stored| decode(&state.id, stored));
        let records = records.collect::<Result<Vec<_>, _>>()?;
        let history = records.iter().flat_map(|record| &record.events).map(|envelope| &envelope.event);
        let mut kept = Kept::new(state, history, from);
        if Weight::of(&kept).bytes > KEPT_BYTES {
            for node in kept.nodes.values_mut() {
                self.put_aside(node).await?;
            }
        }
        Ok(kept)
    }

    /// Puts a large value beside the log, before the record that names it.
    async fn put_aside(&self, node: &mut KeptNode) -> Result<(), EngineError> {
        let Some(value) = node.output.as_ref().filter(|_| node.output_ref.is_none()) else { return Ok(()) };
        // A value that was read from a log can be written again.
        let bytes = serde_json::to_vec(value).unwrap_or_default();
        if bytes.len() > LARGE_VALUE {
            let digest = self.store.put_blob(&bytes).await?;
            let size = bytes.len() as u64;
            node.output_ref = Some(BlobRef { digest, size, encoding: Encoding::Json });
            node.output = None;
        }
        Ok(())
    }
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
