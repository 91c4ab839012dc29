//! A scratch index keeps the promises of the index, and takes many rows quickly.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and this one measures"
)]

use std::time::Instant;

use pyoco_core::ids::{ExecutionId, Tag, Version};
use pyoco_core::time::{Millis, Timestamp};
use pyoco_core::view::{RunStatus, RunSummary};
use pyoco_ports::{Filter, IndexRow, RunIndex as _};
use pyoco_store_sqlite::SqliteStore;

fn row(number: u64) -> IndexRow {
    let name = format!("{number:032x}");
    let updated_at = Timestamp::from_micros(1_700_000_000_000_000).after(Millis(number * 7));
    IndexRow {
        execution: ExecutionId::new(&name).unwrap(),
        version: Version(4),
        summary: RunSummary {
            run_id: name,
            flow_name: format!("flow{}", number % 20),
            tag: Some(Tag::default()),
            tags: vec!["default".to_owned()],
            tenant_id: None,
            api_key_id: None,
            status: if number.is_multiple_of(50) { RunStatus::Failed } else { RunStatus::Completed },
            updated_at: Some(updated_at.as_unix_seconds()),
            heartbeat_at: Some(updated_at.as_unix_seconds()),
            worker_id: None,
            error: None,
        },
        created_at: updated_at,
        updated_at,
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

/// Fills an index the way a feed does: many rows in flight.
async fn fill(rows: u64) -> SqliteStore {
    let parent = std::env::temp_dir();
    let store = SqliteStore::scratch(&parent).unwrap();
    let begun = Instant::now();
    for first in (0..rows).step_by(500) {
        let puts = (first..rows.min(first + 500)).map(|number| store.put(row(number)));
        for done in futures_util::future::join_all(puts).await {
            done.unwrap();
        }
    }
    println!("{rows} rows in {:?}", begun.elapsed());
    store
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_came_in_a_flood_are_all_there() {
    let store = fill(5_000).await;
    assert_eq!(store.counts(None).await.unwrap(), [(RunStatus::Completed, 4_900), (RunStatus::Failed, 100)]);
    let page = store.list(&Filter::default(), 2).await.unwrap();
    assert_eq!(page.rows, [row(4_999), row(4_998)]);
}

/// Slow in a debug build; `cargo test --release -- --ignored` measures.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn a_hundred_thousand_rows_take_a_few_seconds() {
    let begun = Instant::now();
    let store = fill(100_000).await;
    assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
    assert_eq!(
        store.counts(None).await.unwrap(),
        [(RunStatus::Completed, 98_000), (RunStatus::Failed, 2_000)]
    );
}
