//! A watch: what it shows, and how it goes on when its connection does not last.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test stops at the first surprise"
)]

mod support;

use std::time::Duration;

use futures_util::StreamExt as _;
use pyoco_client::{Client, Error, Watch, WatchOptions};
use serde_json::json;
use support::{Gateway, HEARTBEAT, Piece, Reply, events, json, snapshot};

fn seconds(timeout_sec: u32) -> WatchOptions {
    WatchOptions { timeout_sec: Some(timeout_sec), ..WatchOptions::default() }
}

async fn watch(gateway: &Gateway, options: WatchOptions) -> Watch {
    Client::new(gateway.url()).unwrap().watch_run("r-1", options).await.unwrap()
}

/// The status or the name of each event, and the error at the end if there is one.
async fn all(watch: Watch) -> Vec<String> {
    let name = |event: Result<pyoco_client::Answer<pyoco_client::api::WatchEvent>, Error>| match event {
        Ok(event) => {
            event.data.snapshot.as_ref().map_or_else(|| event.event.clone(), |run| run.status.to_string())
        }
        Err(error) => error.to_string(),
    };
    watch.map(name).collect().await
}

fn pieces(text: &str, last: Piece) -> Reply {
    Reply::Events(vec![Piece::Bytes(text.as_bytes().to_vec()), last])
}

#[tokio::test]
async fn events_come_typed_and_as_they_were_sent() {
    let text = format!("{}{HEARTBEAT}", snapshot(Some(4), "RUNNING"));
    let gateway = Gateway::start(move |_, _| pieces(&text, Piece::Hang));
    let mut watch = watch(&gateway, WatchOptions::default()).await;
    let first = watch.next().await.unwrap().unwrap();
    assert_eq!((first.event.as_str(), first.id.as_deref()), ("snapshot", Some("4")));
    assert_eq!(first.data.snapshot.as_ref().unwrap().updated_at, Some(12.5));
    let keys: Vec<&String> = first.json().as_object().unwrap().keys().collect();
    assert_eq!(keys, ["event", "data"]);
    let second = watch.next().await.unwrap().unwrap();
    assert_eq!(second.json(), &json!({"event": "heartbeat", "data": {"run_id": "r-1", "ts": 14.0}}));
    assert_eq!(gateway.asked()[0].target, "/runs/r-1/watch");
    assert_eq!(gateway.asked()[0].header("accept"), Some("text/event-stream"));
}

#[tokio::test]
async fn what_was_asked_for_is_sent() {
    let gateway = Gateway::start(|_, _| events(""));
    let options = WatchOptions { include_records: true, since: Some(1.5), timeout_sec: Some(9) };
    assert_eq!(all(watch(&gateway, options).await).await.len(), 0);
    assert_eq!(gateway.asked()[0].target, "/runs/r-1/watch?include=records&since=1.5&timeout_sec=9");
}

#[tokio::test]
async fn every_byte_may_come_by_itself() {
    let text = format!("{}{HEARTBEAT}{}", snapshot(None, "RUNNING"), snapshot(None, "COMPLETED"));
    let gateway = Gateway::start(move |_, _| {
        Reply::Events(text.bytes().map(|byte| Piece::Bytes(vec![byte])).collect())
    });
    assert_eq!(all(watch(&gateway, seconds(5)).await).await, ["RUNNING", "heartbeat", "COMPLETED"]);
}

#[tokio::test]
async fn events_of_other_kinds_are_passed_over() {
    let text = format!("event: weather\ndata: rain\n\ndata: x\n\n{HEARTBEAT}");
    let gateway = Gateway::start(move |_, _| events(text.as_str()));
    assert_eq!(all(watch(&gateway, seconds(5)).await).await, ["heartbeat"]);
}

#[tokio::test]
async fn a_broken_connection_goes_on_after_the_last_event() {
    let gateway = Gateway::start(|_, number| match number {
        0 => pieces(&format!("{}event: snapshot\ndata: {{\"run", snapshot(Some(3), "PENDING")), Piece::Cut),
        1 => Reply::Raw(Vec::new()),
        2 => json(503, r#"{"detail":"nats unavailable: x"}"#),
        3 => pieces(&snapshot(Some(5), "RUNNING"), Piece::Cut),
        _ => events(snapshot(Some(8), "COMPLETED")),
    });
    assert_eq!(all(watch(&gateway, seconds(30)).await).await, ["PENDING", "RUNNING", "COMPLETED"]);
    let asked = gateway.asked();
    let ids: Vec<Option<&str>> = asked.iter().map(|asked| asked.header("last-event-id")).collect();
    assert_eq!(ids, [None, Some("3"), Some("3"), Some("3"), Some("5")]);
    for again in &asked[1..] {
        let left: u32 = again.target.strip_prefix("/runs/r-1/watch?timeout_sec=").unwrap().parse().unwrap();
        assert!((20..=30).contains(&left), "{left}");
    }
}

#[tokio::test]
async fn a_silent_connection_counts_as_broken() {
    let gateway = Gateway::start(|_, number| match number {
        0 => pieces(&snapshot(Some(1), "RUNNING"), Piece::Hang),
        _ => events(snapshot(Some(2), "FAILED")),
    });
    let client = Client::builder(gateway.url()).watch_silence(Duration::from_millis(100)).build().unwrap();
    let watch = client.watch_run("r-1", seconds(30)).await.unwrap();
    assert_eq!(all(watch).await, ["RUNNING", "FAILED"]);
}

#[tokio::test]
async fn a_stream_that_the_gateway_closed_is_resumed_only_where_that_repeats_nothing() {
    let with_ids = Gateway::start(|_, number| match number {
        0 => events(snapshot(Some(1), "RUNNING")),
        _ => events(snapshot(Some(2), "COMPLETED")),
    });
    assert_eq!(all(watch(&with_ids, seconds(30)).await).await, ["RUNNING", "COMPLETED"]);
    let without = Gateway::start(|_, _| events(snapshot(None, "RUNNING")));
    assert_eq!(all(watch(&without, seconds(30)).await).await, ["RUNNING"]);
    assert_eq!(without.asked().len(), 1);
}

#[tokio::test]
async fn a_run_that_vanished_ends_the_watch() {
    let gateway = Gateway::start(|_, number| match number {
        0 => pieces(&snapshot(Some(1), "RUNNING"), Piece::Cut),
        _ => json(404, r#"{"detail":"run not found"}"#),
    });
    assert_eq!(all(watch(&gateway, seconds(30)).await).await, ["RUNNING"]);
}

#[tokio::test]
async fn a_refusal_on_the_way_ends_the_watch_with_an_error() {
    let gateway = Gateway::start(|_, number| match number {
        0 => pieces(&snapshot(Some(1), "RUNNING"), Piece::Cut),
        _ => json(403, r#"{"detail":"invalid api key"}"#),
    });
    let expected = ["RUNNING", "HTTP 403 GET /runs/r-1/watch: {\"detail\":\"invalid api key\"}"];
    assert_eq!(all(watch(&gateway, seconds(30)).await).await, expected);
}

#[tokio::test]
async fn a_gateway_that_does_not_come_back_is_waited_for_only_as_long_as_asked() {
    let gateway = Gateway::start(|_, number| match number {
        0 => pieces(&snapshot(Some(1), "RUNNING"), Piece::Cut),
        _ => json(503, "{}"),
    });
    let seen =
        tokio::time::timeout(Duration::from_secs(5), all(watch(&gateway, seconds(2)).await)).await.unwrap();
    assert_eq!(seen, ["RUNNING", "HTTP 503 GET /runs/r-1/watch: {}"]);
}

#[tokio::test]
async fn a_gateway_that_forgets_to_end_is_left() {
    let gateway = Gateway::start(|_, _| pieces(&snapshot(Some(1), "RUNNING"), Piece::Hang));
    let seen =
        tokio::time::timeout(Duration::from_secs(8), all(watch(&gateway, seconds(1)).await)).await.unwrap();
    assert_eq!(seen, ["RUNNING"]);
}

#[tokio::test]
async fn an_event_that_makes_no_sense_ends_the_watch_with_an_error() {
    for text in ["event: snapshot\ndata: {\n\n", "event: heartbeat\ndata: []\n\n"] {
        let gateway = Gateway::start(move |_, _| events(text));
        let seen = all(watch(&gateway, seconds(30)).await).await;
        assert!(seen.len() == 1 && seen[0].contains("has another form"), "{seen:?}");
    }
}

#[tokio::test]
async fn an_event_that_is_too_long_ends_the_watch_with_an_error() {
    let gateway = Gateway::start(|_, _| events(format!("data: {}", "x".repeat(1_000))));
    let client = Client::builder(gateway.url()).max_answer_bytes(500).build().unwrap();
    let seen = all(client.watch_run("r-1", seconds(30)).await.unwrap()).await;
    assert_eq!(seen, ["GET /runs/r-1/watch: an event is longer than allowed"]);
}
