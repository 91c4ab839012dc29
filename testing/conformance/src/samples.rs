//! Small things to store.

use pyoco_core::ids::{Attempt, ExecutionId, KeyId, NodeId, Tag, TenantId, Version, WorkerId};
use pyoco_core::time::{Millis, Timestamp};
use pyoco_core::view::{RunStatus, RunSummary};
use pyoco_ports::{
    Append, GraphFormat, GraphRecord, GraphSource, IndexRow, Job, LogLine, LogStream, LogTerms, Wait,
    WorkerRecord,
};
use serde_json::{Value, json};

pub(crate) fn execution(name: &str) -> ExecutionId {
    ExecutionId::new(name).unwrap()
}

pub(crate) fn tag(name: &str) -> Tag {
    Tag::new(name).unwrap()
}

pub(crate) fn worker(name: &str) -> WorkerId {
    WorkerId::new(name).unwrap()
}

pub(crate) fn key(name: &str) -> KeyId {
    KeyId::new(name).unwrap()
}

/// So many milliseconds after the beginning of the tests' time.
pub(crate) fn at(millis: u64) -> Timestamp {
    Timestamp::from_micros(1_700_000_000_000_000).after(Millis(millis))
}

pub(crate) fn record(name: &str, expected: u64) -> Append {
    let bytes = format!("{{\"of\":\"{name}\",\"after\":{expected}}}").into_bytes();
    Append::new(execution(name), Version(expected), bytes)
}

/// A job, in the form that other implementations read too.
pub(crate) fn job(name: &str, tag_name: &str) -> Job {
    let body = json!({"run_id": name, "flow_name": "main", "tag": tag_name, "params": {"text": "ünï"}});
    Job { execution: execution(name), tag: tag(tag_name), body: serde_json::to_vec(&body).unwrap() }
}

pub(crate) fn row(name: &str, version: u64, updated: u64) -> IndexRow {
    IndexRow {
        execution: execution(name),
        version: Version(version),
        summary: RunSummary {
            run_id: name.to_owned(),
            flow_name: "main".to_owned(),
            tag: Some(tag("default")),
            tags: vec!["default".to_owned(), "ünï".to_owned()],
            tenant_id: None,
            api_key_id: None,
            status: RunStatus::Pending,
            updated_at: Some(at(updated).as_unix_seconds()),
            heartbeat_at: None,
            worker_id: None,
            error: None,
        },
        created_at: at(0),
        updated_at: at(updated),
        started_at: None,
        ended_at: None,
        cancel_requested_at: None,
        workflow_sha256: None,
        hidden: false,
        next_timer: None,
        wants_job: false,
        waits: Vec::new(),
        has_waited: false,
        is_archived: false,
        is_foreign: false,
    }
}

pub(crate) fn wait(node: &str, millis: u64) -> Wait {
    Wait { node: NodeId::new(node).unwrap(), since: at(millis) }
}

/// A version of a graph of nobody.
pub(crate) fn graph(id: &str, version: u64) -> GraphRecord {
    let text = format!("{{\"flow\": \"{id}\", \"n\": {version}}}");
    GraphRecord {
        tenant: None,
        id: id.to_owned(),
        version,
        at: at(version % 1000),
        by: Some("ünï".to_owned()),
        source: Some(GraphSource { format: GraphFormat::Json, text }),
    }
}

/// The snapshot of a row, in the members that the contract gives it.
pub(crate) fn snapshot(row: &IndexRow) -> Vec<u8> {
    let mut members = serde_json::to_value(&row.summary).unwrap();
    members["params"] = json!({"text": "ünï", "number": 0.1});
    members["version"] = json!(row.version);
    serde_json::to_vec(&members).unwrap()
}

/// A report, as workers write it.
pub(crate) fn report(name: &str, millis: u64) -> WorkerRecord {
    let seen = at(millis).as_unix_seconds();
    let body = json!({
        "worker_id": name, "instance_id": name, "state": "IDLE", "hidden": false, "tags": ["ünï"],
        "last_seen_at": seen, "last_heartbeat_at": seen, "heartbeat_at": seen, "updated_at": seen,
    });
    WorkerRecord {
        worker: worker(name),
        seen_at: at(millis),
        hidden: false,
        body: serde_json::to_vec(&body).unwrap(),
    }
}

/// A record without what a store may keep in either place: the mark in the body.
pub(crate) fn unmarked(record: WorkerRecord) -> (WorkerId, Timestamp, bool, Value) {
    let mut body: Value = serde_json::from_slice(&record.body).unwrap();
    body["hidden"] = Value::Null;
    (record.worker, record.seen_at, record.hidden, body)
}

pub(crate) fn tenant(name: &str) -> TenantId {
    TenantId::new(name).unwrap()
}

pub(crate) fn line(node: &str, attempt: u32, millis: u64, text: &str) -> LogLine {
    LogLine {
        node: Some(NodeId::new(node).unwrap()),
        attempt: Attempt(attempt),
        stream: LogStream::Stdout,
        at: at(millis),
        text: text.to_owned(),
    }
}

/// More than any case writes, and there is more to come.
pub(crate) const OPEN: LogTerms = LogTerms { max_bytes: 64 * 1024 * 1024, closes: false };

/// The text of a log.
pub(crate) fn text(lines: &[(u64, LogLine)]) -> String {
    let mut text = String::new();
    for (_, line) in lines {
        line.write_to(&mut text);
    }
    text
}
