//! What is derived from a state: its row in the index, its job message, its dead letter.

use pyoco_core::event::{Actor, ActorKind};
use pyoco_core::ids::Tag;
use pyoco_core::outcome::Effect;
use pyoco_core::state::{Phase, State};
use pyoco_core::time::{Millis, Timestamp};
use pyoco_core::view::RunSummary;
use pyoco_ports::{DeadLetterRecord, IndexRow, Job};
use serde_json::{Value, json};

/// The row of an execution; none before it exists. `force_after` is how long an end may take.
pub(crate) fn row(state: &State, force_after: Millis) -> Option<IndexRow> {
    let origin = state.origin.as_ref()?;
    let mut summary = RunSummary::of(state, None);
    // What one record had no room for follows at once; if the process dies in between, the sweeper sees to it.
    let unfinished = state.updated_at.filter(|_| state.claim.is_none() && state.needs_advance());
    // Lists and queues agree on where it goes.
    summary.tag.get_or_insert_default();
    Some(IndexRow {
        execution: state.id.clone(),
        version: state.version,
        summary,
        created_at: origin.at,
        updated_at: state.updated_at.unwrap_or(origin.at),
        workflow_sha256: origin.workflow.as_ref().map(|workflow| workflow.sha256.clone()),
        hidden: state.hidden,
        next_timer: state
            .next_timer()
            .into_iter()
            .chain(forced_at(state, force_after))
            .chain(unfinished)
            .min(),
        wants_job: state.claim.is_none() && state.wants_worker(),
    })
}

/// When a cancel or failure that its worker has not ended is to be ended without it.
pub(crate) fn forced_at(state: &State, force_after: Millis) -> Option<Timestamp> {
    let since = match state.phase {
        Phase::Canceling => state.cancel.as_ref().map(|cancel| cancel.at),
        Phase::Failing => state.failure.as_ref().map(|failure| failure.at),
        Phase::Absent | Phase::Created | Phase::Started => None,
        Phase::Completed | Phase::Failed | Phase::Canceled => None,
    };
    // Without a grace period tasks are only ever asked, so nobody gives up on them either.
    since.filter(|_| force_after != Millis(u64::MAX)).map(|since| since.after(force_after))
}

/// The job that brings an execution to a worker.
pub(crate) fn job(state: &State, now: Timestamp) -> Job {
    let body = serde_json::to_vec(&job_body(state, now)).unwrap_or_default();
    Job { execution: state.id.clone(), tag: tag_of(state), body }
}

fn tag_of(state: &State) -> Tag {
    state.origin.as_ref().and_then(|origin| origin.tag.clone()).unwrap_or_default()
}

/// The job message in the form that other implementations read.
pub fn job_body(state: &State, now: Timestamp) -> Value {
    let origin = state.origin.as_deref();
    let mut body = json!({
        "run_id": state.id,
        "flow_name": origin.map(|origin| origin.flow.clone()),
        "tag": origin.and_then(|origin| origin.tag.clone()),
        "tags": state.labels,
        "tenant_id": origin.and_then(|origin| origin.tenant.clone()),
        "api_key_id": origin.and_then(|origin| origin.api_key_id.clone()),
        "params": origin.map(|origin| Value::Object(origin.input.0.clone())),
        "submitted_at": now.as_unix_seconds(),
    });
    let workflow = origin.and_then(|origin| origin.workflow.as_ref());
    if let (Some(text), Some(workflow), Some(members)) = (&state.workflow, workflow, body.as_object_mut()) {
        members.insert("workflow_yaml".to_owned(), json!(text));
        members.insert("workflow_yaml_sha256".to_owned(), json!(workflow.sha256));
        members.insert("workflow_yaml_bytes".to_owned(), json!(workflow.bytes));
    }
    body
}

/// The dead letter that an effect asks for, in the contract's form.
pub(crate) fn dead_letter(
    state: &State,
    effect: &Effect,
    actor: &Actor,
    now: Timestamp,
) -> Option<DeadLetterRecord> {
    let (reason, error) = match effect {
        Effect::PublishDeadLetter { reason, error } => (reason, error),
        Effect::EnqueueJob(_) | Effect::DropJob | Effect::InterruptWorker(_) | Effect::Advance => {
            return None;
        }
    };
    let origin = state.origin.as_deref();
    let tag = tag_of(state);
    // A worker that cannot even load a flow never holds it, but it is the one that says so.
    let worker = state.last_worker.as_ref().map(|worker| worker.as_str());
    let worker = worker.or_else(|| actor.id.as_deref().filter(|_| actor.kind == ActorKind::System));
    let body = json!({
        "reason": reason,
        "error": error,
        "timestamp": now.as_unix_seconds(),
        "run_id": state.id,
        "flow_name": origin.map(|origin| origin.flow.clone()),
        "tag": tag,
        "tags": state.labels,
        "tenant_id": origin.and_then(|origin| origin.tenant.clone()),
        "api_key_id": origin.and_then(|origin| origin.api_key_id.clone()),
        "worker_id": worker,
    });
    let key = format!("{}/{}", state.id, state.version);
    Some(DeadLetterRecord {
        key,
        tag: tag.as_str().to_owned(),
        at: now,
        body: serde_json::to_vec(&body).unwrap_or_default(),
    })
}
