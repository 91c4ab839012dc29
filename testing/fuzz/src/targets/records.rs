//! What is stored or sent as JSON: messages of the queue, records, events, commands, plans, snapshots, records of keys.

use std::cell::RefCell;

use pyoco_access::KeyRecord;
use pyoco_core::command::Command;
use pyoco_core::event::EventEnvelope;
use pyoco_core::ids::ExecutionId;
use pyoco_core::json::{self, Limits};
use pyoco_core::plan::Plan;
use pyoco_core::record::Record;
use pyoco_core::state::State;
use pyoco_core::time::Millis;
use pyoco_core::view::RunSnapshot;
use pyoco_engine::{Engine, job_body};
use pyoco_ports::{Heard, News};
use pyoco_store_nats::snapshot::{self, Snapshot};
use pyoco_testing_deployment::Deployment;
use pyoco_testkit::{
    Execution, Graph, add_label, callable, caller, cancel, fail, key, start_node, succeed, wait, worker,
};
use pyoco_worker::JobMessage;
use serde_json::{Value, json};

use super::scene;

/// Something of everything.
fn executions() -> Vec<Execution> {
    let chain = Graph::chain(&["a", "b"], &callable()).plan();
    let fork = Graph::new().task("a", callable()).task("b", callable()).task("ask", wait("door"));
    let fork = fork.edge("a", "ask").edge("b", "ask").plan();
    let done = Execution::claimed(&chain)
        .when_keyed(key("k"), &worker(1), start_node("a"))
        .execution
        .given(&worker(1), succeed("a", json!({"x": [1, 2.5, "ü", null], "y": {"z": u64::MAX}})))
        .later(Millis(1))
        .given(&worker(1), start_node("b"))
        .given(&worker(1), succeed("b", json!(0.1)))
        .given(&caller(), add_label("l"));
    let canceled = Execution::claimed(&fork).given(&worker(1), start_node("a")).given(&caller(), cancel());
    let failed = Execution::claimed(&fork)
        .given(&worker(1), start_node("b"))
        .given(&worker(1), fail("b", "it was to fail"));
    vec![done, canceled, failed]
}

pub(super) fn records() -> Vec<Vec<u8>> {
    executions().iter().flat_map(|execution| execution.log().to_vec()).collect()
}

pub(super) fn record(bytes: &[u8]) -> bool {
    // Whatever it is, folding it is an answer.
    let _ = State::absent(ExecutionId::new("e-1").unwrap()).fold(bytes);
    let Ok(record) = Record::decode(bytes) else { return false };
    assert_eq!(Record::decode(&record.encode()), Ok(record));
    true
}

pub(super) fn events() -> Vec<Vec<u8>> {
    let events = executions().into_iter().flat_map(|execution| execution.records());
    let events = events.flat_map(|record| record.events);
    events.map(|event| serde_json::to_vec(&event).unwrap()).collect()
}

pub(super) fn event(bytes: &[u8]) -> bool {
    let Ok(event) = json::decode::<EventEnvelope>(bytes, Limits::RECORD) else { return false };
    let again = serde_json::to_vec(&event).unwrap();
    assert_eq!(json::decode::<EventEnvelope>(&again, Limits::RECORD), Ok(event));
    true
}

pub(super) fn command(bytes: &[u8]) -> bool {
    let Ok(command) = json::decode::<Command>(bytes, Limits::BODY) else { return false };
    let again = serde_json::to_vec(&command).unwrap();
    let again = json::decode::<Command>(&again, Limits { bytes: usize::MAX, ..Limits::BODY });
    assert_eq!(again.as_ref().map(Command::digest), Ok(command.digest()));
    assert_eq!(again, Ok(command));
    true
}

pub(super) fn plans() -> Vec<Vec<u8>> {
    let plans = executions().into_iter().filter_map(|execution| execution.state().plan.clone());
    plans.map(|plan| serde_json::to_vec(&plan).unwrap()).collect()
}

pub(super) fn plan(bytes: &[u8]) -> bool {
    let Ok(plan) = json::decode::<Plan>(bytes, Limits::BODY) else { return false };
    let again = serde_json::to_vec(&plan).unwrap();
    assert_eq!(json::decode::<Plan>(&again, Limits { bytes: usize::MAX, ..Limits::BODY }), Ok(plan));
    true
}

pub(super) fn jobs() -> Vec<Vec<u8>> {
    executions().into_iter().map(|execution| job_body(execution.state(), execution.now())).collect()
}

pub(super) fn job_message(bytes: &[u8]) -> bool {
    JobMessage::decode(bytes).is_ok()
}

/// Runs as they stand in the bucket, and as another implementation writes them there.
pub(super) fn snapshots() -> Vec<Vec<u8>> {
    let shown = executions().into_iter().flat_map(|execution| {
        let state = execution.state();
        let theirs = RunSnapshot::of(state, None).to_json(262_144);
        [
            scene::row(state)
                .and_then(|row| snapshot::with_row(&theirs, &row).ok())
                .map(|ours| ours.to_vec()),
            Some(theirs),
        ]
    });
    shown.flatten().collect()
}

pub(super) fn snapshot(bytes: &[u8]) -> bool {
    let Some((execution, read)) = snapshot::read(bytes) else { return false };
    match read {
        Snapshot::Ours(row) => {
            // What was read, written again, is read as the same.
            let body = without_index(bytes);
            let again = snapshot::with_row(&body, &row).unwrap();
            assert_eq!(snapshot::read(&again), Some((execution, Snapshot::Ours(row))));
        }
        Snapshot::Changed(_, body) | Snapshot::Foreign(body) => {
            let _ = snapshot::foreign_row(&execution, &body);
        }
    }
    true
}

fn without_index(bytes: &[u8]) -> Vec<u8> {
    let mut value: Value = serde_json::from_slice(bytes).unwrap();
    if let Some(members) = value.as_object_mut() {
        members.shift_remove("index");
    }
    serde_json::to_vec(&value).unwrap()
}

thread_local! {
    /// An engine, and how many runs it has heard of.
    static HEARING: RefCell<Option<(Engine, u32)>> = const { RefCell::new(None) };
}

/// What another implementation says of a run is taken into its log, or left alone; the log can be folded afterwards.
pub(super) fn foreign_run(bytes: &[u8]) -> bool {
    let Ok(snapshot) = serde_json::from_slice::<Value>(bytes) else { return false };
    let fresh = || (Deployment::new().engine(), 0);
    let known = HEARING.take().filter(|(_, heard)| *heard < 500);
    let (engine, number) = known.unwrap_or_else(fresh);
    let execution = ExecutionId::new(&format!("foreign-{number}")).unwrap();
    let taken = scene::block_on(async {
        let heard = Heard { execution: execution.clone(), news: News::Foreign { snapshot, revision: 1 } };
        // A refusal is an answer.
        let _ = engine.heard(&heard).await;
        let state = engine.state(&execution).await.unwrap();
        assert!(engine.audit(&execution).await.unwrap().findings.is_empty());
        state.origin.is_some()
    });
    HEARING.set(Some((engine, number + 1)));
    taken
}

pub(super) fn key_record(bytes: &[u8]) -> bool {
    let Ok(record) = KeyRecord::from_bytes(bytes) else { return false };
    // What others wrote into it, and what is not as long as it was, may not fit any more.
    if let Ok(again) = record.to_bytes() {
        assert_eq!(KeyRecord::from_bytes(&again), Ok(record));
    }
    true
}
