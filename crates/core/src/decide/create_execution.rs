//! CreateExecution: an execution comes into being, once.

use super::draft::Draft;
use super::{Ruling, advance};
use crate::command::{CreateExecution, Workflow};
use crate::event::{ExecutionCreated, ExecutionStarted};
use crate::outcome::{Outcome, Reason};
use crate::state::Phase;

pub(super) fn decide(draft: &mut Draft<'_>, command: &CreateExecution) -> Ruling {
    match draft.state.phase {
        Phase::Absent => {}
        Phase::Created | Phase::Started | Phase::Failing | Phase::Canceling => {
            return Err(Reason::ExecutionExists);
        }
        Phase::Completed | Phase::Failed | Phase::Canceled => return Err(Reason::ExecutionExists),
    }
    if let Some(plan) = &command.plan {
        draft.fix_plan(plan);
    }
    if let Some(kept) = &command.keep {
        draft.keep(kept);
    }
    if let Some(workflow) = &command.workflow {
        draft.keep_workflow(&workflow.text);
    }
    draft.emit(ExecutionCreated {
        graph_id: command.graph_id.clone(),
        input: Some(command.input.clone()),
        tag: command.tag.clone(),
        labels: command.labels.clone(),
        tenant_id: command.tenant_id.clone(),
        api_key_id: command.api_key_id.clone(),
        workflow: command.workflow.as_ref().map(Workflow::reference),
        graph_version: command.graph_version,
        retry_of: command.retry_of.clone(),
        traceparent: command.traceparent.clone(),
        extra: Default::default(),
    });
    if command.start {
        let started_by = Some(draft.issuer.actor().into());
        draft.emit(ExecutionStarted { started_by, extra: Default::default() });
        advance::advance(draft);
    }
    Ok(Outcome::Accepted)
}
