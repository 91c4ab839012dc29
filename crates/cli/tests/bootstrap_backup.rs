//! Backups of NATS as an operator makes and uses them: while runs are under way, of one stream, and those that cannot be trusted.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise"
)]

mod bootstrap;
mod support;

use bootstrap::{Home, Node};
use nix::sys::signal::Signal;
use pyoco_client::api::RunStatus;
use serde_json::{Value, json};
use support::{Running, Site, is_terminal};

const FLOW: &str =
    "version: 2\nflow: {graph: 'one >> two'}\ntasks: {one: {command: ['true']}, two: {command: ['true']}}\n";

fn is_soak() -> bool {
    std::env::var_os("SOAK").is_some_and(|value| value == "1")
}

fn site(url: &str) -> Site {
    let site = Site::new().flow("small", FLOW, "").env("PYOCO_LOG_LEVEL", "warning");
    // One after the other, so that some are under way however fast the machine is.
    let site = site.argument("--concurrency").argument("1");
    site.argument("--nats-url").argument(url).argument("--with-worker")
}

async fn ended(running: &Running, run: &str) -> RunStatus {
    let ended = running.until_ended(run).await;
    assert!(is_terminal(ended.status));
    ended.status
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_of_runs_under_way_becomes_a_store_with_every_one_of_them() {
    let count = if is_soak() { 1_000 } else { 200 };
    let (home, node) = (Home::new(), Node::new("n"));
    node.start(&home, "up", &[]);
    let url = node.url();
    let site = site(&url);
    let running = site.start();
    let mut before = Vec::new();
    for _ in 0..count {
        before.push(running.submit("small", json!({})).await);
    }
    let states = running.client.get_metrics().await.unwrap();
    let done = states.lines().find_map(|line| line.strip_prefix("pyoco_runs_total{status=\"COMPLETED\"} "));
    let answer = home.json(&["backup", "--nats-url", &url, "--output", "monday"]);
    assert!(answer["bytes"].as_u64().unwrap() > 0, "{answer}");
    eprintln!("{} of {count} had ended when the backup began", done.unwrap_or("0"));
    assert!(done.unwrap_or("0").parse::<usize>().unwrap() < count, "some were under way");
    // What comes later is not in it.
    let after = running.submit("small", json!({})).await;
    ended(&running, &after).await;
    assert!(running.stop(Signal::SIGTERM).success());
    let refused = home.refused(1, &["backup", "--nats-url", &url, "--output", "monday"]);
    assert!(refused.contains("exists already"), "{refused}");
    assert!(home.refused(2, &["restore", "--nats-url", &url, "--input", "monday"]).contains("--confirm"));
    assert!(
        home.refused(2, &["restore", "--nats-url", &url, "--input", "none", "--confirm"])
            .contains("input not found")
    );
    let refused = home.refused(1, &["restore", "--nats-url", &url, "--input", "monday", "--confirm"]);
    assert!(refused.contains("nothing that exists is written over"), "{refused}");

    // Everything is gone.
    home.done(&["down", "--confirm", "--pid-file", "n.pid"]);
    std::fs::remove_dir_all(home.path("n")).unwrap();
    node.start(&home, "up", &[]);
    // A backup that somebody has touched makes nothing.
    let data = home.path("monday/PYOCO_EVENTS.snapshot");
    let whole = std::fs::read(&data).unwrap();
    let mut touched = whole.clone();
    touched[whole.len() / 2] ^= 1;
    for flawed in [&touched[..], &whole[..whole.len() / 2]] {
        std::fs::write(&data, flawed).unwrap();
        home.refused(1, &["restore", "--nats-url", &url, "--input", "monday", "--confirm"]);
        assert_eq!(streams(&home, &url), Vec::<String>::new());
    }
    std::fs::write(&data, &whole).unwrap();
    let answer = home.json(&["restore", "--nats-url", &url, "--input", "monday", "--confirm"]);
    // The auditor has folded every one of them.
    assert!(answer["checked"]["executions"].as_u64().unwrap() >= count as u64, "{answer}");
    let running = site.start();
    for run in &before {
        assert_eq!(ended(&running, run).await, RunStatus::Completed, "{run}");
    }
    assert!(running.client.get_run(&after).await.is_err());
    let run = running.submit("small", json!({})).await;
    assert_eq!(ended(&running, &run).await, RunStatus::Completed);
}

fn streams(home: &Home, url: &str) -> Vec<String> {
    let status = home.json(&["status", "--nats-url", url]);
    let streams = status["jetstream"]["streams"].as_array().unwrap().iter();
    streams.map(|stream| stream["name"].as_str().unwrap().to_owned()).collect()
}

async fn asked(client: &async_nats::Client, subject: &str, body: Value) -> Value {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    serde_json::from_slice(&client.request(subject.to_owned(), body.into()).await.unwrap().payload).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_stream_is_copied_in_the_form_of_the_nats_tool_and_made_again() {
    let (home, node) = (Home::new(), Node::new("n"));
    node.start(&home, "up", &[]);
    let url = node.url();
    let client = async_nats::connect(&url).await.unwrap();
    let made =
        asked(&client, "$JS.API.STREAM.CREATE.THINGS", json!({"name": "THINGS", "subjects": ["things.*"]}))
            .await;
    assert!(made.get("error").is_none(), "{made}");
    for number in 0..500 {
        let stored = client
            .request(format!("things.{number}"), format!("thing {number}").repeat(100).into())
            .await
            .unwrap();
        assert!(String::from_utf8_lossy(&stored.payload).contains("\"seq\""));
    }
    assert!(
        home.refused(1, &["backup", "--nats-url", &url, "--stream", "NONE", "--output", "x"])
            .contains("no stream NONE")
    );
    assert!(
        home.refused(1, &["backup", "--nats-url", &url, "--stream", "a.>", "--output", "x"])
            .contains("a stream")
    );
    assert!(!home.path("x").exists());
    let answer = home.json(&["backup", "--nats-url", &url, "--stream", "THINGS", "--output", "things"]);
    let mut names: Vec<_> =
        std::fs::read_dir(home.path("things")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["backup.json", "stream.tar.s2"]);
    let list: Value =
        serde_json::from_slice(&std::fs::read(home.path("things/backup.json")).unwrap()).unwrap();
    assert_eq!((&list["config"]["name"], &list["state"]["messages"]), (&json!("THINGS"), &json!(500)));
    assert_eq!(list["sha256"], answer["sha256"]);
    let restore = ["restore", "--nats-url", &url, "--input", "things", "--confirm"];
    assert!(home.refused(1, &restore).contains("THINGS already"));

    asked(&client, "$JS.API.STREAM.DELETE.THINGS", Value::Null).await;
    let data = home.path("things/stream.tar.s2");
    let whole = std::fs::read(&data).unwrap();
    let mut changed = whole.clone();
    changed[whole.len() - 9] ^= 0x40;
    for (flawed, why) in [
        (&changed[..], "is not as it was"),
        (&whole[..whole.len() - 1], "bytes and should have"),
        (b"", "bytes"),
    ] {
        std::fs::write(&data, flawed).unwrap();
        let said = home.refused(1, &restore);
        assert!(said.contains(why) && said.contains("nothing was made"), "{said}");
    }
    // Also where the list has nothing to compare with, as the nats tool writes it.
    let mut plain = list.clone();
    for ours in ["sha256", "bytes"] {
        plain.as_object_mut().unwrap().remove(ours);
    }
    std::fs::write(home.path("things/backup.json"), plain.to_string()).unwrap();
    std::fs::write(&data, &whole[..whole.len() / 2]).unwrap();
    home.refused(1, &restore);
    assert_eq!(streams(&home, &url), Vec::<String>::new());
    std::fs::write(&data, &whole).unwrap();
    assert_eq!(home.done(&restore), "restore: ok\n");
    let info = asked(&client, "$JS.API.STREAM.INFO.THINGS", Value::Null).await;
    assert_eq!(info["state"]["messages"], 500);
    let message =
        asked(&client, "$JS.API.STREAM.MSG.GET.THINGS", json!({"last_by_subj": "things.499"})).await;
    assert_eq!(message["message"]["seq"], 500);
}
