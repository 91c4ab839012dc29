//! `pyoco-client cancel --where` and `retry --where`: against the real server what they do, and against one of the test's own what
//! they say when something goes wrong half-way.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and measures its own patience"
)]

mod support;

#[path = "../../client/tests/support/mod.rs"]
mod stand_in;

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::Child;

use nix::pty::openpty;
use serde_json::{Value, json};
use stand_in::Gateway;
use support::client::{err, out, program, refused, said};
use support::{Running, Site};

/// A server whose runs nobody runs.
fn server() -> (Site, Running) {
    let site = Site::new().argument("--no-worker");
    let running = site.start();
    (site, running)
}

async fn status(running: &Running, run: &str) -> String {
    running.client.get_run(run).await.unwrap().status.to_string()
}

/// Runs that wait for a worker.
async fn waiting(running: &Running, flow: &str, count: usize) -> Vec<String> {
    let mut runs = Vec::new();
    for _ in 0..count {
        runs.push(running.submit(flow, json!({})).await);
    }
    runs
}

#[tokio::test]
async fn many_are_counted_then_canceled_and_the_rest_stays() {
    let (_site, running) = server();
    let (report, other) = (waiting(&running, "report", 3).await, waiting(&running, "other", 1).await);
    let chosen = ["--where", "status=pending", "--where", "flow=report", "--where", "created-after=1h"];
    let with = |rest: &[&'static str]| [&["cancel"], &chosen[..], rest].concat();
    assert_eq!(said(&running.url, &with(&["--dry-run"])), "would cancel 3 executions\n");
    assert_eq!(status(&running, &report[0]).await, "PENDING");
    assert_eq!(said(&running.url, &with(&["--yes", "--reason", "enough"])), "canceled 3 executions\n");
    for run in &report {
        assert_eq!(status(&running, run).await, "CANCELLED");
    }
    let shown = running.client.get_execution(&report[0], None).await.unwrap();
    assert_eq!(shown.cancel_reason.as_deref(), Some("enough"));
    assert_eq!(status(&running, &other[0]).await, "PENDING");
    assert_eq!(said(&running.url, &with(&["--yes"])), "canceled 0 executions\n");
    let ended = ["cancel", "--where", "status=CANCELLED", "--yes"];
    assert_eq!(said(&running.url, &ended), "canceled 0 executions, skipped 3 (3 ALREADY_ENDED)\n");
    assert_eq!(said(&running.url, &["cancel", "--all", "--yes"]), "canceled 1 execution\n");
}

#[tokio::test]
async fn more_than_a_page_is_done_to_the_end() {
    let (_site, running) = server();
    let runs = waiting(&running, "main", 230).await;
    let report: Value =
        serde_json::from_str(&said(&running.url, &["cancel", "--where", "flow=main", "--yes", "--json"]))
            .unwrap();
    assert_eq!((&report["matched"], &report["nextCursor"]), (&json!(230), &Value::Null), "{report}");
    let mut done: Vec<&str> =
        report["done"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
    done.sort_unstable();
    let mut wanted: Vec<&str> = runs.iter().map(String::as_str).collect();
    wanted.sort_unstable();
    assert_eq!(done, wanted);
}

#[tokio::test]
async fn what_was_canceled_is_retried_once() {
    let (_site, running) = server();
    let runs = waiting(&running, "main", 3).await;
    said(&running.url, &["cancel", "--all", "--yes"]);
    let one: Value =
        serde_json::from_str(&said(&running.url, &["retry", "--run-id", &runs[0], "--idempotency-key", "k"]))
            .unwrap();
    let shown = running.client.get_execution(&runs[0], None).await.unwrap();
    assert_eq!(shown.retried_by.as_deref(), one["executionId"].as_str());
    let many = ["retry", "--where", "flow=main", "--yes"];
    assert_eq!(said(&running.url, &many), "retried 2 executions, skipped 1 (1 ALREADY_RETRIED)\n");
    for run in &runs {
        let new = running.client.get_execution(run, None).await.unwrap().retried_by.clone().unwrap();
        assert_eq!(status(&running, &new).await, "PENDING");
    }
    assert_eq!(said(&running.url, &many), "retried 0 executions, skipped 3 (3 ALREADY_RETRIED)\n");
}

#[tokio::test]
async fn where_nobody_can_be_asked_yes_has_to_be_said() {
    let (_site, running) = server();
    let runs = waiting(&running, "main", 1).await;
    for verb in ["cancel", "retry"] {
        let text = refused(&running.url, &[verb, "--where", "flow=main"]);
        assert!(text.contains("nobody to ask") && text.contains("--yes"), "{text}");
    }
    assert_eq!(status(&running, &runs[0]).await, "PENDING");
    let text = refused(&running.url, &["cancel", "--where", "status=DONE", "--yes"]);
    assert!(text.contains("INVALID_INPUT") && text.contains("filter.status.0"), "{text}");
}

#[test]
fn what_is_asked_for_wrongly_is_not_sent() {
    let gateway = Gateway::start(|_, _| stand_in::json(500, "{}"));
    for (arguments, reason) in [
        (&["retry"][..], "the following arguments are required: --run-id"),
        (&["cancel", "--where", "status"], "it must be NAME=VALUE"),
        (&["cancel", "--where", "flow="], "flow has no value"),
        (&["cancel", "--where", "since=1h"], "choose from status, flow"),
        (&["cancel", "--where", "created-before=soon"], "how long ago"),
        (&["cancel", "--where", "flow=a", "--where", "flow=b", "--yes"], "flow is given more than once"),
        (&["cancel", "--where", "flow=a", "--all", "--yes"], "not allowed with"),
        (&["cancel", "--run-id", "r", "--where", "flow=a"], "not allowed with"),
        (&["cancel", "--run-id", "r", "--dry-run"], "not allowed with"),
        (&["cancel", "--where", "flow=a", "--wait", "--yes"], "not allowed with"),
        (&["retry", "--run-id", "r", "--yes"], "not allowed with"),
    ] {
        let text = refused(&gateway.url(), arguments);
        assert!(text.contains(reason), "{arguments:?}: {text}");
    }
    assert!(gateway.asked().is_empty());
}

fn page(done: &[&str], failed: &Value, next: Option<&str>) -> stand_in::Reply {
    let matched = done.len() + failed.as_array().unwrap().len();
    let body = json!({
        "action": "cancel", "dryRun": false, "matched": matched, "done": done, "created": [], "skipped": [],
        "failed": failed, "nextCursor": next,
    });
    stand_in::json(200, body.to_string())
}

#[test]
fn what_was_done_is_told_when_the_rest_cannot_be() {
    let gateway = Gateway::start(|_, number| match number {
        0 => page(&["a", "b"], &json!([]), Some("c-1")),
        _ => stand_in::json(
            503,
            r#"{"error":{"code":"UNAVAILABLE","message":"the store cannot be used now","details":{}}}"#,
        ),
    });
    let arguments = ["cancel", "--where", "flow=x", "--yes", "--idempotency-key", "k"];
    let output = program(&gateway.url(), &arguments).output().unwrap();
    assert_eq!((output.status.code(), out(&output).as_str()), (Some(1), "canceled 2 executions\n"));
    assert!(err(&output).contains("UNAVAILABLE") && err(&output).contains("nothing is done twice"));
    let asked = gateway.asked();
    let cursors: Vec<Value> = asked.iter().map(|asked| asked.json()["cursor"].clone()).collect();
    assert_eq!(cursors, [Value::Null, json!("c-1")]);
    assert!(asked.iter().all(|asked| asked.header("x-idempotency-key") == Some("k")));
    assert_eq!(asked[0].json(), json!({"action": "cancel", "filter": {"flow": "x"}, "limit": 200}));
}

#[test]
fn those_that_could_not_be_canceled_are_named() {
    let gateway = Gateway::start(|_, _| {
        let failed =
            json!([{"id": "b", "code": "INTERNAL", "message": "what is stored\u{1b}[2J cannot be read"}]);
        page(&["a"], &failed, None)
    });
    let output = program(&gateway.url(), &["cancel", "--all", "--yes"]).output().unwrap();
    assert_eq!((output.status.code(), out(&output).as_str()), (Some(1), "canceled 1 execution, failed 1\n"));
    let text = err(&output);
    assert!(text.contains("ERR-PYOCO-BULK: could not cancel 1 execution"), "{text}");
    assert!(text.contains("- reason: b: INTERNAL: what is stored\\u{1b}[2J cannot be read"), "{text}");
}

/// Starts the program on a new terminal; gives it and the other end of the terminal.
fn on_terminal(url: &str, arguments: &[&str]) -> (Child, File) {
    let size = nix::pty::Winsize { ws_row: 24, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
    let terminal = openpty(&size, None).unwrap();
    let slave = File::from(terminal.slave);
    let mut command = program(url, arguments);
    command.env("TERM", "xterm-256color").env("NO_COLOR", "1");
    command.stdin(slave.try_clone().unwrap()).stdout(slave.try_clone().unwrap()).stderr(slave);
    let child = command.spawn().unwrap();
    drop(command);
    (child, File::from(terminal.master))
}

/// Reads until the terminal has shown `text`, and gives all that it has shown meanwhile.
fn wait_for(terminal: &mut File, text: &str) -> String {
    let mut seen = String::new();
    let mut part = [0; 4_096];
    while !seen.contains(text) {
        let count = terminal.read(&mut part).unwrap_or_else(|error| panic!("{error}: {seen:?}"));
        seen.push_str(&String::from_utf8_lossy(&part[..count]));
    }
    seen
}

#[tokio::test]
async fn a_person_is_asked_and_may_say_no() {
    let (_site, running) = server();
    let runs = waiting(&running, "main", 2).await;
    let arguments = ["cancel", "--where", "flow=main"];
    for (answer, code, shown, wanted) in [
        ("\n", 1, "nothing was done", "PENDING"),
        ("no\n", 1, "nothing was done", "PENDING"),
        ("y\n", 0, "canceled 2 executions", "CANCELLED"),
    ] {
        let (mut child, mut terminal) = on_terminal(&running.url, &arguments);
        wait_for(&mut terminal, "cancel 2 executions? [y/N] ");
        terminal.write_all(answer.as_bytes()).unwrap();
        wait_for(&mut terminal, shown);
        assert_eq!(child.wait().unwrap().code(), Some(code), "{answer:?}");
        assert_eq!(status(&running, &runs[0]).await, wanted, "{answer:?}");
    }
    // Where there is nothing to do, nobody is asked.
    let (mut child, mut terminal) = on_terminal(&running.url, &arguments);
    wait_for(&mut terminal, "canceled 0 executions");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
