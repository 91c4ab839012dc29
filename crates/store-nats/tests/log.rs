//! The log on a real server, beyond the conformance suite: several processes, large records, long logs and what they cost.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and measures time"
)]

mod ground;

use std::sync::Arc;
use std::time::Duration;

use ground::{Other, append, execution, open, server, server_with, settings, texts, timed};
use pyoco_core::ids::Version;
use pyoco_ports::{AppendError, ErrorKind, EventLog as _};
use pyoco_store_nats::NatsStore;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conflict_names_the_version_that_the_log_has_whatever_this_process_knew() {
    let server = server();
    let (one, other) = (open(&server).await, open(&server).await);
    append(&one, "e", 0, "1").await.unwrap();
    append(&one, "e", 1, "2").await.unwrap();
    append(&other, "e", 2, "3").await.unwrap();
    append(&other, "e", 3, "4").await.unwrap();
    for expected in [0, 1, 2, 3, 5, u64::MAX - 1] {
        match append(&one, "e", expected, "late").await {
            Err(AppendError::Conflict { expected: told, actual: Version(4) }) => {
                assert_eq!(told, Version(expected))
            }
            other => panic!("behind {expected}: {other:?}"),
        }
    }
    append(&one, "e", 4, "5").await.unwrap();
    assert_eq!(texts(&other, "e").await, ["1", "2", "3", "4", "5"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_several_processes_one_appends_and_the_others_are_told_of_it() {
    let server = server();
    let mut stores = Vec::new();
    for _ in 0..4 {
        stores.push(open(&server).await);
    }
    for round in 0..50 {
        let attempts: Vec<_> = stores
            .iter()
            .map(Arc::clone)
            .enumerate()
            .map(|(number, store)| {
                tokio::spawn(async move { append(&store, "e", round, format!("{number}")).await })
            })
            .collect();
        let mut won = 0;
        for attempt in attempts {
            match attempt.await.unwrap() {
                Ok(_) => won += 1,
                Err(AppendError::Conflict { actual, .. }) => assert_eq!(actual, Version(round + 1)),
                Err(AppendError::Store(error)) => panic!("{error}"),
            }
        }
        assert_eq!(won, 1, "in round {round}");
    }
    assert_eq!(texts(&*open(&server).await, "e").await.len(), 50);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_no_message_can_hold_is_read_as_it_was_appended() {
    // The server's own limit is 1 MiB; an operator may want less.
    for (conf, size) in [("", 3 << 20), ("max_payload: 64KB", 100 * 1024)] {
        let server = server_with(conf);
        let store = open(&server).await;
        let large: Vec<u8> = (0..size).map(|n: usize| u8::try_from(n % 251).unwrap()).collect();
        append(&store, "e", 0, "small").await.unwrap();
        append(&store, "e", 1, large.clone()).await.unwrap();
        append(&store, "e", 2, "small again").await.unwrap();
        let other = open(&server).await;
        let records = other.read(&execution("e"), Version(0)).await.unwrap();
        assert_eq!(records.len(), 3);
        assert!(records[1].bytes == large, "{} bytes of {size}", records[1].bytes.len());
        // Alone, too: it is the last record that is newer.
        append(&store, "f", 0, large.clone()).await.unwrap();
        let records = other.read(&execution("f"), Version(0)).await.unwrap();
        assert!(records[0].bytes == large);
        // The same bytes are stored once.
        let pieces = Other::connect(&server).await.messages("OBJ_pyoco_blobs").await;
        append(&store, "g", 0, large).await.unwrap();
        assert_eq!(Other::connect(&server).await.messages("OBJ_pyoco_blobs").await, pieces);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_log_is_read_with_a_handful_of_messages() {
    const LENGTH: u64 = 2500;
    let server = server();
    let store = open(&server).await;
    let before = store.messages_sent();
    for number in 0..LENGTH {
        append(&store, "e", number, format!("record {number}")).await.unwrap();
        // Others are in between.
        if number % 5 == 0 {
            append(&store, &format!("other-{number}"), 0, "x").await.unwrap();
        }
    }
    assert_eq!(store.messages_sent() - before, LENGTH + LENGTH / 5, "an append is one message");

    let cold = open(&server).await;
    let before = cold.messages_sent();
    let (records, took) = timed(cold.read(&execution("e"), Version(0))).await;
    assert_eq!(records.unwrap().len(), 2500);
    assert!(cold.messages_sent() - before <= 5, "{} messages", cold.messages_sent() - before);
    assert!(took < Duration::from_secs(1), "{took:?}");

    // Whoever knows the log up to here asks for the end, and reads nothing twice.
    for (after, most) in [(2500, 1), (2499, 1), (9999, 1)] {
        let before = cold.messages_sent();
        let records = cold.read(&execution("e"), Version(after)).await.unwrap();
        assert_eq!(records.len() as u64, LENGTH.saturating_sub(after));
        assert!(
            cold.messages_sent() - before <= most,
            "after {after}: {} messages",
            cold.messages_sent() - before
        );
    }
    for number in LENGTH..LENGTH + 3 {
        append(&store, "e", number, "new").await.unwrap();
    }
    let before = cold.messages_sent();
    let records = cold.read(&execution("e"), Version(LENGTH)).await.unwrap();
    assert_eq!(records.len(), 3);
    assert!(cold.messages_sent() - before <= 2);
    // In the middle of it.
    let records = cold.read(&execution("e"), Version(1200)).await.unwrap();
    assert_eq!(records.first().map(|record| record.version), Some(Version(1201)));
    assert_eq!(records.len() as u64, LENGTH + 3 - 1200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_that_somebody_else_put_there_are_not_believed() {
    let server = server();
    let store = open(&server).await;
    let other = Other::connect(&server).await;
    append(&store, "gap", 0, "1").await.unwrap();
    other.publish("pyoco.events.gap", &[("Pyoco-Version", "3")], "3").await;
    other.publish("pyoco.events.alien", &[], "?").await;
    let nowhere = "0".repeat(64);
    other.publish("pyoco.events.lost", &[("Pyoco-Version", "1"), ("Pyoco-Blob", &nowhere)], "").await;
    other.publish("pyoco.events.bad", &[("Pyoco-Version", "1"), ("Pyoco-Blob", "no digest")], "").await;
    for name in ["gap", "alien", "lost", "bad"] {
        let error = store.read(&execution(name), Version(0)).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Corrupt, "{name}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_was_made_anew_is_believed_and_not_what_was_known() {
    let server = server();
    let store = open(&server).await;
    for number in 0..5 {
        append(&store, "e", number, "old").await.unwrap();
    }
    let other = Other::connect(&server).await;
    other.api("STREAM.DELETE.PYOCO_EVENTS", &serde_json::Value::Null).await;
    let error = match append(&store, "e", 5, "6").await {
        Err(AppendError::Store(error)) => error,
        other => panic!("{other:?}"),
    };
    assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
    let anew = open(&server).await;
    for number in 0..3 {
        append(&anew, "x", number, "x").await.unwrap();
        append(&anew, "e", number, "new").await.unwrap();
    }
    assert!(matches!(
        append(&store, "e", 5, "6").await,
        Err(AppendError::Conflict { actual: Version(3), .. })
    ));
    assert_eq!(texts(&store, "e").await, ["new"; 3]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_without_direct_reads_is_read_through_its_leader() {
    let server = server();
    let other = Other::connect(&server).await;
    let config =
        serde_json::json!({"name": "PYOCO_EVENTS", "subjects": ["pyoco.events.>"], "allow_direct": false});
    other.api("STREAM.CREATE.PYOCO_EVENTS", &config).await;
    let store = NatsStore::open(settings(&server), None).await.unwrap();
    for number in 0..20 {
        append(&store, "e", number, format!("{number}")).await.unwrap();
    }
    assert_eq!(texts(&*open(&server).await, "e").await.len(), 20);
}
