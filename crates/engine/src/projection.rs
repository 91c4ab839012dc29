//! What is derived from a state: its row in the index, its job message, its dead letter.

use pyoco_core::event::{Actor, ActorKind};
use pyoco_core::ids::{ExecutionId, Tag, TenantId};
use pyoco_core::json::Object;
use pyoco_core::outcome::Effect;
use pyoco_core::state::{Phase, State};
use pyoco_core::time::{Millis, Timestamp};
use pyoco_core::view::RunSummary;
use pyoco_ports::{DeadLetterRecord, IndexRow, Job, Wait};
use serde::Serialize;
use serde_json::json;

use crate::prune;

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
        // Another gateway's clock may be behind the one that created it.
        updated_at: state.updated_at.map_or(origin.at, |at| at.max(origin.at)),
        started_at: state.active_since,
        ended_at: state.ended_at,
        cancel_requested_at: state.cancel.as_ref().map(|cancel| cancel.at),
        workflow_sha256: origin.workflow.as_ref().map(|workflow| workflow.sha256.clone()),
        hidden: state.hidden,
        next_timer: state
            .next_timer()
            .into_iter()
            .chain(forced_at(state, force_after))
            .chain(unfinished)
            .min(),
        wants_job: state.claim.is_none() && state.wants_worker(),
        waits: waits(state),
        has_waited: state.has_waited,
        is_archived: state.archived_at.is_some(),
        is_foreign: prune::creation(state).is_none(),
    })
}

/// The nodes that somebody can answer, longest first. Nobody can any more once the execution is on its way out.
fn waits(state: &State) -> Vec<Wait> {
    if state.phase != Phase::Started {
        return Vec::new();
    }
    // The row is made with every record: very many waits must not be walked for the few that it shows. Those that wait since the same
    // moment are told by name.
    let by_age = &state.open.waiting_since;
    let last_shown = by_age.iter().nth(IndexRow::MAX_WAITS - 1).map(|(since, _)| *since);
    let shown = by_age.iter().take_while(|(since, _)| last_shown.is_none_or(|last| *since <= last));
    let mut waits: Vec<Wait> = shown
        .filter_map(|(since, number)| Some(Wait { node: state.node(*number)?.0.clone(), since: *since }))
        .collect();
    waits.sort_by(|one, other| (one.since, &one.node).cmp(&(other.since, &other.node)));
    waits.truncate(IndexRow::MAX_WAITS);
    waits
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
    Job { execution: state.id.clone(), tag: tag_of(state), body: job_body(state, now) }
}

fn tag_of(state: &State) -> Tag {
    state.origin.as_ref().and_then(|origin| origin.tag.clone()).unwrap_or_default()
}

/// The job message in the form that other implementations read.
pub fn job_body(state: &State, now: Timestamp) -> Vec<u8> {
    let origin = state.origin.as_deref();
    let workflow = origin.and_then(|origin| origin.workflow.as_ref()).zip(state.workflow.as_deref());
    let body = JobBody {
        run_id: &state.id,
        flow_name: origin.map(|origin| &*origin.flow),
        tag: origin.and_then(|origin| origin.tag.as_ref()),
        tags: &state.labels,
        tenant_id: origin.and_then(|origin| origin.tenant.as_ref()),
        api_key_id: origin.and_then(|origin| origin.api_key_id.as_deref()),
        params: origin.map(|origin| &origin.input),
        submitted_at: now.as_unix_seconds(),
        workflow_yaml: workflow.map(|(_, text)| text),
        workflow_yaml_sha256: workflow.map(|(workflow, _)| &*workflow.sha256),
        workflow_yaml_bytes: workflow.map(|(workflow, _)| workflow.bytes),
    };
    // Room for most, taken once. Strings, numbers and lists always have a JSON form.
    let mut bytes = Vec::with_capacity(512 + workflow.map_or(0, |(_, text)| text.len() + text.len() / 8));
    let _ = serde_json::to_writer(&mut bytes, &body);
    bytes
}

/// The members of a job message, in the order of the contract.
#[derive(Serialize)]
struct JobBody<'a> {
    run_id: &'a ExecutionId,
    flow_name: Option<&'a str>,
    tag: Option<&'a Tag>,
    tags: &'a [String],
    tenant_id: Option<&'a TenantId>,
    api_key_id: Option<&'a str>,
    params: Option<&'a Object>,
    submitted_at: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    workflow_yaml: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    workflow_yaml_sha256: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    workflow_yaml_bytes: Option<u64>,
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

#[cfg(test)]
mod tests {
    use pyoco_core::command::{AdvanceExecution, Issuer};
    use pyoco_testkit::{
        Execution, Graph, caller, cancel, external, put_waiting, resume, start_node, succeed,
    };

    use super::*;

    fn row_of(execution: &Execution) -> IndexRow {
        row(execution.state(), Millis(30_000)).unwrap()
    }

    fn waiting(row: &IndexRow) -> Vec<&str> {
        row.waits.iter().map(|wait| wait.node.as_str()).collect()
    }

    /// One more node waits, a millisecond after the one before.
    fn put(execution: Execution, node: &str) -> Execution {
        let execution = execution.given(&caller(), start_node(node)).later(Millis(1));
        execution.given(&caller(), put_waiting(node, "k"))
    }

    #[test]
    fn the_row_shows_who_can_be_answered_longest_wait_first() {
        let plan = Graph::new().task("a", external()).task("b", external()).plan();
        let execution = Execution::started(&plan);
        let new = row_of(&execution);
        assert_eq!((waiting(&new).len(), new.has_waited), (0, false));
        let execution = put(put(execution, "b"), "a");
        let both = row_of(&execution);
        assert_eq!((waiting(&both), both.has_waited), (vec!["b", "a"], true));
        assert!(both.waits[0].since < both.waits[1].since && both.waits[1].since <= execution.now());
        let execution = execution.given(&caller(), resume("b", "k"));
        assert_eq!(waiting(&row_of(&execution)), ["a"]);
        let execution = execution.given(&caller(), succeed("b", serde_json::json!(1)));
        // Whoever waits when a cancel comes is answered by nobody.
        let ended = row_of(&execution.given(&caller(), cancel()));
        assert_eq!((waiting(&ended).len(), ended.has_waited), (0, true));
    }

    #[test]
    fn of_very_many_waits_the_longest_are_shown() {
        let names: Vec<String> = (0..IndexRow::MAX_WAITS + 9).map(|number| format!("n{number}")).collect();
        let graph = names.iter().fold(Graph::new(), |graph, name| graph.task(name, external()));
        let mut execution = Execution::started(&graph.plan());
        while execution.state().needs_advance() {
            execution = execution.given(&Issuer::Scheduler, AdvanceExecution {});
        }
        for name in names.iter().rev() {
            execution = put(execution, name);
        }
        let longest: Vec<&str> = names.iter().rev().take(IndexRow::MAX_WAITS).map(String::as_str).collect();
        assert_eq!(waiting(&row_of(&execution)), longest);
    }
}
