//! A server that hangs, dies, comes back, or was never there: what callers are told, how soon, and that nothing is sent later.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and measures time"
)]

mod ground;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_nats::connection::State;
use ground::{Other, append, execution, kind, open, server, server_with, settings, texts, timed, until};
use pyoco_core::ids::Version;
use pyoco_ports::{Blobs as _, DeadLetters as _, ErrorKind, EventLog as _};
use pyoco_store_nats::{NatsStore, OpenError, Settings};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_hangs_is_a_time_out_within_the_patience_and_the_log_stays_whole() {
    let server = server();
    let store = open(&server).await;
    append(&store, "e", 0, "1").await.unwrap();
    server.pause();
    let (hung, took) = timed(append(&store, "e", 1, "2")).await;
    let (read, read_took) = timed(store.read(&execution("e"), Version(0))).await;
    server.resume();
    assert_eq!(kind(hung), ErrorKind::Timeout);
    assert_eq!(read.unwrap_err().kind, ErrorKind::Timeout);
    assert!(took >= Duration::from_secs(1) && took < Duration::from_secs(2), "{took:?}");
    assert!(read_took < Duration::from_secs(2), "{read_took:?}");
    // Nobody knows whether it was done; the log does.
    match &texts(&store, "e").await[..] {
        [one] if one == "1" => append(&store, "e", 1, "2 again").await.map(|_| ()).unwrap(),
        [one, two] if one == "1" && two == "2" => append(&store, "e", 2, "3").await.map(|_| ()).unwrap(),
        other => panic!("{other:?}"),
    }
}

/// What stands at a subject of the log, whoever put it there.
async fn texts_of_others(other: &Other, subject: &str) -> Vec<String> {
    use base64::Engine as _;
    let found = other.api("STREAM.MSG.GET.PYOCO_EVENTS", &serde_json::json!({"last_by_subj": subject})).await;
    let data = found["message"]["data"].as_str().unwrap();
    vec![String::from_utf8(base64::engine::general_purpose::STANDARD.decode(data).unwrap()).unwrap()]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_refused_while_the_server_is_down_never_appears_later() {
    let mut server = server();
    let store = open(&server).await;
    append(&store, "e", 0, "1").await.unwrap();
    let other = Other::connect(&server).await;
    server.kill();
    until("the loss is noticed", || !store.is_connected()).await;
    // The library itself keeps what it is given: that is what must not happen to ours.
    let kept = tokio::spawn({
        let client = other.0.clone();
        async move { client.publish("pyoco.events.kept-by-the-library", "late".into()).await }
    });
    for number in 0..100 {
        let (refused, took) = timed(append(&store, &format!("late-{number}"), 0, "never")).await;
        assert_eq!(kind(refused), ErrorKind::Unavailable);
        assert!(took < Duration::from_millis(100), "{took:?}");
    }
    assert_eq!(store.put_blob(&execution("e"), b"never").await.unwrap_err().kind, ErrorKind::Unavailable);
    assert_eq!(store.count_letters().await.unwrap_err().kind, ErrorKind::Unavailable);
    server.restart();
    until("the connection is back", || store.is_connected()).await;
    // The same connection carries it, so whatever had been kept would have been sent before.
    append(&store, "e", 1, "2").await.unwrap();
    assert_eq!(texts(&store, "e").await, ["1", "2"]);
    kept.await.unwrap().unwrap();
    until("the other client is back", || other.0.connection_state() == State::Connected).await;
    assert_eq!(texts_of_others(&other, "pyoco.events.kept-by-the-library").await, ["late"]);
    assert_eq!(other.messages("PYOCO_EVENTS").await, 3);
    assert_eq!(other.messages("OBJ_pyoco_blobs").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_waits_when_the_line_breaks_is_told_at_once_that_nobody_knows() {
    let mut server = server();
    let mut settings = settings(&server);
    settings.patience = Duration::from_secs(60);
    let store = NatsStore::open(settings, None).await.unwrap();
    append(&store, "e", 0, "1").await.unwrap();
    server.pause();
    let waiting = tokio::spawn({
        let store = store.clone();
        async move { timed(append(&store, "e", 1, "2")).await }
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!waiting.is_finished());
    server.kill();
    let (lost, took) = waiting.await.unwrap();
    assert_eq!(kind(lost), ErrorKind::Timeout);
    assert!(took < Duration::from_secs(10), "{took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn appends_go_on_after_the_server_was_killed_under_load_and_none_that_was_answered_is_lost() {
    let mut server = server();
    let store = open(&server).await;
    let is_over = Arc::new(AtomicBool::new(false));
    let written = Arc::new(AtomicU64::new(0));
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let (store, is_over, written) = (store.clone(), Arc::clone(&is_over), Arc::clone(&written));
            tokio::spawn(async move {
                let name = format!("e{writer}");
                let (mut version, mut outages) = (0, 0);
                while !is_over.load(Ordering::Relaxed) {
                    if append(&store, &name, version, format!("{version}")).await.is_ok() {
                        version += 1;
                        written.fetch_add(1, Ordering::Relaxed);
                        continue;
                    }
                    outages += 1;
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    // The one whose answer was lost may be there.
                    if let Ok(records) = store.read(&execution(&name), Version(0)).await {
                        let found = records.len() as u64;
                        assert!(found == version || found == version + 1, "{found} of {version}");
                        version = found;
                    }
                }
                (name, version, outages)
            })
        })
        .collect();
    for _ in 0..3 {
        let before = written.load(Ordering::Relaxed);
        until("records are written", || written.load(Ordering::Relaxed) > before + 500).await;
        server.restart();
    }
    let before = written.load(Ordering::Relaxed);
    until("records are written again", || written.load(Ordering::Relaxed) > before + 500).await;
    is_over.store(true, Ordering::Relaxed);
    for writer in writers {
        let (name, version, outages) = writer.await.unwrap();
        assert!(outages > 0, "{name} did not notice");
        let wanted: Vec<String> = (0..version).map(|n| n.to_string()).collect();
        let found = texts(&store, &name).await;
        // The last one may have been stored without an answer.
        assert_eq!(found[..wanted.len()], wanted);
        assert!(found.len() <= wanted.len() + 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_without_a_server_fails_at_once_and_says_where_it_looked() {
    let mut server = server();
    server.kill();
    let (failed, took) = timed(NatsStore::open(settings(&server), None)).await;
    let error = failed.unwrap_err().to_string();
    assert!(error.contains(&server.port().to_string()), "{error}");
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert!(matches!(NatsStore::open(Settings::new(&[]), None).await, Err(OpenError::Connect { .. })));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_too_old_is_refused_by_its_version() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    // As much of an old server as it takes to be connected to.
    let old = tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        let info = br#"INFO {"server_id":"X","version":"2.10.29","max_payload":1048576,"headers":true,"jetstream":true}"#;
        client.write_all(info).await.unwrap();
        client.write_all(b"\r\n").await.unwrap();
        let mut heard = Vec::new();
        while !heard.windows(4).any(|word| word == b"PING") {
            assert_ne!(client.read_buf(&mut heard).await.unwrap(), 0);
        }
        client.write_all(b"PONG\r\n").await.unwrap();
        // Until the client is gone.
        while client.read_buf(&mut heard).await.unwrap_or(0) > 0 {}
    });
    let error =
        NatsStore::open(Settings::new(&[&format!("nats://127.0.0.1:{port}")]), None).await.unwrap_err();
    assert!(matches!(&error, OpenError::TooOld { found, .. } if found == "2.10.29"), "{error}");
    old.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_without_jetstream_is_told_so_at_once() {
    let server =
        server_with("accounts { plain { users: [{user: me, password: secret}] } }\nno_auth_user: me");
    let (failed, took) = timed(NatsStore::open(settings(&server), None)).await;
    let error = failed.unwrap_err();
    assert!(matches!(error, OpenError::NoJetStream { .. }), "{error}");
    assert!(took < Duration::from_secs(3), "{took:?}");
}

fn connections(server: &pyoco_testing_nats::NatsServer) -> u64 {
    server.ask("/connz")["num_connections"].as_u64().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_closed_or_let_go_leaves_no_connection() {
    let server = server();
    let store = open(&server).await;
    assert_eq!(connections(&server), 1);
    store.close().await;
    until("the connection is gone", || connections(&server) == 0).await;
    assert_eq!(kind(append(&store, "e", 0, "1").await), ErrorKind::Closed);
    assert_eq!(store.read(&execution("e"), Version(0)).await.unwrap_err().kind, ErrorKind::Closed);
    assert!(!store.is_connected());
    // Twice is once.
    store.close().await;

    let store = open(&server).await;
    append(&store, "e", 0, "1").await.unwrap();
    drop(store);
    until("the connection is gone", || connections(&server) == 0).await;
}
