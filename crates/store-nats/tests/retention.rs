//! Removing executions on a real server, beyond the conformance suite: rivals, other processes, and deaths half-way.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and measures time"
)]

mod ground;
mod runs;

use std::time::Duration;

use ground::{Other, append, execution, open, server, texts};
use pyoco_core::ids::{ExecutionId, Version};
use pyoco_core::time::Timestamp;
use pyoco_core::view::RunStatus;
use pyoco_ports::{
    AppendError, Blobs as _, EndedFilter, EventLog as _, IndexRow, News, Removal, Retention as _,
    RunIndex as _, Tombstone,
};
use pyoco_store_nats::NatsStore;
use runs::{Gateway, publish, row};
use serde_json::json;

fn removal(name: &str, version: u64) -> Removal {
    let tombstone = Tombstone {
        execution: execution(name),
        at: Timestamp::from_micros(1_800_000_000_000_000),
        digest: None,
    };
    Removal { tombstone, version: Version(version) }
}

/// An execution with two records and a row that says that it has ended.
async fn finished(store: &NatsStore, name: &str) {
    for version in 0..2 {
        append(store, name, version, format!("{}", version + 1)).await.unwrap();
    }
    let mut row: IndexRow = row(name, 2);
    row.summary.status = RunStatus::Completed;
    row.ended_at = Some(row.updated_at);
    publish(store, row).await;
}

async fn removable(store: &NatsStore) -> Vec<ExecutionId> {
    let before = Timestamp::from_micros(1_800_000_000_000_000);
    let filter = EndedFilter { before, is_foreign_too: false, after: None };
    store.ended_before(&filter, 99).await.unwrap().into_iter().map(|place| place.execution).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_writes_in_the_same_moment_keeps_the_execution_or_finds_it_gone() {
    let server = server();
    let (pruner, writer) = (open(&server).await, open(&server).await);
    let (mut kept, mut gone) = (0, 0);
    for round in 0..60_u64 {
        let name = format!("e{round}");
        finished(&writer, &name).await;
        // To remove takes several requests. Each round the writer comes a little later: before them, between them, behind them.
        let write = async {
            tokio::time::sleep(Duration::from_micros(200 * round)).await;
            append(&writer, &name, 2, "3").await
        };
        let (removed, appended) = tokio::join!(pruner.remove(vec![removal(&name, 2)]), write);
        match (removed.unwrap().as_slice(), appended) {
            ([], Ok(_)) => {
                assert_eq!(texts(&pruner, &name).await, ["1", "2", "3"], "{name}");
                kept += 1;
            }
            ([_], Err(AppendError::Conflict { actual, .. })) => {
                assert_eq!(actual, Version(0), "{name}");
                assert_eq!(texts(&writer, &name).await, [""; 0], "{name}");
                gone += 1;
            }
            other => panic!("{name}: {other:?}"),
        }
    }
    assert_eq!(kept + gone, 60);
    assert!(gone > 0, "nothing was ever removed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_who_remove_the_same_both_come_to_an_end_and_nothing_is_left() {
    let server = server();
    let (one, other) = (open(&server).await, open(&server).await);
    for round in 0..20 {
        let name = format!("e{round}");
        finished(&one, &name).await;
        let digest = one.put_blob(&execution(&name), name.as_bytes()).await.unwrap();
        let (first, second) =
            tokio::join!(one.remove(vec![removal(&name, 2)]), other.remove(vec![removal(&name, 2)]));
        assert!(first.unwrap().len() + second.unwrap().len() >= 1, "{name}");
        assert_eq!(texts(&other, &name).await, [""; 0]);
        assert_eq!(one.get_blob(&digest).await.unwrap(), None, "{name}");
    }
    let eyes = Other::connect(&server).await;
    assert_eq!(eyes.messages("PYOCO_EVENTS").await, 0);
    assert_eq!(eyes.messages("OBJ_pyoco_blobs").await, 0);
    assert_eq!(eyes.messages("PYOCO_RETENTION").await, 20, "a tombstone each");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blob_that_somebody_begins_to_use_while_it_goes_stays() {
    let server = server();
    let (pruner, writer) = (open(&server).await, open(&server).await);
    for round in 0..60_u64 {
        let (old, new) = (format!("old{round}"), format!("new{round}"));
        finished(&writer, &old).await;
        let bytes = format!("value {round}").into_bytes();
        let digest = writer.put_blob(&execution(&old), &bytes).await.unwrap();
        let user = execution(&new);
        let share = async {
            if round % 2 == 0 {
                writer.put_blob(&user, &bytes).await.unwrap();
                true
            } else {
                writer.share_blob(&user, &digest).await.unwrap()
            }
        };
        let (removed, is_shared) = tokio::join!(pruner.remove(vec![removal(&old, 2)]), share);
        assert_eq!(removed.unwrap().len(), 1);
        let found = pruner.get_blob(&digest).await.unwrap();
        assert_eq!(found.is_some(), is_shared, "round {round}");
        assert!(found.is_none_or(|found| found == bytes));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_other_process_hears_of_it_and_reads_nothing_old() {
    let server = server();
    let mut one = Gateway::start_and_catch_up(&server.url()).await;
    let mut other = Gateway::start_and_catch_up(&server.url()).await;
    finished(&one.store, "e").await;
    assert_eq!(other.hears().await.news, News::Ours(Version(2)));
    // Both know where its log ends.
    for store in [&one.store, &other.store] {
        assert_eq!(store.read_on(&execution("e"), Version(2)).await.unwrap(), Some(Vec::new()));
        assert_eq!(removable(store).await, [execution("e")]);
    }
    assert_eq!(one.store.remove(vec![removal("e", 2)]).await.unwrap(), [execution("e")]);
    for gateway in [&mut one, &mut other] {
        let heard = gateway.hears().await;
        assert_eq!((heard.execution, heard.news), (execution("e"), News::Gone));
        assert_eq!(gateway.store.get(&execution("e")).await.unwrap(), None);
        assert_eq!(removable(&gateway.store).await, []);
        assert_eq!(gateway.store.read_on(&execution("e"), Version(2)).await.unwrap(), None);
        let late = append(&gateway.store, "e", 2, "late").await;
        assert!(matches!(late, Err(AppendError::Conflict { actual: Version(0), .. })), "{late:?}");
    }
    // One that starts later finds neither run nor row.
    let late = Gateway::start_and_catch_up(&server.url()).await;
    assert_eq!(late.store.counts(None).await.unwrap(), []);
    assert!(late.store.tombstone(&execution("e")).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_died_behind_the_mark_is_gone_for_readers_and_removed_the_next_time() {
    let server = server();
    let gateway = Gateway::start_and_catch_up(&server.url()).await;
    let (store, eyes) = (&gateway.store, Other::connect(&server).await);
    finished(store, "e").await;
    assert_eq!(texts(store, "e").await, ["1", "2"]);
    // Another process has left the tombstone and closed the log, and then died.
    let tombstone = serde_json::to_string(&removal("e", 2).tombstone).unwrap();
    eyes.publish("pyoco.tombstones.e", &[], &tombstone).await;
    eyes.publish("pyoco.events.e", &[("Pyoco-Removed", "1")], "").await;
    assert_eq!(texts(store, "e").await, [""; 0]);
    assert_eq!(store.read_on(&execution("e"), Version(2)).await.unwrap(), None);
    // One of the same name begins behind the mark, and is not removed with it.
    append(store, "e", 0, "anew").await.unwrap();
    assert_eq!(texts(store, "e").await, ["anew"]);
    assert_eq!(store.remove(vec![removal("e", 0)]).await.unwrap(), [], "it is there");
    // Without it the rest goes.
    finished(store, "f").await;
    eyes.publish("pyoco.tombstones.f", &[], &tombstone.replace("\"e\"", "\"f\"")).await;
    eyes.publish("pyoco.events.f", &[("Pyoco-Removed", "1")], "").await;
    assert!(removable(store).await.contains(&execution("f")));
    assert_eq!(store.remove(vec![removal("f", 0)]).await.unwrap(), [execution("f")]);
    assert_eq!(store.get(&execution("f")).await.unwrap(), None);
    let state = eyes.api("STREAM.INFO.PYOCO_EVENTS", &json!({"subjects_filter": "pyoco.events.f"})).await;
    assert!(state["state"]["subjects"].is_null(), "{state}");
}
