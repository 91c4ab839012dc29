//! `pyoco-server status` of servers that are up, locked, failing, or not there.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and measures its own patience"
)]

mod support;

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use pyoco_client::api::RunStatus;
use pyoco_testing_nats::{NatsServer, Options};
use serde_json::{Value, json};

use support::{Site, empty, free_port};

const FLOW: &str = "version: 2\nflow: {graph: 'say'}\ntasks:\n  say: {callable: 'hi_tasks:say'}\n";
const TASKS: &str = "def say(): return 'hi'\n";

fn status(url: &str, arguments: &[&str], vars: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pyoco-server"));
    command.args(["status", "--url", url]).args(arguments).env_clear().envs(vars.iter().copied());
    command.output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn told(output: &Output) -> Value {
    serde_json::from_str(&text(output)).unwrap()
}

#[tokio::test]
async fn a_server_that_is_up_tells_how_it_does() {
    let site = Site::new().flow("hi", FLOW, TASKS);
    let running = site.start();
    let run = running.submit("hi", empty()).await;
    let ended = running.until_ended(&run).await;
    assert_eq!(ended.status, RunStatus::Completed, "{:?}", ended.error);
    let output = status(&running.url, &["--json"], &[]);
    assert!(output.status.success(), "{}", text(&output));
    let value = told(&output);
    assert_eq!((&value["up"], &value["runs"]), (&json!(true), &json!({"COMPLETED": 1})));
    assert_eq!((&value["workers_alive"], &value["dead_letters"]), (&json!(1), &json!(0)));
    let output = status(&running.url, &[], &[]);
    assert!(output.status.success());
    let lines = text(&output);
    assert!(lines.starts_with(&format!("up         {}\n", running.url)), "{lines}");
    assert!(lines.contains("1 completed") && lines.contains("1 alive"), "{lines}");
    assert!(running.stop(Signal::SIGTERM).success());
}

#[test]
fn nobody_there_is_exit_code_1() {
    let url = format!("http://127.0.0.1:{}", free_port());
    let output = status(&url, &[], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).starts_with("not up"), "{}", text(&output));
    let output = status(&url, &["--json"], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(told(&output)["up"], json!(false));
}

#[test]
fn a_server_that_asks_for_keys_is_up_and_tells_more_to_whoever_has_one() {
    let site = Site::new().env("PYOCO_HTTP_AUTH_MODE", "api_key").argument("--no-worker");
    let running = site.start();
    let output = status(&running.url, &[], &[]);
    assert!(output.status.success());
    assert!(text(&output).contains("set PYOCO_API_KEY"), "{}", text(&output));
    let made = Command::new(env!("CARGO_BIN_EXE_pyoco-server-admin"))
        .arg("--data-dir")
        .arg(site.path("data"))
        .args(["api-key", "create", "--tenant", "team", "--role", "read"])
        .env("PYOCO_LOAD_DOTENV", "0")
        .output()
        .unwrap();
    let key = told(&made)["api_key"].as_str().unwrap().to_owned();
    let output = status(&running.url, &["--json"], &[("PYOCO_API_KEY", &key)]);
    assert!(output.status.success());
    assert_eq!(told(&output)["workers_alive"], json!(0));
    let output = status(&running.url, &["--api-key", "pyoco_nobodyhas.this"], &[]);
    assert!(output.status.success());
    assert!(text(&output).contains("the API key is not good here"), "{}", text(&output));
}

#[test]
fn a_server_whose_store_is_away_is_not_well() {
    let nats = NatsServer::start(&Options::default());
    let site = Site::new().argument("--nats-url").argument(&nats.url());
    let running = site.start();
    assert!(status(&running.url, &[], &[]).status.success());
    drop(nats);
    let since = Instant::now();
    loop {
        let output = status(&running.url, &[], &[]);
        if output.status.code() == Some(1) {
            assert!(text(&output).starts_with("failing"), "{}", text(&output));
            return;
        }
        assert!(since.elapsed() < Duration::from_secs(20), "it is still said to be well");
        std::thread::sleep(Duration::from_millis(50));
    }
}
