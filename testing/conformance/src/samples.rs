//! Small things to store.

use pyoco_core::ids::{Attempt, ExecutionId, NodeId, Tag, TenantId, Version, WorkerId};
use pyoco_core::time::{Millis, Timestamp};
use pyoco_core::view::{RunStatus, RunSummary};
use pyoco_ports::{Append, IndexRow, Job, LogLine, LogStream};

pub(crate) const LEASE: Millis = Millis(30_000);

pub(crate) fn execution(name: &str) -> ExecutionId {
    ExecutionId::new(name).unwrap()
}

pub(crate) fn tag(name: &str) -> Tag {
    Tag::new(name).unwrap()
}

pub(crate) fn worker(name: &str) -> WorkerId {
    WorkerId::new(name).unwrap()
}

/// So many milliseconds after the beginning of the tests' time.
pub(crate) fn at(millis: u64) -> Timestamp {
    Timestamp::from_micros(1_700_000_000_000_000).after(Millis(millis))
}

pub(crate) fn record(name: &str, expected: u64) -> Append {
    let bytes = format!("{{\"of\":\"{name}\",\"after\":{expected}}}").into_bytes();
    Append::new(execution(name), Version(expected), bytes)
}

pub(crate) fn job(name: &str, tag_name: &str) -> Job {
    Job { execution: execution(name), tag: tag(tag_name), body: format!("job of {name}").into_bytes() }
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
        workflow_sha256: None,
        hidden: false,
        next_timer: None,
        wants_job: false,
    }
}

pub(crate) fn tenant(name: &str) -> TenantId {
    TenantId::new(name).unwrap()
}

pub(crate) fn line(node: &str, attempt: u32, millis: u64, text: &str) -> LogLine {
    LogLine {
        node: NodeId::new(node).unwrap(),
        attempt: Attempt(attempt),
        stream: LogStream::Stdout,
        at: at(millis),
        text: text.to_owned(),
    }
}
