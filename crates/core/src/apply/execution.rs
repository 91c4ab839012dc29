//! Events of the execution as a whole.

use std::sync::Arc;

use crate::event::{
    ErrorInfo, ExecutionCancelRequested, ExecutionCanceled, ExecutionCreated, ExecutionFailRequested,
    ExecutionFailed,
};
use crate::ids::NodeId;
use crate::state::{CancelRequest, Failure, Origin, Phase, State};
use crate::time::Timestamp;

impl State {
    pub(super) fn execution_created(&mut self, payload: &ExecutionCreated, at: Timestamp) {
        match self.phase {
            Phase::Absent => {}
            Phase::Created | Phase::Started | Phase::Failing | Phase::Canceling => return,
            Phase::Completed | Phase::Failed | Phase::Canceled => return,
        }
        let input = payload.input.clone().unwrap_or_default();
        self.context.give_params(&input);
        self.labels.clone_from(&payload.labels);
        self.phase = Phase::Created;
        self.origin = Some(Arc::new(Origin {
            at,
            flow: payload.graph_id.clone(),
            input,
            tag: payload.tag.clone(),
            tenant: payload.tenant_id.clone(),
            api_key_id: payload.api_key_id.clone(),
            workflow: payload.workflow.clone(),
            graph_version: payload.graph_version,
            retry_of: payload.retry_of.clone(),
            traceparent: payload.traceparent.clone(),
        }));
    }

    pub(super) fn execution_started(&mut self, at: Timestamp) {
        match self.phase {
            Phase::Created => {
                self.phase = Phase::Started;
                self.started_at = Some(at);
                self.open_root();
            }
            Phase::Absent | Phase::Started | Phase::Failing | Phase::Canceling => {}
            Phase::Completed | Phase::Failed | Phase::Canceled => {}
        }
    }

    pub(super) fn execution_completed(&mut self, at: Timestamp) {
        match self.phase {
            Phase::Created | Phase::Started => self.end(Phase::Completed, at),
            // Cancel wins, and so does a failure that was announced before.
            Phase::Canceling | Phase::Failing => {}
            Phase::Absent | Phase::Completed | Phase::Failed | Phase::Canceled => {}
        }
    }

    pub(super) fn execution_archived(&mut self, at: Timestamp) {
        match self.phase {
            Phase::Completed | Phase::Failed | Phase::Canceled => {
                self.archived_at.get_or_insert(at);
            }
            Phase::Absent | Phase::Created | Phase::Started | Phase::Failing | Phase::Canceling => {}
        }
    }

    pub(super) fn cancel_requested(&mut self, payload: &ExecutionCancelRequested, at: Timestamp) {
        match self.phase {
            Phase::Created | Phase::Started | Phase::Failing => {
                let (reason, by) = (payload.reason.clone(), payload.requested_by.clone());
                self.cancel = Some(CancelRequest { at, reason, by });
                self.phase = Phase::Canceling;
                self.agenda.clear();
            }
            Phase::Absent | Phase::Canceling | Phase::Completed | Phase::Failed | Phase::Canceled => {}
        }
    }

    pub(super) fn execution_canceled(&mut self, payload: &ExecutionCanceled, at: Timestamp) {
        match self.phase {
            Phase::Created | Phase::Started | Phase::Failing | Phase::Canceling => {
                let reason = &payload.reason;
                self.cancel.get_or_insert_with(|| CancelRequest { at, reason: reason.clone(), by: None });
                self.end(Phase::Canceled, at);
            }
            Phase::Absent | Phase::Completed | Phase::Failed | Phase::Canceled => {}
        }
    }

    pub(super) fn fail_requested(&mut self, payload: &ExecutionFailRequested, at: Timestamp) {
        match self.phase {
            Phase::Created | Phase::Started => {
                self.note_failure(
                    payload.failed_node_id.as_ref(),
                    payload.error.as_ref(),
                    payload.reason.as_deref(),
                    at,
                );
                self.phase = Phase::Failing;
                self.agenda.clear();
            }
            Phase::Absent | Phase::Failing | Phase::Canceling => {}
            Phase::Completed | Phase::Failed | Phase::Canceled => {}
        }
    }

    pub(super) fn execution_failed(&mut self, payload: &ExecutionFailed, at: Timestamp) {
        match self.phase {
            Phase::Created | Phase::Started | Phase::Failing => {
                self.note_failure(
                    payload.failed_node_id.as_ref(),
                    payload.error.as_ref(),
                    payload.reason.as_deref(),
                    at,
                );
                self.end(Phase::Failed, at);
            }
            // Cancel wins; the event stays in the log for the audit.
            Phase::Canceling => {}
            Phase::Absent | Phase::Completed | Phase::Failed | Phase::Canceled => {}
        }
    }

    /// The first failure is the one that is shown.
    fn note_failure(
        &mut self,
        node: Option<&NodeId>,
        error: Option<&ErrorInfo>,
        reason: Option<&str>,
        at: Timestamp,
    ) {
        if self.failure.is_some() {
            return;
        }
        let error = error.cloned().unwrap_or_else(|| ErrorInfo::new("FAILED", reason.unwrap_or("failed")));
        self.last_error = Some(error.text().to_owned());
        self.failure = Some(Failure { at, node: node.cloned(), error });
    }

    fn end(&mut self, phase: Phase, at: Timestamp) {
        self.phase = phase;
        self.ended_at = Some(at);
        self.agenda.clear();
    }
}
