//! What a row of the index costs: rows of new runs, put 1,024 at a time into a store that nobody opens again.
//!
//! `cargo run --release -p pyoco-store-sqlite --example rows`
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement for a person")]

use std::sync::Arc;
use std::time::Duration;

use pyoco_core::ids::{ExecutionId, Tag, Version};
use pyoco_core::time::Timestamp;
use pyoco_core::view::{RunStatus, RunSummary};
use pyoco_ports::{IndexRow, RunIndex as _};
use pyoco_store_sqlite::SqliteStore;
use tokio::time::Instant;

const TOGETHER: usize = 1_024;
const TIMES: usize = 80;

fn row(number: usize) -> IndexRow {
    let at = Timestamp::from_micros(1_700_000_000_000_000 + i64::try_from(number).unwrap() * 80);
    let name = format!("018bcfe5-68{:02x}-7000-8000-{number:012x}", number / 10_000);
    let tag = Tag::new("nobody").unwrap();
    let summary = RunSummary {
        run_id: name.clone(),
        flow_name: "noop".to_owned(),
        tags: vec![tag.to_string()],
        tag: Some(tag),
        tenant_id: None,
        api_key_id: None,
        status: RunStatus::Pending,
        updated_at: Some(at.as_unix_seconds()),
        heartbeat_at: None,
        worker_id: None,
        error: None,
    };
    IndexRow {
        execution: ExecutionId::new(&name).unwrap(),
        version: Version(1),
        summary,
        created_at: at,
        updated_at: at,
        started_at: None,
        ended_at: None,
        cancel_requested_at: None,
        workflow_sha256: None,
        hidden: false,
        next_timer: None,
        wants_job: true,
        waits: Vec::new(),
        has_waited: false,
        is_archived: false,
        is_foreign: false,
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::scratch(folder.path()).unwrap();
    let mut took = Duration::ZERO;
    for time in 0..TIMES {
        let rows: Arc<[IndexRow]> = (0..TOGETHER).map(|number| row(time * TOGETHER + number)).collect();
        let begin = Instant::now();
        store.put_all(rows).await.unwrap();
        took += begin.elapsed();
    }
    println!("{:.2} µs a row", took.as_secs_f64() * 1e6 / (TIMES * TOGETHER) as f64);
}
