//! Group commit, durability and waiting, as callers see them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use std::time::Duration;

use pyoco_core::ids::{ExecutionId, Tag, Version, WorkerId};
use pyoco_core::time::{Millis, Timestamp};
use pyoco_ports::{Append, AppendError, Durability, EventLog, Job, WorkQueue};
use pyoco_store_sqlite::{Options, SqliteStore};
use tempfile::tempdir;

fn id(text: &str) -> ExecutionId {
    ExecutionId::new(text).unwrap()
}

fn job(tag: &str) -> Job {
    Job { execution: id("e"), tag: Tag::new(tag).unwrap(), body: b"{}".to_vec() }
}

async fn read(store: &SqliteStore, execution: &str) -> Vec<Vec<u8>> {
    let records = EventLog::read(store, &id(execution), Version(0)).await.unwrap();
    records.into_iter().map(|record| record.bytes).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_of_five_hundred_appends_at_once_is_answered() {
    let folder = tempdir().unwrap();
    let store = SqliteStore::open(folder.path(), Options::default()).unwrap();
    let mut tasks = Vec::new();
    for number in 0..500_u32 {
        let store = store.clone();
        // Every fifth fights with others for the same place in the log of one execution.
        let name = if number.is_multiple_of(5) { "shared".to_owned() } else { format!("own-{number}") };
        tasks.push(tokio::spawn(async move {
            let append = Append::new(id(&name), Version(0), number.to_be_bytes().to_vec());
            store.append(append).await
        }));
    }
    let (mut done, mut lost) = (0, 0);
    for task in tasks {
        match task.await.unwrap() {
            Ok(appended) => {
                assert!(appended.left.is_none());
                done += 1;
            }
            Err(AppendError::Conflict { expected: Version(0), actual: Version(1) }) => lost += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!((done, lost), (401, 99));
    assert_eq!(read(&store, "shared").await.len(), 1);
    assert_eq!(read(&store, "own-499").await, [499_u32.to_be_bytes().to_vec()]);
}

#[tokio::test]
async fn a_record_of_process_durability_is_there_after_reopening() {
    let folder = tempdir().unwrap();
    let store = SqliteStore::open(folder.path(), Options::default()).unwrap();
    let mut append = Append::new(id("e"), Version(0), b"progress".to_vec());
    append.durability = Durability::Process;
    store.append(append).await.unwrap();
    store.append(Append::new(id("e"), Version(1), b"promise".to_vec())).await.unwrap();
    drop(store);
    let store = SqliteStore::open(folder.path(), Options::default()).unwrap();
    assert_eq!(read(&store, "e").await, [b"progress".to_vec(), b"promise".to_vec()]);
}

#[tokio::test]
async fn work_that_its_caller_gave_up_is_done_all_the_same() {
    let folder = tempdir().unwrap();
    let store = SqliteStore::open(folder.path(), Options::default()).unwrap();
    let append = store.append(Append::new(id("e"), Version(0), b"x".to_vec()));
    // Polled once: sent, not answered yet, perhaps.
    let _ = tokio::time::timeout(Duration::ZERO, append).await;
    store.append(Append::new(id("f"), Version(0), b"y".to_vec())).await.unwrap();
    assert_eq!(read(&store, "e").await.len(), 1);
}

#[tokio::test]
async fn closing_answers_what_was_sent_before() {
    let folder = tempdir().unwrap();
    let store = SqliteStore::open(folder.path(), Options::default()).unwrap();
    let tasks: Vec<_> = (0..50)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move {
                store.append(Append::new(id(&format!("e{number}")), Version(0), vec![1])).await
            })
        })
        .collect();
    // Each task has run up to its answer.
    tokio::task::yield_now().await;
    store.close().await.unwrap();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_ends_with_an_append_that_enqueues() {
    let folder = tempdir().unwrap();
    let store = SqliteStore::open(folder.path(), Options::default()).unwrap();
    let waiting = {
        let store = store.clone();
        tokio::spawn(async move { store.wait(&[Tag::new("a").unwrap()], Duration::from_secs(600)).await })
    };
    store.enqueue(job("b"), Timestamp::from_micros(1)).await.unwrap();
    let mut append = Append::new(id("e"), Version(0), b"x".to_vec());
    append.enqueue = Some(job("a"));
    store.append(append).await.unwrap();
    tokio::time::timeout(Duration::from_secs(10), waiting).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn waiting_ends_when_a_lease_does_and_not_before() {
    let folder = tempdir().unwrap();
    let store = SqliteStore::open(folder.path(), Options::default()).unwrap();
    let (tags, worker) = ([Tag::new("a").unwrap()], WorkerId::new("w").unwrap());
    let now = Timestamp::from_micros(1_000_000_000);
    store.enqueue(job("a"), now).await.unwrap();
    store.wait(&tags, Duration::from_secs(600)).await.unwrap();
    let taken = store.take(&tags, &worker, 9, Millis(300), now).await.unwrap();
    assert_eq!(taken.len(), 1);
    let early = tokio::time::timeout(Duration::from_millis(150), store.wait(&tags, Duration::from_secs(600)));
    assert!(early.await.is_err(), "nothing could be taken yet");
    let ended = tokio::time::timeout(Duration::from_secs(10), store.wait(&tags, Duration::from_secs(600)));
    ended.await.unwrap().unwrap();
    let again = store.take(&tags, &worker, 9, Millis(300), now.after(Millis(300))).await.unwrap();
    assert_eq!((&again[0].id, again[0].number), (&taken[0].id, 2));
}
