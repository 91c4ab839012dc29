//! Following events: each one once, in order, over connections that do not last.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test stops at the first surprise"
)]

mod support;

use std::time::Duration;

use futures_util::StreamExt as _;
use pyoco_client::{Client, EventStream, FollowOptions};
use serde_json::json;
use support::{Gateway, Piece, Reply, events, json};

const END: &str = "event: end\ndata: {}\n\n";

fn event(seq: u64) -> String {
    let data = json!({
        "seq": seq, "eventId": format!("x-{seq}"), "executionId": "e-1", "type": "NODE_READY",
        "occurredAt": "2026-01-31T00:00:00Z", "actor": {"kind": "user", "id": "me"}, "schemaVersion": 1,
        "payload": {"nodeId": "a"},
    });
    format!("id: {seq}\nevent: NODE_READY\ndata: {data}\n\n")
}

fn pieces(text: impl Into<String>, last: Piece) -> Reply {
    Reply::Events(vec![Piece::Bytes(text.into().into_bytes()), last])
}

async fn follow(gateway: &Gateway, after: u64) -> EventStream {
    let options = FollowOptions { after, patience: Duration::from_secs(20) };
    Client::new(gateway.url()).unwrap().follow_events("e-1", &options).await.unwrap()
}

/// The number of each event, and the error at the end if there is one.
async fn all(stream: EventStream) -> Vec<String> {
    let name = |event: Result<pyoco_client::Answer<pyoco_client::api::ExecutionEvent>, _>| match event {
        Ok(event) => event.seq.to_string(),
        Err::<_, pyoco_client::Error>(error) => error.to_string(),
    };
    tokio::time::timeout(Duration::from_secs(30), stream.map(name).collect()).await.expect("it ends")
}

#[tokio::test]
async fn events_come_typed_and_as_they_were_sent_until_the_end() {
    let text = format!(": keep-alive\n\n{}{}{END}", event(1), event(2));
    let gateway = Gateway::start(move |_, _| pieces(text.as_str(), Piece::Hang));
    let mut stream = follow(&gateway, 0).await;
    let first = stream.next().await.unwrap().unwrap();
    assert_eq!((first.seq, first.kind.as_str(), first.actor.id.as_deref()), (1, "NODE_READY", Some("me")));
    assert_eq!(first.json()["payload"], json!({"nodeId": "a"}));
    assert_eq!(all(stream).await, ["2"]);
    let asked = gateway.asked();
    assert_eq!((asked.len(), asked[0].target.as_str()), (1, "/executions/e-1/events/stream"));
    assert_eq!(asked[0].header("accept"), Some("text/event-stream"));
}

#[tokio::test]
async fn a_lost_connection_goes_on_after_the_last_event_without_gap_or_repeat() {
    let gateway = Gateway::start(|_, number| match number {
        // In the middle of an event; then not at all; then not now; then in good order, but before the end.
        0 => pieces(format!("{}{}id: 5\ndata: {{\"se", event(3), event(4)), Piece::Cut),
        1 => Reply::Raw(Vec::new()),
        2 => json(503, r#"{"error":{"code":"UNAVAILABLE","message":"later","details":{}}}"#),
        3 => events(event(5)),
        _ => events(format!("{}{}{END}", event(5), event(6))),
    });
    assert_eq!(all(follow(&gateway, 2).await).await, ["3", "4", "5", "6"]);
    let asked = gateway.asked();
    let ids: Vec<Option<&str>> = asked.iter().map(|asked| asked.header("last-event-id")).collect();
    assert_eq!(ids, [Some("2"), Some("4"), Some("4"), Some("4"), Some("5")]);
}

#[tokio::test]
async fn a_silent_connection_counts_as_lost() {
    let gateway = Gateway::start(|_, number| match number {
        0 => pieces(event(1), Piece::Hang),
        _ => events(format!("{}{END}", event(2))),
    });
    let client = Client::builder(gateway.url()).watch_silence(Duration::from_millis(100)).build().unwrap();
    let stream = client.follow_events("e-1", &FollowOptions::default()).await.unwrap();
    assert_eq!(all(stream).await, ["1", "2"]);
}

#[tokio::test]
async fn a_gap_is_an_error_and_not_passed_over() {
    let gateway = Gateway::start(|_, _| events(format!("{}{}{END}", event(1), event(3))));
    let expected = ["1", "GET /executions/e-1/events/stream: event 3 follows event 1"];
    assert_eq!(all(follow(&gateway, 0).await).await, expected);
}

#[tokio::test]
async fn a_refusal_on_the_way_ends_it() {
    let gateway = Gateway::start(|_, number| match number {
        0 => pieces(event(1), Piece::Cut),
        _ => json(404, r#"{"error":{"code":"EXECUTION_NOT_FOUND","message":"gone","details":{}}}"#),
    });
    let expected = ["1", "HTTP 404 GET /executions/e-1/events/stream: EXECUTION_NOT_FOUND: gone"];
    assert_eq!(all(follow(&gateway, 0).await).await, expected);
}

#[tokio::test]
async fn a_gateway_that_stays_away_is_waited_for_only_so_long() {
    let away = Gateway::start(|_, number| if number == 0 { events(event(1)) } else { json(503, "{}") });
    let empty = Gateway::start(|_, number| if number == 0 { events(event(1)) } else { events("") });
    let options = FollowOptions { after: 0, patience: Duration::from_millis(500) };
    for (gateway, said) in [
        (&away, "HTTP 503 GET /executions/e-1/events/stream: {}"),
        (&empty, "GET /executions/e-1/events/stream: the stream ends before its execution"),
    ] {
        let client = Client::new(gateway.url()).unwrap();
        let seen = all(client.follow_events("e-1", &options).await.unwrap()).await;
        assert_eq!(seen, ["1", said]);
        assert!(gateway.asked().len() > 1);
    }
}

#[tokio::test]
async fn what_is_no_event_ends_it_with_an_error() {
    for text in ["data: {\n\n", "id: 1\nevent: NODE_READY\ndata: {\"seq\": \"one\"}\n\n"] {
        let gateway = Gateway::start(move |_, _| events(text));
        let seen = all(follow(&gateway, 0).await).await;
        assert!(seen.len() == 1 && seen[0].contains("has another form"), "{seen:?}");
    }
    let page = Gateway::start(|_, _| json(200, "{}"));
    let client = Client::new(page.url()).unwrap();
    let error = client.follow_events("e-1", &FollowOptions::default()).await.unwrap_err();
    assert!(error.to_string().contains("no event stream"), "{error}");
}

#[tokio::test]
async fn whoever_comes_back_after_the_end_is_not_sent_away_to_come_again() {
    let gateway = Gateway::start(|_, number| match number {
        0 => events(event(1)),
        _ => json(204, ""),
    });
    assert_eq!(all(follow(&gateway, 0).await).await, ["1"]);
    let asked = gateway.asked();
    assert_eq!((asked.len(), asked[1].header("last-event-id")), (2, Some("1")));
}
