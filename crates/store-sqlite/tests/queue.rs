//! The queue after the loss of the process: only one process has the folder, so every lease of the last one has ended.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use std::path::Path;

use pyoco_core::ids::{ExecutionId, Tag, WorkerId};
use pyoco_core::time::{Millis, Timestamp};
use pyoco_ports::{Delivery, Job, WorkQueue};
use pyoco_store_sqlite::{Options, SqliteStore};
use tempfile::tempdir;

const HOUR: Millis = Millis(3_600_000);

fn open(folder: &Path) -> SqliteStore {
    SqliteStore::open(folder, Options::default()).unwrap()
}

fn at(millis: u64) -> Timestamp {
    Timestamp::from_micros(1_700_000_000_000_000).after(Millis(millis))
}

async fn enqueue(store: &SqliteStore, name: &str) {
    let execution = ExecutionId::new(name).unwrap();
    let job = Job { execution, tag: Tag::new("t").unwrap(), body: name.as_bytes().to_vec() };
    store.enqueue(job, at(0)).await.unwrap();
}

async fn take(store: &SqliteStore, most: usize, millis: u64) -> Vec<Delivery> {
    let (tag, worker) = (Tag::new("t").unwrap(), WorkerId::new("w").unwrap());
    store.take(&[tag], &worker, most, HOUR, at(millis)).await.unwrap()
}

/// What was taken: the body and the number of the delivery.
fn shown(deliveries: &[Delivery]) -> Vec<(&str, u32)> {
    deliveries.iter().map(|one| (std::str::from_utf8(&one.body).unwrap(), one.number)).collect()
}

#[tokio::test]
async fn a_job_in_the_hand_of_a_lost_process_is_delivered_again_at_once() {
    let folder = tempdir().unwrap();
    let store = open(folder.path());
    for name in ["a", "b", "c"] {
        enqueue(&store, name).await;
    }
    let first = take(&store, 2, 0).await;
    assert_eq!(shown(&first), [("a", 1), ("b", 1)]);
    store.extend(&first[0], HOUR, at(5)).await.unwrap();
    drop(store);
    let store = open(folder.path());
    // Long before their leases would have ended, and in their old order. How often they were delivered went with the process: who was
    // lost over an execution is counted in its log.
    let again = take(&store, 9, 10).await;
    assert_eq!(shown(&again), [("a", 1), ("b", 1), ("c", 1)]);
    assert_eq!(again[0].id, first[0].id);
    // A lease of this process holds as ever.
    assert_eq!(shown(&take(&store, 9, 20).await), []);
    store.ack(&again[0]).await.unwrap();
    store.close().await.unwrap();
    // Also after an orderly end: whoever held one has not come back.
    let store = open(folder.path());
    assert_eq!(shown(&take(&store, 9, 30).await), [("b", 1), ("c", 1)]);
}

#[tokio::test]
async fn a_delay_that_was_asked_for_outlives_the_process() {
    let folder = tempdir().unwrap();
    let store = open(folder.path());
    for name in ["delayed", "put off", "held"] {
        enqueue(&store, &name.replace(' ', "-")).await;
    }
    let taken = take(&store, 3, 0).await;
    store.nak(&taken[0], Millis(60_000), at(0)).await.unwrap();
    // Given back, then extended by one who did not know: that changes nothing.
    store.nak(&taken[1], Millis(1), at(0)).await.unwrap();
    store.extend(&taken[1], Millis(90_000), at(0)).await.unwrap();
    assert_eq!(shown(&take(&store, 9, 0).await), []);
    drop(store);
    let store = open(folder.path());
    assert_eq!(shown(&take(&store, 9, 1).await), [("put-off", 2), ("held", 1)]);
    assert_eq!(shown(&take(&store, 9, 59_999).await), []);
    assert_eq!(shown(&take(&store, 9, 60_000).await), [("delayed", 2)]);
}

#[tokio::test]
async fn a_job_whose_holder_is_lost_waits_again_and_can_be_dropped() {
    let folder = tempdir().unwrap();
    let store = open(folder.path());
    enqueue(&store, "a").await;
    take(&store, 1, 0).await;
    drop(store);
    let store = open(folder.path());
    store.drop_waiting(&ExecutionId::new("a").unwrap()).await.unwrap();
    assert_eq!(store.depth(&Tag::new("t").unwrap()).await.unwrap(), 0);
}
