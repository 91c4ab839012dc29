//! Waiting for the end of a run: watched where it can be, asked again and again where not.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test stops at the first surprise"
)]

mod support;

use std::sync::Mutex;
use std::time::Duration;

use pyoco_client::api::RunStatus;
use pyoco_client::{Client, Error};
use support::{Gateway, Piece, Reply, events, json, run, snapshot};

const LONG: Option<Duration> = Some(Duration::from_secs(30));

fn client(gateway: &Gateway) -> Client {
    Client::new(gateway.url()).unwrap()
}

fn paths(gateway: &Gateway) -> Vec<String> {
    gateway.asked().iter().map(|asked| format!("{} {}", asked.method, asked.path())).collect()
}

#[tokio::test]
async fn a_run_that_has_ended_needs_no_waiting() {
    let gateway = Gateway::start(|_, _| run("CANCELLED"));
    assert_eq!(client(&gateway).cancel_run("r-1", LONG).await.unwrap().status, RunStatus::Cancelled);
    assert_eq!(paths(&gateway), ["POST /runs/r-1/cancel"]);
}

#[tokio::test]
async fn the_end_is_watched_for_and_read_once() {
    let (open, gate) = std::sync::mpsc::channel();
    let gate = Mutex::new(Some(gate));
    let gateway = Gateway::start(move |asked, _| match asked.path() {
        "/runs/r-1/cancel" => run("CANCELLING"),
        "/runs/r-1/watch" => Reply::Events(vec![
            Piece::Bytes(snapshot(Some(1), "CANCELLING").into_bytes()),
            Piece::Gate(gate.lock().unwrap().take().unwrap()),
            Piece::Bytes(snapshot(Some(2), "CANCELLED").into_bytes()),
            Piece::Hang,
        ]),
        _ => run("CANCELLED"),
    });
    let client = client(&gateway);
    client.cancel_run("r-1", None).await.unwrap();
    let mut seen = Vec::new();
    let see = |run: &pyoco_client::api::RunSnapshot| {
        seen.push(run.status);
        let _ = open.send(());
    };
    let ended = client.wait_for_end("r-1", Duration::from_secs(30), see).await.unwrap();
    assert_eq!(ended.status, RunStatus::Cancelled);
    assert_eq!(seen, [RunStatus::Cancelling, RunStatus::Cancelled, RunStatus::Cancelled]);
    assert_eq!(paths(&gateway), ["POST /runs/r-1/cancel", "GET /runs/r-1/watch", "GET /runs/r-1"]);
}

#[tokio::test]
async fn where_nothing_can_be_watched_the_run_is_asked_for() {
    let gateway = Gateway::start(|asked, number| match (asked.path(), number) {
        ("/runs/r-1/cancel", _) => run("CANCELLING"),
        ("/runs/r-1/watch", _) => json(404, r#"{"detail":"Not Found"}"#),
        (_, 2) => run("CANCELLING"),
        (_, 3) => json(503, "{}"),
        _ => run("COMPLETED"),
    });
    assert_eq!(client(&gateway).cancel_run("r-1", LONG).await.unwrap().status, RunStatus::Completed);
    let tail = ["GET /runs/r-1", "GET /runs/r-1", "GET /runs/r-1"];
    assert_eq!(paths(&gateway)[..2], ["POST /runs/r-1/cancel", "GET /runs/r-1/watch"]);
    assert_eq!(paths(&gateway)[2..], tail);
}

#[tokio::test]
async fn a_watch_that_ends_early_is_followed_by_another_way() {
    let gateway = Gateway::start(|asked, _| match asked.path() {
        "/runs/r-1/cancel" => run("CANCELLING"),
        "/runs/r-1/watch" => events(""),
        _ => run("CANCELLED"),
    });
    assert_eq!(client(&gateway).cancel_run("r-1", LONG).await.unwrap().status, RunStatus::Cancelled);
}

#[tokio::test]
async fn patience_ends_and_says_so() {
    let gateway = Gateway::start(|asked, _| match asked.path() {
        "/runs/r-1/watch" => {
            Reply::Events(vec![Piece::Bytes(snapshot(Some(1), "CANCELLING").into_bytes()), Piece::Hang])
        }
        _ => run("CANCELLING"),
    });
    let error = client(&gateway).cancel_run("r-1", Some(Duration::ZERO)).await.unwrap_err();
    assert!(
        matches!(&error, Error::WaitTimeout { limit, .. } if *limit == Duration::from_secs(1)),
        "{error:?}"
    );
    assert_eq!(error.to_string(), "wait timeout for run_id=r-1");
}

#[tokio::test]
async fn a_run_that_vanished_is_not_waited_for() {
    let gateway = Gateway::start(|asked, _| match asked.path() {
        "/runs/r-1/cancel" => run("CANCELLING"),
        _ => json(404, r#"{"detail":"run not found"}"#),
    });
    assert_eq!(client(&gateway).cancel_run("r-1", LONG).await.unwrap_err().status(), Some(404));
}
