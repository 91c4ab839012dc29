//! `pyoco-client` on a terminal: what moves, what stays, and Ctrl-C.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test stops at the first surprise"
)]

#[path = "../../client/tests/support/mod.rs"]
mod support;

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};

use nix::pty::openpty;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use support::{Gateway, Piece, Reply, json, run, snapshot};

/// Starts the program on a new terminal of 100 columns; gives it and the other end of the terminal.
fn on_terminal(gateway: &Gateway, arguments: &[&str], no_color: bool) -> (Child, File) {
    let size = nix::pty::Winsize { ws_row: 24, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
    let terminal = openpty(&size, None).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_pyoco-client"));
    command
        .args(["--server", &gateway.url()])
        .args(arguments)
        .env("TERM", "xterm-256color")
        .env_remove("NO_COLOR");
    if no_color {
        command.env("NO_COLOR", "1");
    }
    let slave = File::from(terminal.slave);
    command.stdout(slave.try_clone().unwrap()).stderr(slave);
    let child = command.spawn().unwrap();
    // The command keeps its ends of the terminal; only the child's may stay open.
    drop(command);
    (child, File::from(terminal.master))
}

/// Everything the program showed until it ended.
fn shown(mut terminal: File) -> String {
    let mut bytes = Vec::new();
    let mut part = [0; 4_096];
    // The end of the last program on a terminal reads as an error.
    while let Ok(count @ 1..) = terminal.read(&mut part) {
        bytes.extend_from_slice(&part[..count]);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads until the terminal has shown `text`, and gives all that it has shown meanwhile.
fn wait_for(terminal: &mut File, text: &str) -> String {
    let mut seen = String::new();
    let mut part = [0; 4_096];
    while !seen.contains(text) {
        let count = terminal.read(&mut part).unwrap();
        seen.push_str(&String::from_utf8_lossy(&part[..count]));
    }
    seen
}

fn going_on() -> Gateway {
    Gateway::start(|asked, _| match asked.path() {
        "/runs/r-1/watch" => {
            Reply::Events(vec![Piece::Bytes(snapshot(Some(1), "RUNNING").into_bytes()), Piece::Hang])
        }
        _ => run("CANCELLING"),
    })
}

#[test]
fn progress_moves_and_the_end_stays() {
    let (open, gate) = std::sync::mpsc::channel();
    let gate = std::sync::Mutex::new(Some(gate));
    let gateway = Gateway::start(move |_, _| {
        Reply::Events(vec![
            Piece::Bytes(snapshot(Some(1), "RUNNING").into_bytes()),
            Piece::Gate(gate.lock().unwrap().take().unwrap()),
            Piece::Bytes(snapshot(Some(2), "COMPLETED").into_bytes()),
            Piece::Hang,
        ])
    });
    let arguments = ["watch", "r-1", "--until-terminal", "--output", "status"];
    let (mut child, mut terminal) = on_terminal(&gateway, &arguments, false);
    wait_for(&mut terminal, "1/2 tasks  b");
    open.send(()).unwrap();
    let text = shown(terminal);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(text.ends_with("\u{1b}[32m✔ COMPLETED\u{1b}[0m  main  1/2 tasks  r-1\r\n"), "{text:?}");
}

#[test]
fn without_colours_nothing_is_coloured() {
    let gateway = Gateway::start(|_, _| {
        Reply::Events(vec![Piece::Bytes(snapshot(Some(2), "FAILED").into_bytes()), Piece::Hang])
    });
    let arguments = ["watch", "r-1", "--until-terminal", "--output", "status"];
    let (mut child, terminal) = on_terminal(&gateway, &arguments, true);
    let text = shown(terminal);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(text.ends_with("✘ FAILED  main  1/2 tasks  r-1\r\n"), "{text:?}");
    let colours = text.match_indices("\u{1b}[").filter(|(at, _)| {
        text[at + 2..].split_once('m').is_some_and(|(code, _)| {
            code.chars().all(|letter| letter.is_ascii_digit() || letter == ';')
                && code != "0"
                && !code.is_empty()
        })
    });
    assert_eq!(colours.count(), 0, "{text:?}");
}

#[test]
fn a_run_whose_tasks_are_not_known_yet_has_a_spinner_and_no_bar() {
    let (open, gate) = std::sync::mpsc::channel();
    let gate = std::sync::Mutex::new(Some(gate));
    let gateway = Gateway::start(move |_, _| {
        let run = serde_json::json!({
            "run_id": "r-1", "flow_name": "main", "status": "PENDING", "tasks": {},
            "waiting": [{"reason": "no_worker", "tag": "gpu", "message": "no worker\nfor gpu"}],
        });
        let data = serde_json::json!({"run_id": "r-1", "snapshot": run, "ts": 1.0});
        Reply::Events(vec![
            Piece::Bytes(format!("id: 1\nevent: snapshot\ndata: {data}\n\n").into_bytes()),
            Piece::Gate(gate.lock().unwrap().take().unwrap()),
            Piece::Bytes(snapshot(Some(2), "RUNNING").into_bytes()),
            Piece::Hang,
        ])
    });
    let (mut child, mut terminal) = on_terminal(&gateway, &["watch", "r-1", "--output", "status"], true);
    let before = wait_for(&mut terminal, "PENDING no worker\\nfor gpu");
    open.send(()).unwrap();
    let after = wait_for(&mut terminal, "1/2 tasks  b");
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!before.contains(" [") && !before.contains("tasks"), "{before:?}");
    assert!(!after.contains("0/0"), "{after:?}");
    assert!(after.contains("RUNNING [============>"), "{after:?}");
}

#[test]
fn an_interrupt_ends_a_watch_and_leaves_a_clean_line() {
    let gateway = going_on();
    let (mut child, mut terminal) = on_terminal(&gateway, &["watch", "r-1", "--output", "status"], false);
    wait_for(&mut terminal, "1/2 tasks  b");
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    let text = shown(terminal);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let last = text.rsplit("\u{1b}[2K").next().unwrap();
    assert_eq!(last.trim(), "", "{text:?}");
    assert!(!text.contains("ERR-PYOCO"), "{text:?}");
}

#[test]
fn an_interrupt_ends_a_cancel_that_waits() {
    let gateway = going_on();
    let (mut child, mut terminal) = on_terminal(&gateway, &["cancel", "--run-id", "r-1", "--wait"], false);
    wait_for(&mut terminal, "RUNNING");
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    let text = shown(terminal);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!text.contains("{\"run_id\""), "{text:?}");
}

#[test]
fn an_interrupt_ends_a_watch_into_a_pipe_that_nobody_reads() {
    let gateway = Gateway::start(|_, _| {
        let many = snapshot(Some(1), "RUNNING").repeat(5_000);
        Reply::Events(vec![Piece::Bytes(many.into_bytes()), Piece::Hang])
    });
    let mut command = Command::new(env!("CARGO_BIN_EXE_pyoco-client"));
    command.args(["--server", &gateway.url(), "watch", "r-1"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut reader = BufReader::with_capacity(64, child.stdout.take().unwrap());
    reader.read_line(&mut String::new()).unwrap();
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "");
}

const EVENT: &str = "id: 1\nevent: NODE_READY\ndata: {\"seq\":1,\"eventId\":\"x\",\"executionId\":\"e-1\",\"type\":\"NODE_READY\",\
                     \"occurredAt\":\"2026-01-31T00:00:00Z\",\"actor\":{\"kind\":\"system\"},\"schemaVersion\":1,\
                     \"payload\":{\"nodeId\":\"a\"}}\n\n";

#[test]
fn waits_are_a_table_on_a_terminal() {
    let gateway = Gateway::start(|_, _| {
        let prompt = serde_json::json!({"question": "long ".repeat(40)});
        let wait = serde_json::json!({
            "executionId": "e-1", "graphId": "g", "nodeId": "ask", "waitKey": "k\u{1b}[2J", "prompt": prompt,
            "since": "2026-01-31T00:00:00Z", "tags": [],
        });
        json(200, serde_json::json!({"items": [wait], "nextCursor": null}).to_string())
    });
    let (mut child, terminal) = on_terminal(&gateway, &["waits"], false);
    let text = shown(terminal);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    assert_eq!(names, ["executionId", "nodeId", "waitKey", "since", "graphId", "prompt"]);
    let row = lines.next().unwrap();
    assert!(
        row.starts_with("e-1          ask     k\\u{1b}[2J  ") && row.trim_end().ends_with('…'),
        "{row:?}"
    );
}

#[test]
fn an_interrupt_ends_the_following_of_events() {
    let gateway =
        Gateway::start(|_, _| Reply::Events(vec![Piece::Bytes(EVENT.as_bytes().to_vec()), Piece::Hang]));
    let (mut child, mut terminal) = on_terminal(&gateway, &["exec", "events", "e-1", "--follow"], false);
    let text = wait_for(&mut terminal, "\r\n");
    assert!(text.starts_with("    1  2026-01-31T00:00:00.000000Z  NODE_READY  "), "{text:?}");
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

/// A log of three lines whose run has completed.
fn with_log() -> Gateway {
    Gateway::start(|asked, _| match asked.path() {
        "/runs/r-1/logs/stream" => {
            let line = |seq: u64, task: Option<&str>, stream: &str, message: &str| {
                let entry = serde_json::json!({
                    "seq": seq, "timestamp": "2026-01-31T00:00:00Z", "message": message, "task": task, "attempt": 1,
                    "stream": stream,
                });
                format!("id: {seq}\nevent: logEntry\ndata: {entry}\n\n")
            };
            let text = [
                line(1, Some("load"), "stdout", "a \u{1b}[32mgreen\u{1b}[2J"),
                line(2, Some("load"), "stderr", "odd"),
                line(3, None, "engine", "run completed"),
                "event: status\ndata: {\"run_id\":\"r-1\",\"status\":\"COMPLETED\"}\n\n".to_owned(),
            ];
            Reply::Events(vec![Piece::Bytes(text.concat().into_bytes()), Piece::Hang])
        }
        "/runs/r-1/watch" => Reply::Events(vec![Piece::Bytes(snapshot(Some(2), "COMPLETED").into_bytes())]),
        _ => run("COMPLETED"),
    })
}

#[test]
fn a_log_has_colours_on_a_terminal() {
    let arguments = ["logs", "--run-id", "r-1", "--follow", "--no-timestamps"];
    let (mut child, terminal) = on_terminal(&with_log(), &arguments, false);
    let text = shown(terminal);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let lines: Vec<&str> = text.split("\r\n").collect();
    let name = lines[0]
        .strip_suffix(" stdout | a \u{1b}[32mgreen\\x1b[2J\u{1b}[0m")
        .unwrap_or_else(|| panic!("{text:?}"));
    assert!(name.starts_with("\u{1b}[") && name.ends_with("mload\u{1b}[0m"), "{name:?}");
    assert_eq!(lines[1], format!("{name} \u{1b}[31mstderr\u{1b}[0m | \u{1b}[31modd\u{1b}[0m"));
    assert_eq!(lines[2], "\u{1b}[2m-\u{1b}[0m \u{1b}[2mengine\u{1b}[0m | \u{1b}[2mrun completed\u{1b}[0m");
}

#[test]
fn a_log_has_no_colours_where_nobody_wants_them() {
    let (mut child, terminal) = on_terminal(&with_log(), &["logs", "--run-id", "r-1", "--follow"], true);
    let text = shown(terminal);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let at = "2026-01-31T00:00:00.000000Z";
    assert_eq!(
        text,
        format!(
            "{at} load stdout | a green\\x1b[2J\r\n{at} load stderr | odd\r\n{at} - engine | run completed\r\n"
        )
    );
}

#[test]
fn jobs_are_a_table_on_a_terminal() {
    let gateway = Gateway::start(|asked, _| {
        let job = serde_json::json!({
            "id": "j-1", "status": "running", "createdAt": "2026-01-31T00:00:00Z", "startedAt": null,
            "completedAt": null, "tags": ["a", "b\u{1b}[2J"], "flow": "analysis",
        });
        match asked.path() {
            "/jobs" => json(200, serde_json::json!({"jobs": [job]}).to_string()),
            _ => json(200, job.to_string()),
        }
    });
    let (mut child, terminal) = on_terminal(&gateway, &["job", "list"], false);
    let text = shown(terminal);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        rows,
        [
            ["id", "status", "tags", "createdAt", "completedAt"],
            ["j-1", "running", "a,b\\u{1b}[2J", "2026-01-31T00:00:00Z", "-"],
        ]
    );
    let (mut child, terminal) = on_terminal(&gateway, &["job", "get", "j-1"], false);
    let text = shown(terminal);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(text.starts_with("running  analysis  j-1\r\ntags        a,b\\u{1b}[2J\r\n"), "{text:?}");
}

#[test]
fn an_interrupt_ends_the_following_of_a_log() {
    let gateway = Gateway::start(|_, _| {
        let line = "id: 1\nevent: logEntry\ndata: {\"seq\":1,\"timestamp\":\"2026-01-31T00:00:00Z\",\"message\":\"hello\",\
                    \"task\":null,\"attempt\":0,\"stream\":\"engine\"}\n\n";
        Reply::Events(vec![Piece::Bytes(line.as_bytes().to_vec()), Piece::Hang])
    });
    let (mut child, mut terminal) = on_terminal(&gateway, &["logs", "--run-id", "r-1", "--follow"], false);
    wait_for(&mut terminal, "hello");
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
