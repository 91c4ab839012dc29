//! Blobs and dead letters on a real server, beyond the conformance suite, and streams that somebody has deleted.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and measures time"
)]

mod ground;

use std::sync::Arc;

use ground::{Other, execution, line, open, server, write};
use pyoco_core::digest::Digest;
use pyoco_core::time::Timestamp;
use pyoco_ports::{Blobs as _, DeadLetterRecord, DeadLetters as _, ErrorKind, TaskLogs as _};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blob_is_described_once_however_many_put_it_at_the_same_time() {
    let server = server();
    let bytes: Vec<u8> = (0..1_300_000_u32).map(|n| u8::try_from(n % 253).unwrap()).collect();
    let bytes = Arc::new(bytes);
    let mut putters = Vec::new();
    for _ in 0..6 {
        let (store, bytes) = (open(&server).await, Arc::clone(&bytes));
        putters.push(tokio::spawn(async move { store.put_blob(&execution("e"), &bytes).await.unwrap() }));
    }
    for putter in putters {
        assert_eq!(putter.await.unwrap(), Digest::of_bytes(&bytes));
    }
    // Three pieces and one description: nothing of the others stays.
    assert_eq!(Other::connect(&server).await.messages("OBJ_pyoco_blobs").await, 4);
    let store = open(&server).await;
    assert!(store.get_blob(&Digest::of_bytes(&bytes)).await.unwrap().unwrap() == *bytes);
    assert_eq!(store.put_blob(&execution("e"), &[]).await.unwrap(), Digest::of_bytes(&[]));
    assert_eq!(store.get_blob(&Digest::of_bytes(&[])).await.unwrap(), Some(Vec::new()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blob_that_was_damaged_is_corrupt_and_one_that_was_deleted_can_be_put_again() {
    let server = server();
    let store = open(&server).await;
    let other = Other::connect(&server).await;
    let bytes = vec![7; 1_000_000];
    let digest = store.put_blob(&execution("e"), &bytes).await.unwrap();
    // The first piece is gone.
    other.api("STREAM.MSG.DELETE.OBJ_pyoco_blobs", &json!({"seq": 1})).await;
    let error = store.get_blob(&digest).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Corrupt, "{error}");
    // Other clients delete an object by describing it as deleted.
    let last =
        other.api("STREAM.MSG.GET.OBJ_pyoco_blobs", &json!({"last_by_subj": "$O.pyoco_blobs.M.>"})).await;
    let subject = last["message"]["subject"].as_str().unwrap().to_owned();
    let deleted = json!({"name": digest.to_string(), "bucket": "pyoco_blobs", "nuid": "x", "size": 0, "chunks": 0,
                         "digest": "", "deleted": true, "mtime": ""});
    other.publish(&subject, &[("Nats-Rollup", "sub")], &deleted.to_string()).await;
    assert_eq!(store.get_blob(&digest).await.unwrap(), None);
    assert_eq!(store.put_blob(&execution("e"), &bytes).await.unwrap(), digest);
    assert!(store.get_blob(&digest).await.unwrap() == Some(bytes));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blob_stands_as_other_clients_of_nats_expect_an_object() {
    let server = server();
    let digest = open(&server).await.put_blob(&execution("e"), b"hello").await.unwrap();
    let other = Other::connect(&server).await;
    let last =
        other.api("STREAM.MSG.GET.OBJ_pyoco_blobs", &json!({"last_by_subj": "$O.pyoco_blobs.M.>"})).await;
    let stored = read_base64(last["message"]["data"].as_str().unwrap());
    let description: Value = serde_json::from_slice(&stored).unwrap();
    assert_eq!(description["name"], digest.to_string());
    assert_eq!((&description["size"], &description["chunks"]), (&json!(5), &json!(1)));
    assert_eq!(description["digest"], "SHA-256=LPJNul-wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=");
    let chunks = format!("$O.pyoco_blobs.C.{}", description["nuid"].as_str().unwrap());
    let chunk = other.api("STREAM.MSG.GET.OBJ_pyoco_blobs", &json!({"last_by_subj": chunks})).await;
    assert_eq!(read_base64(chunk["message"]["data"].as_str().unwrap()), b"hello");
}

fn read_base64(text: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text).unwrap()
}

fn letter(key: &str, tag: &str) -> DeadLetterRecord {
    let at = Timestamp::from_micros(1_700_000_000_000_001);
    DeadLetterRecord {
        key: key.to_owned(),
        tag: tag.to_owned(),
        at,
        body: format!("{{\"of\":{key:?}}}").into_bytes(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn letters_of_any_tag_are_kept_and_stay_in_their_stream() {
    let server = server();
    let store = open(&server).await;
    let tags = [
        "default",
        "",
        ".",
        "a.b",
        "*",
        ">",
        "a b",
        "x\r\nPUB pyoco.work.default 0\r\n",
        "日本",
        "$JS.API.INFO",
    ];
    let letters: Vec<DeadLetterRecord> =
        tags.iter().enumerate().map(|(n, tag)| letter(&format!("key {n}\r\n"), tag)).collect();
    for letter in &letters {
        store.publish(letter.clone()).await.unwrap();
        store.publish(letter.clone()).await.unwrap();
    }
    assert_eq!(store.count_letters().await.unwrap(), tags.len() as u64);
    let newest_first: Vec<_> = letters.iter().rev().cloned().collect();
    assert_eq!(store.letters(100).await.unwrap(), newest_first);
    assert_eq!(store.letters(2).await.unwrap(), newest_first[..2]);
    assert_eq!(Other::connect(&server).await.messages("PYOCO_WORK").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn letters_of_others_are_read_and_holes_are_stepped_over() {
    let server = server();
    let store = open(&server).await;
    let other = Other::connect(&server).await;
    for number in 0..5 {
        other.publish("pyoco.dlq.gpu", &[], &format!("{{\"n\":{number}}}")).await;
    }
    store.publish(letter("mine", "gpu")).await.unwrap();
    other.api("STREAM.MSG.DELETE.PYOCO_DLQ", &json!({"seq": 5})).await;
    let found = store.letters(3).await.unwrap();
    let bodies: Vec<String> = found.iter().map(|one| String::from_utf8(one.body.clone()).unwrap()).collect();
    assert_eq!(bodies, ["{\"of\":\"mine\"}", "{\"n\":3}", "{\"n\":2}"]);
    assert!(found.iter().all(|one| one.tag == "gpu"));
    assert_ne!(found[1].key, found[2].key);
    assert_eq!(store.count_letters().await.unwrap(), 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn letters_are_found_behind_a_hole_of_any_size() {
    let server = server();
    let store = open(&server).await;
    let other = Other::connect(&server).await;
    for number in 0..3 {
        store.publish(letter(&format!("{number}"), "rare")).await.unwrap();
    }
    for number in 0..3000 {
        other.0.publish("pyoco.dlq.flood", number.to_string().into()).await.unwrap();
    }
    // This one is answered when those before it are stored.
    other.publish("pyoco.dlq.flood", &[], "end").await;
    store.publish(letter("last", "rare")).await.unwrap();
    other.api("STREAM.PURGE.PYOCO_DLQ", &json!({"filter": "pyoco.dlq.flood"})).await;
    assert_eq!(store.count_letters().await.unwrap(), 4);
    for limit in [0, 1, 2, 4, 100, usize::MAX] {
        let before = store.messages_sent();
        let keys: Vec<String> = store.letters(limit).await.unwrap().into_iter().map(|one| one.key).collect();
        assert_eq!(keys, ["last", "2", "1", "0"][..limit.min(4)]);
        assert!(store.messages_sent() - before < 60, "{} messages", store.messages_sent() - before);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_that_somebody_deleted_are_made_again_where_nothing_is_lost_with_them() {
    let server = server();
    let store = open(&server).await;
    let other = Other::connect(&server).await;
    store.publish(letter("1", "a")).await.unwrap();
    write(&store, "e", vec![line("1")]).await;
    for stream in ["PYOCO_DLQ", "PYOCO_LOGS"] {
        other.api(&format!("STREAM.DELETE.{stream}"), &Value::Null).await;
    }
    assert_eq!(store.count_letters().await.unwrap(), 0);
    assert_eq!(store.read_lines(&execution("e"), 0, 9).await.unwrap(), []);
    store.publish(letter("2", "a")).await.unwrap();
    write(&store, "e", vec![line("2")]).await;
    write(&store, "new", vec![line("3")]).await;
    assert_eq!(store.count_letters().await.unwrap(), 1);
    assert_eq!(store.read_lines(&execution("e"), 0, 9).await.unwrap(), [(1, line("2"))]);
}
