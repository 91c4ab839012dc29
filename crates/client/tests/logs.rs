//! Logs: pages, and following them: each line once, in order, over connections that do not last.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test stops at the first surprise"
)]

mod support;

use std::time::Duration;

use futures_util::StreamExt as _;
use pyoco_client::{Client, LogFilter, LogOf, LogStream};
use serde_json::json;
use support::{Gateway, Piece, Reply, events, json};

const END: &str = "event: status\ndata: {\"id\":\"j-1\",\"status\":\"completed\"}\n\n";
const PATIENCE: Duration = Duration::from_secs(20);

fn entry(seq: u64) -> serde_json::Value {
    json!({
        "seq": seq, "timestamp": "2026-02-18T12:00:01Z", "message": format!("line {seq}"), "task": "load",
        "attempt": 1, "stream": "stdout",
    })
}

fn line(seq: u64) -> String {
    format!("id: {seq}\nevent: logEntry\ndata: {}\n\n", entry(seq))
}

fn pieces(text: impl Into<String>, last: Piece) -> Reply {
    Reply::Events(vec![Piece::Bytes(text.into().into_bytes()), last])
}

fn job() -> LogOf {
    LogOf::Job("j-1".to_owned())
}

fn since(token: &str) -> LogFilter {
    LogFilter { since_token: Some(token.to_owned()), ..LogFilter::default() }
}

async fn follow(gateway: &Gateway, filter: &LogFilter) -> LogStream {
    Client::new(gateway.url()).unwrap().follow_log(&job(), filter, PATIENCE).await.unwrap()
}

/// The number of each line, and the error at the end if there is one.
async fn all(stream: LogStream) -> Vec<String> {
    let name = |line: Result<pyoco_client::Answer<pyoco_client::api::LogEntry>, _>| match line {
        Ok(line) => line.seq.to_string(),
        Err::<_, pyoco_client::Error>(error) => error.to_string(),
    };
    tokio::time::timeout(Duration::from_secs(30), stream.map(name).collect()).await.expect("it ends")
}

#[tokio::test]
async fn a_log_is_read_in_pages_of_a_job_or_a_run() {
    let gateway =
        Gateway::start(|_, _| json(200, json!({"entries": [entry(1)], "nextToken": "t 1"}).to_string()));
    let client = Client::new(gateway.url()).unwrap();
    let page = client.get_log(&job(), &LogFilter::default(), None).await.unwrap();
    assert_eq!((page.entries[0].message.as_str(), page.next_token.as_str()), ("line 1", "t 1"));
    let filter = LogFilter {
        task: Some("a/b c".to_owned()),
        stream: Some("stderr".to_owned()),
        since_token: Some("t 1".to_owned()),
    };
    client.get_log(&LogOf::Run("r/1".to_owned()), &filter, Some(9)).await.unwrap();
    let targets: Vec<String> = gateway.asked().into_iter().map(|asked| asked.target).collect();
    let filtered = "/runs/r%2F1/logs?task=a%2Fb+c&stream=stderr&sinceToken=t+1&limit=9";
    assert_eq!(targets, ["/jobs/j-1/logs", filtered]);
}

#[tokio::test]
async fn lines_come_typed_and_as_they_were_sent_until_the_end() {
    let text = format!(": alive\n\n{}event: new kind\ndata: 1\n\n{}{END}", line(1), line(2));
    let gateway = Gateway::start(move |_, _| pieces(text.as_str(), Piece::Hang));
    let mut stream = follow(&gateway, &LogFilter::default()).await;
    let first = stream.next().await.unwrap().unwrap();
    assert_eq!((first.seq, first.task.as_deref(), first.stream.as_str()), (1, Some("load"), "stdout"));
    assert_eq!(first.json(), &entry(1));
    assert_eq!(all(stream).await, ["2"]);
    let asked = gateway.asked();
    assert_eq!((asked.len(), asked[0].target.as_str()), (1, "/jobs/j-1/logs/stream"));
    assert_eq!(
        (asked[0].header("accept"), asked[0].header("last-event-id")),
        (Some("text/event-stream"), None)
    );
}

#[tokio::test]
async fn a_lost_connection_goes_on_after_the_last_line_without_gap_or_repeat() {
    let gateway = Gateway::start(|_, number| match number {
        // In the middle of a line; then not at all; then not now; then in good order, but before the end.
        0 => pieces(format!("{}{}id: 5\nevent: logEntry\ndata: {{\"se", line(3), line(4)), Piece::Cut),
        1 => Reply::Raw(Vec::new()),
        2 => json(503, r#"{"error":{"code":"UNAVAILABLE","message":"later","details":{}}}"#),
        3 => events(line(5)),
        _ => events(format!("{}{}{END}", line(5), line(6))),
    });
    assert_eq!(all(follow(&gateway, &since("t-2")).await).await, ["3", "4", "5", "6"]);
    let asked = gateway.asked();
    let ids: Vec<Option<&str>> = asked.iter().map(|asked| asked.header("last-event-id")).collect();
    assert_eq!(ids, [None, Some("4"), Some("4"), Some("4"), Some("5")]);
    assert!(asked.iter().all(|asked| asked.target == "/jobs/j-1/logs/stream?sinceToken=t-2"), "{asked:?}");
}

#[tokio::test]
async fn a_connection_lost_before_the_first_line_begins_at_the_same_place() {
    let gateway = Gateway::start(|_, number| match number {
        0 => pieces(": alive\n\n", Piece::Cut),
        _ => events(format!("{}{END}", line(8))),
    });
    assert_eq!(all(follow(&gateway, &since("t-7")).await).await, ["8"]);
    let asked = gateway.asked();
    assert!(asked.iter().all(|asked| asked.target.ends_with("?sinceToken=t-7")), "{asked:?}");
    assert_eq!(asked[1].header("last-event-id"), None);
}

#[tokio::test]
async fn a_gap_is_an_error_unless_lines_are_left_out_on_purpose() {
    let text = format!("{}{}{END}", line(1), line(3));
    let gateway = Gateway::start(move |_, _| events(text.as_str()));
    let expected = ["1", "GET /jobs/j-1/logs/stream: line 3 follows line 1"];
    assert_eq!(all(follow(&gateway, &LogFilter::default()).await).await, expected);
    for filter in [
        LogFilter { task: Some("load".to_owned()), ..LogFilter::default() },
        LogFilter { stream: Some("stdout".to_owned()), ..LogFilter::default() },
    ] {
        assert_eq!(all(follow(&gateway, &filter).await).await, ["1", "3"]);
    }
    let late = Gateway::start(|_, _| events(format!("{}{END}", line(2))));
    let expected = ["GET /jobs/j-1/logs/stream: line 2 follows line 0"];
    assert_eq!(all(follow(&late, &LogFilter::default()).await).await, expected);
    assert_eq!(all(follow(&late, &since("t-1")).await).await, ["2"]);
}

#[tokio::test]
async fn a_refusal_on_the_way_ends_it() {
    let gateway = Gateway::start(|_, number| match number {
        0 => pieces(line(1), Piece::Cut),
        _ => json(404, r#"{"error":{"code":"JOB_NOT_FOUND","message":"gone","details":{}}}"#),
    });
    let expected = ["1", "HTTP 404 GET /jobs/j-1/logs/stream: JOB_NOT_FOUND: gone"];
    assert_eq!(all(follow(&gateway, &LogFilter::default()).await).await, expected);
}

#[tokio::test]
async fn a_gateway_that_stays_away_is_waited_for_only_so_long() {
    let gateway = Gateway::start(|_, number| if number == 0 { events(line(1)) } else { json(503, "{}") });
    let client = Client::new(gateway.url()).unwrap();
    let patience = Duration::from_millis(500);
    let stream = client.follow_log(&job(), &LogFilter::default(), patience).await.unwrap();
    assert_eq!(all(stream).await, ["1", "HTTP 503 GET /jobs/j-1/logs/stream: {}"]);
    assert!(gateway.asked().len() > 1);
}

#[tokio::test]
async fn whoever_comes_back_after_the_end_is_not_sent_away_to_come_again() {
    let gateway = Gateway::start(|_, number| match number {
        0 => events(line(1)),
        _ => json(204, ""),
    });
    assert_eq!(all(follow(&gateway, &LogFilter::default()).await).await, ["1"]);
    let asked = gateway.asked();
    assert_eq!((asked.len(), asked[1].header("last-event-id")), (2, Some("1")));
}

#[tokio::test]
async fn what_is_no_line_ends_it_with_an_error() {
    for text in ["event: logEntry\ndata: {\n\n", "id: 1\nevent: logEntry\ndata: {\"seq\": \"one\"}\n\n"] {
        let gateway = Gateway::start(move |_, _| events(text));
        let seen = all(follow(&gateway, &LogFilter::default()).await).await;
        assert!(seen.len() == 1 && seen[0].contains("a line has another form"), "{seen:?}");
    }
}
