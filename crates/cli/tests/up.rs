//! `pyoco-server up` as people use it: one process, real Python tasks, real signals.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and measures its own patience"
)]

mod support;

use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use pyoco_client::api::RunStatus;
use serde_json::{Value, json};

use support::{Site, empty, is_alive, processes_with, until_written};

const SLEEPER: &str = "\
version: 2
flow: {graph: 'nap >> after'}
tasks:
  nap: {callable: 'sleeper_tasks:nap'}
  after: {callable: 'sleeper_tasks:after'}
";

/// Says who it is, starts a child of its own, and sleeps. With `polite` it ends when it is asked to.
const SLEEPER_TASKS: &str = r#"
import os, subprocess, time

def nap(ctx, path, polite=False, seconds=60):
    child = subprocess.Popen(["sleep", "61.5"])
    with open(path + ".part", "w") as file:
        file.write(f"{os.getpid()} {child.pid}\n")
    os.rename(path + ".part", path)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if polite and ctx.is_cancelled:
            return "stopped"
        time.sleep(0.01)
    return "slept"

def after(): return "done"
"#;

fn sleeper() -> Site {
    Site::new().flow("sleeper", SLEEPER, SLEEPER_TASKS).env("PYOCO_CANCEL_GRACE_PERIOD_SEC", "0.5")
}

fn pids(path: &Path) -> Vec<i32> {
    until_written(path).split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

fn all_gone(pids: &[i32]) {
    let since = Instant::now();
    while pids.iter().any(|pid| is_alive(*pid)) {
        assert!(since.elapsed() < Duration::from_secs(3), "{pids:?} are left");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[tokio::test]
async fn the_example_runs_from_its_name_to_its_result() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let site = Site::new();
    for file in ["flow.yaml", "hello_tasks.py"] {
        let folder = site.path("flows").join("hello");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::copy(examples.join("hello").join(file), folder.join(file)).unwrap();
    }
    let running = site.start();
    let run = running.submit("hello", json!({"name": "Ada"})).await;
    let ended = running.until_ended(&run).await;
    assert_eq!(ended.status, RunStatus::Completed, "{:?}", ended.error);
    let records = ended.task_records.unwrap();
    assert!(records["report"].output.as_str().unwrap().starts_with("Hello, Ada! 4 words"));
    assert_eq!(serde_json::to_value(&records["translate"]).unwrap()["attempts"].as_array().unwrap().len(), 2);
    for task in ["fetch", "count", "shout", "translate", "report"] {
        let is_line = |line: &Value| line["logger"] == "pyoco_server.task" && line["task"] == task;
        assert_eq!(running.logged(is_line).await["run_id"], json!(run));
    }
    // What is left out comes from the flow's own defaults.
    let run = running.submit("hello", empty()).await;
    let ended = running.until_ended(&run).await;
    assert_eq!(ended.params["name"], json!("world"));
    assert!(ended.task_records.unwrap()["report"].output.as_str().unwrap().starts_with("Hello, world!"));
    assert!(running.stop(Signal::SIGTERM).success());
}

#[tokio::test]
async fn the_page_begins_with_the_language_of_the_flag_and_may_do_what_the_setting_says() {
    let site = Site::new().env("PYOCO_DASHBOARD_LANG", "en").env("PYOCO_DASHBOARD_ACTIONS", "1");
    let site = site.argument("--no-worker").argument("--dashboard-lang=ja");
    let running = site.start();
    let answer = reqwest::get(&running.url).await.unwrap();
    let (status, text) = (answer.status().as_u16(), answer.text().await.unwrap());
    if status == 404 {
        // Nobody has built it on this machine.
        assert_eq!(text, r#"{"detail":"dashboard not found"}"#);
    } else {
        for told in [r#"name="pyoco-lang" content="ja""#, r#"name="pyoco-actions" content="1""#] {
            assert!(text.contains(told), "{told}: {text}");
        }
    }
    assert!(running.stop(Signal::SIGTERM).success());
}

#[tokio::test]
async fn a_pending_run_is_cancelled_within_a_second() {
    let site = sleeper().argument("--no-worker");
    let running = site.start();
    let run = running.submit("sleeper", empty()).await;
    let since = Instant::now();
    let answer = running.client.cancel_run(&run, None).await.unwrap();
    assert_eq!(answer.status, RunStatus::Cancelled);
    assert!(answer.cancel_requested_at.is_some());
    assert!(since.elapsed() < Duration::from_secs(1));
}

#[tokio::test]
async fn a_task_that_does_not_listen_is_ended_within_two_seconds_and_leaves_nobody_behind() {
    let site = sleeper();
    let running = site.start();
    let path = site.path("pids");
    let run = running.submit("sleeper", json!({"path": path})).await;
    let pids = pids(&path);
    let since = Instant::now();
    let answer = running.client.cancel_run(&run, None).await.unwrap();
    assert_eq!(answer.status, RunStatus::Cancelling);
    let ended = running.until_ended(&run).await;
    assert!(since.elapsed() < Duration::from_secs(2), "it took {:?}", since.elapsed());
    assert_eq!(ended.status, RunStatus::Cancelled);
    assert_eq!(ended.tasks["after"], "CANCELLED");
    all_gone(&pids);
    running.logged(|line| line["err_id"] == "ERR-PYOCO-0021").await;
}

#[tokio::test]
async fn a_running_run_is_heard_again_and_again() {
    let site = sleeper().env("PYOCO_RUN_HEARTBEAT_INTERVAL_SEC", "0.1");
    let running = site.start();
    let run = running.submit("sleeper", json!({"path": site.path("pids")})).await;
    pids(&site.path("pids"));
    let first = running.until(&run, |snapshot| snapshot.heartbeat_at > snapshot.updated_at).await;
    let later = running.until(&run, |snapshot| snapshot.heartbeat_at > first.heartbeat_at).await;
    assert_eq!(
        (later.status, later.updated_at),
        (RunStatus::Running, first.updated_at),
        "only the heartbeat moved"
    );
}

#[tokio::test]
async fn a_task_that_listens_ends_at_once() {
    let site = sleeper().env("PYOCO_CANCEL_GRACE_PERIOD_SEC", "30");
    let running = site.start();
    let path = site.path("pids");
    let run = running.submit("sleeper", json!({"path": path, "polite": true})).await;
    let pids = pids(&path);
    let since = Instant::now();
    running.client.cancel_run(&run, None).await.unwrap();
    let ended = running.until_ended(&run).await;
    assert!(since.elapsed() < Duration::from_secs(2), "it took {:?}", since.elapsed());
    assert_eq!((ended.status, ended.tasks["after"].as_str()), (RunStatus::Cancelled, "CANCELLED"));
    all_gone(&pids);
}

#[tokio::test]
async fn no_task_outlives_a_killed_server_and_the_run_goes_on_after_a_restart() {
    let site = sleeper();
    let running = site.start();
    let path = site.path("pids");
    let run = running.submit("sleeper", json!({"path": path, "seconds": 0.3})).await;
    let first = pids(&path);
    running.kill();
    all_gone(&first);
    std::fs::remove_file(&path).unwrap();
    let running = site.start();
    let second = pids(&path);
    assert_ne!(first, second);
    let ended = running.until_ended(&run).await;
    assert_eq!(ended.status, RunStatus::Completed, "{:?}", ended.error);
    let nap = serde_json::to_value(&ended.task_records.unwrap()["nap"]).unwrap();
    let states: Vec<&Value> =
        nap["attempts"].as_array().unwrap().iter().map(|attempt| &attempt["state"]).collect();
    assert_eq!(states, ["LOST", "SUCCEEDED"]);
}

#[tokio::test]
async fn a_stop_lets_a_running_task_finish() {
    let site = sleeper();
    let running = site.start();
    let path = site.path("pids");
    let run = running.submit("sleeper", json!({"path": path, "seconds": 1})).await;
    let pids = pids(&path);
    assert!(running.stop(Signal::SIGTERM).success());
    all_gone(&pids);
    let running = site.start();
    let ended = running.until_ended(&run).await;
    assert_eq!(ended.status, RunStatus::Completed);
    let nap = serde_json::to_value(&ended.task_records.unwrap()["nap"]).unwrap();
    assert_eq!(nap["attempts"].as_array().unwrap().len(), 1, "it was not made again: {nap}");
}

#[tokio::test]
async fn a_worker_that_left_is_told_from_one_that_vanished() {
    let site = Site::new()
        .env("PYOCO_WORKER_DISCONNECT_TIMEOUT_SEC", "0.5")
        .env("PYOCO_WORKER_HEARTBEAT_INTERVAL_SEC", "0.1");
    let state = |workers: Value| workers[0]["state"].as_str().unwrap_or("none").to_owned();
    let running = site.start();
    let since = Instant::now();
    while state(running.workers().await) != "IDLE" {
        assert!(since.elapsed() < Duration::from_secs(5));
    }
    assert!(running.stop(Signal::SIGTERM).success());
    let quiet = site.argument("--no-worker");
    let running = quiet.start();
    assert_eq!(state(running.workers().await), "STOPPED_GRACEFUL");
    drop(running);
    let mut site = quiet;
    site.arguments.clear();
    let running = site.start();
    let since = Instant::now();
    while state(running.workers().await) != "IDLE" {
        assert!(since.elapsed() < Duration::from_secs(5));
    }
    running.kill();
    let running = site.argument("--no-worker").start();
    let since = Instant::now();
    while state(running.workers().await) != "DISCONNECTED" {
        assert!(since.elapsed() < Duration::from_secs(5));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[test]
fn a_taken_port_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let output = Site::new().command(port).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.starts_with("[pyoco-server][ERR-PYOCO-0018] "), "{said}");
    assert!(
        said.contains(&format!("127.0.0.1:{port} is already in use")) && said.contains("--port"),
        "{said}"
    );
}

#[test]
fn a_second_server_on_the_same_folder_is_refused() {
    let site = Site::new();
    let _running = site.start();
    let output = site.command(0).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("in use by another process"), "{said}");
}

#[test]
fn every_bad_setting_is_named_before_anything_starts() {
    let site = Site::new().env("PYOCO_HTTP_AUTH_MODE", "maybe").env("PYOCO_CONSUMER_ACK_WAIT_SEC", "soon");
    let output = site.command(0).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("PYOCO_HTTP_AUTH_MODE") && said.contains("PYOCO_CONSUMER_ACK_WAIT_SEC"), "{said}");
    assert!(!site.path("data").exists(), "nothing was made");
}

#[test]
fn arguments_that_make_no_sense_are_refused_in_the_contracts_form() {
    for arguments in
        [&["up", "--port", "http"][..], &["down"], &["up", "--tags", ","], &["--concurrency", "0"]]
    {
        let output =
            std::process::Command::new(env!("CARGO_BIN_EXE_pyoco-server")).args(arguments).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(said.starts_with("ERR-PYOCO-0018: "), "{said}");
        assert!(said.contains("- reason: ") && said.contains("- hint: "), "{said}");
    }
}

#[test]
fn a_misspelt_resolver_or_folder_is_found_at_the_start() {
    for (arguments, wanted) in [
        (["--flow-resolver", "nosuch:thing"], "No module named 'nosuch'"),
        (["--flow-resolver", "garbage"], "neither module:function nor path/file.py:function"),
        (["--flow-resolver", "json:no_such_function"], "no_such_function"),
    ] {
        let output = Site::new().argument(arguments[0]).argument(arguments[1]).command(0).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("ERR-PYOCO-0018") && said.contains(wanted), "{said}");
    }
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_pyoco-worker"))
        .args(["--flows", "/there/is/no/folder", "--run-once", "--data-dir"])
        .arg(Site::new().path("data"))
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.starts_with("ERR-PYOCO-0018: ") && said.contains("there is no such folder"), "{said}");
}

#[tokio::test]
async fn a_run_longer_than_its_lease_is_not_delivered_twice() {
    let site = sleeper()
        .env("PYOCO_CONSUMER_ACK_WAIT_SEC", "0.4")
        .env("PYOCO_ACK_PROGRESS_INTERVAL_SEC", "0.1")
        .argument("--concurrency")
        .argument("4");
    let running = site.start();
    let run = running.submit("sleeper", json!({"path": site.path("pids"), "seconds": 1.5})).await;
    let ended = running.until_ended(&run).await;
    assert_eq!(ended.status, RunStatus::Completed);
    let nap = serde_json::to_value(&ended.task_records.unwrap()["nap"]).unwrap();
    assert_eq!(nap["attempts"].as_array().unwrap().len(), 1, "{nap}");
}

#[tokio::test]
async fn a_failed_run_leaves_a_letter_unless_told_not_to() {
    let flow = "flow: {graph: 'a'}\ntasks: {a: {callable: 'broken_tasks:a'}}\n";
    for (setting, letters) in [("true", "1"), ("false", "0")] {
        let site = Site::new()
            .flow("broken", flow, "def a(): raise ValueError('no rows')\n")
            .env("PYOCO_DLQ_PUBLISH_EXECUTION_ERROR", setting);
        let running = site.start();
        let run = running.submit("broken", empty()).await;
        let ended = running.until_ended(&run).await;
        assert_eq!((ended.status, ended.error.as_deref()), (RunStatus::Failed, Some("no rows")));
        let metrics = running.client.get_metrics().await.unwrap();
        assert!(metrics.contains(&format!("pyoco_dlq_messages_total {letters}\n")), "{metrics}");
        let said = running.logged(|line| line["err_id"] == "ERR-PYOCO-0007").await;
        assert_eq!((&said["run_id"], &said["reason"]), (&json!(run), &json!("no rows")));
        assert_eq!((&said["exc_type"], &said["exc_origin"]["func"]), (&json!("ValueError"), &json!("a")));
    }
}

#[tokio::test]
async fn no_command_outlives_a_killed_server() {
    let site = Site::new().flow(
        "sleepy",
        "version: 2\nflow: {graph: 'a'}\ntasks: {a: {command: [sleep, '64.25']}}\n",
        "",
    );
    let running = site.start();
    let run = running.submit("sleepy", empty()).await;
    running.until(&run, |snapshot| snapshot.tasks.get("a").is_some_and(|state| state == "RUNNING")).await;
    let since = Instant::now();
    let sleeping = loop {
        let found = processes_with("64.25");
        if !found.is_empty() {
            break found;
        }
        assert!(since.elapsed() < Duration::from_secs(5));
    };
    running.kill();
    all_gone(&sleeping);
}

#[test]
fn help_shows_an_example() {
    for (program, arguments) in [
        (env!("CARGO_BIN_EXE_pyoco-server"), &["--help"][..]),
        (env!("CARGO_BIN_EXE_pyoco-server"), &["up", "--help"]),
        (env!("CARGO_BIN_EXE_pyoco-worker"), &["--help"]),
    ] {
        let output = std::process::Command::new(program).args(arguments).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success());
        assert!(said.contains("Example"), "{said}");
    }
}

#[tokio::test]
async fn a_worker_alone_works_off_what_a_server_left() {
    let site = Site::new()
        .flow("quick", "flow: {graph: 'a'}\ntasks: {a: {callable: 'quick_tasks:a'}}\n", "def a(): return 7\n")
        .argument("--no-worker");
    let running = site.start();
    let run = running.submit("quick", empty()).await;
    assert!(running.stop(Signal::SIGTERM).success());
    let worked = std::process::Command::new(env!("CARGO_BIN_EXE_pyoco-worker"))
        .args(["--run-once", "--worker-id", "lone"])
        .arg("--data-dir")
        .arg(site.path("data"))
        .arg("--flows")
        .arg(site.path("flows"))
        .output()
        .unwrap();
    assert!(worked.status.success(), "{}", String::from_utf8_lossy(&worked.stderr));
    let running = site.start();
    let ended = running.until_ended(&run).await;
    assert_eq!((ended.status, ended.worker_id.as_deref()), (RunStatus::Completed, Some("lone")));
}

#[tokio::test]
async fn an_interrupt_ends_with_130_and_nothing_is_left() {
    let site = sleeper();
    let running = site.start();
    let path = site.path("pids");
    running.submit("sleeper", json!({"path": path})).await;
    let pids = pids(&path);
    running.signal(Signal::SIGINT);
    running.logged(|line| line["message"] == "pyoco-server stops").await;
    // The second one does not wait for the task.
    let status = running.stop(Signal::SIGINT);
    assert_eq!(status.code(), Some(130));
    all_gone(&pids);
    assert_eq!(processes_with(site.path("data").to_str().unwrap()), Vec::<i32>::new());
}
