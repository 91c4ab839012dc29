//! Wheels from an upload to a task, with real processes: what a kill leaves, what a damaged store does, and which flags count.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and measures its own patience"
)]

mod support;

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use pyoco_client::api::{RunSnapshot, RunStatus};
use pyoco_testkit::wheel;
use serde_json::{Value, json};

use support::client::done;
use support::{PATIENCE, Running, Site, empty, is_alive, until_written};

const FLOW: &str = "\
version: 2
flow: {graph: 'first >> later'}
tasks:
  first: {callable: 'versions_tasks:first'}
  later: {callable: 'versions_tasks:later'}
";

/// Which version of the wheel's package a task has; the first waits for a file if it is told to.
const MODULE: &str = r#"
import os, time

def version():
    try:
        import tools
    except ImportError:
        return None
    return tools.VERSION

def first(started=None, flag=None):
    found = version()
    if started and not os.path.exists(started):
        with open(started, "w") as file:
            file.write("started\n")
    while flag and not os.path.exists(flag):
        time.sleep(0.01)
    return found

def later():
    return version()
"#;

fn site() -> Site {
    Site::new().flow("versions", FLOW, MODULE).env("PYOCO_CONSUMER_ACK_WAIT_SEC", "2")
}

fn upload(running: &Running, site: &Site, version: &str) -> String {
    let code = format!("VERSION = '{version}'\n");
    let (name, bytes) = wheel("tools", version, &[("tools.py", code.as_str())]);
    let path = site.path(&name);
    std::fs::write(&path, bytes).unwrap();
    done(&running.url, &["wheel-upload", "--preflight", "off", "--wheel-file", path.to_str().unwrap()]);
    name
}

fn versions(snapshot: &RunSnapshot) -> [Value; 2] {
    assert_eq!(snapshot.status, RunStatus::Completed, "{:?}", snapshot.error);
    let records = snapshot.task_records.as_ref().unwrap();
    ["first", "later"].map(|task| serde_json::to_value(&records[task].output).unwrap())
}

async fn run(running: &Running) -> [Value; 2] {
    let run = running.submit("versions", empty()).await;
    versions(&running.until_ended(&run).await)
}

/// Waits until the worker says something of its wheels.
async fn synced(running: &Running, wanted: impl Fn(&Value) -> bool) -> Value {
    let since = Instant::now();
    loop {
        let shown = running.workers().await[0]["wheel_sync"].clone();
        if wanted(&shown) {
            return shown;
        }
        assert!(since.elapsed() < PATIENCE, "it stays {shown}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[tokio::test]
async fn a_wheel_that_is_uploaded_is_what_the_next_run_uses() {
    let site = site();
    let running = site.start();
    assert_eq!(run(&running).await, [json!(null), json!(null)]);
    upload(&running, &site, "1.0");
    assert_eq!(run(&running).await, [json!("1.0"), json!("1.0")]);
    let (started, flag) = (site.path("started"), site.path("flag"));
    let long = running.submit("versions", json!({"started": started, "flag": flag})).await;
    until_written(&started);
    let second = upload(&running, &site, "2.0");
    assert_eq!(run(&running).await, [json!("2.0"), json!("2.0")]);
    std::fs::write(&flag, "").unwrap();
    let long = running.until_ended(&long).await;
    assert_eq!(versions(&long), [json!("1.0"), json!("1.0")]);
    assert_eq!(serde_json::to_value(&long).unwrap()["wheels"][0]["version"], "1.0");
    let shown = synced(&running, |shown| shown["selected_wheels"] == json!([second])).await;
    assert_eq!((&shown["enabled"], &shown["last_result"]), (&json!(true), &json!("ok")));
    assert!(site.path("data/wheels/.installed.json").is_file());
}

#[tokio::test]
async fn a_run_that_was_interrupted_by_a_kill_goes_on_with_the_version_it_began_with() {
    let site = site();
    let running = site.start();
    upload(&running, &site, "1.0");
    let (started, flag) = (site.path("started"), site.path("flag"));
    let long = running.submit("versions", json!({"started": started, "flag": flag})).await;
    until_written(&started);
    running.kill();
    std::fs::write(&flag, "").unwrap();
    let mut without = site.command(0);
    without.arg("--no-worker");
    let running = site.start_with(without);
    upload(&running, &site, "2.0");
    running.stop(Signal::SIGTERM);
    // Nothing that was installed is left: it is made again of what is in the store.
    std::fs::remove_dir_all(site.path("data/wheels")).unwrap();
    let running = site.start();
    assert_eq!(versions(&running.until_ended(&long).await), [json!("1.0"), json!("1.0")]);
    assert_eq!(run(&running).await, [json!("2.0"), json!("2.0")]);
}

#[tokio::test]
async fn a_kill_in_the_middle_of_an_installation_leaves_nothing_to_be_seen() {
    let site = site();
    // An installer that is never done.
    let bin = site.path("bin");
    std::fs::create_dir(&bin).unwrap();
    let pid = site.path("pid");
    let script = format!(
        "#!/bin/sh\nwhile [ $# -gt 0 ]; do case \"$1\" in --target) target=$2;; esac; shift; done\nmkdir -p \"$target\"\necho \"VERSION = 'half'\" > \"$target/tools.py\"\necho $$ > '{}'\nexec sleep 600\n",
        pid.display()
    );
    std::fs::write(bin.join("uv"), script).unwrap();
    std::fs::set_permissions(bin.join("uv"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut slow = site.command(0);
    let path = std::env::vars().find(|(name, _)| name == "PATH").unwrap().1;
    slow.env("PATH", format!("{}:{path}", bin.display()));
    let running = site.start_with(slow);
    upload(&running, &site, "1.0");
    let installer: i32 = until_written(&pid).trim().parse().unwrap();
    running.kill();
    let since = Instant::now();
    while is_alive(installer) {
        assert!(since.elapsed() < Duration::from_secs(5), "the installer is left");
        std::thread::sleep(Duration::from_millis(10));
    }
    let dir = site.path("data/wheels");
    assert!(entries(&dir.join("sets")).is_empty(), "{:?}", entries(&dir.join("sets")));
    assert_eq!(entries(&dir.join("making")).len(), 1);
    let running = site.start();
    synced(&running, |shown| shown["last_result"] == "ok").await;
    assert_eq!(run(&running).await, [json!("1.0"), json!("1.0")]);
    assert!(entries(&dir.join("making")).is_empty());
}

#[tokio::test]
async fn a_byte_that_was_flipped_in_the_store_is_found_before_anything_is_imported() {
    let site = site();
    let mut without = site.command(0);
    without.arg("--no-worker");
    let running = site.start_with(without);
    let name = upload(&running, &site, "1.0");
    running.stop(Signal::SIGTERM);
    let [file] = entries(&site.path("data/wheel-files")).try_into().unwrap();
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let running = site.start();
    let shown = synced(&running, |shown| shown["last_result"] == "error").await;
    let error = shown["last_error"].as_str().unwrap();
    assert!(error.contains(&name) && error.contains("damaged"), "{error}");
    // It has nothing to go back to, so it takes nothing. Once the wheel is gone from the shelf it goes on without.
    let waiting = running.submit("versions", json!({})).await;
    assert_eq!(running.client.get_run(&waiting).await.unwrap().status.to_string(), "PENDING");
    assert!(entries(&site.path("data/wheels/sets")).is_empty());
    running.client.delete_wheel(&name).await.unwrap();
    assert_eq!(running.until_ended(&waiting).await.status.to_string(), "COMPLETED");
    let line = running.logged(|line| line["err_id"] == "ERR-PYOCO-0024").await;
    assert!(line["reason"].as_str().unwrap().contains(&name), "{line}");
    assert!(entries(&site.path("data/wheels/sets")).is_empty());
}

#[tokio::test]
async fn a_server_that_is_told_not_to_installs_no_wheels() {
    let site = site().env("PYOCO_WHEEL_SYNC_ENABLED", "0");
    let running = site.start();
    upload(&running, &site, "1.0");
    assert_eq!(run(&running).await, [json!(null), json!(null)]);
    assert_eq!(running.workers().await[0]["wheel_sync"]["last_result"], "disabled");
    running.stop(Signal::SIGTERM);
    // A flag wins over its variable.
    let site = site.argument("--wheel-sync");
    let running = site.start();
    assert_eq!(run(&running).await, [json!("1.0"), json!("1.0")]);
}

/// What `--check-config` shows of the settings of wheels: the value and where it comes from.
fn settings(program: &str, arguments: &[&str], env: &[(&str, &str)]) -> [String; 4] {
    let mut command = Command::new(program);
    command.args(arguments).arg("--check-config").env("PYOCO_LOAD_DOTENV", "0").envs(env.iter().copied());
    let output = command.output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{shown}");
    let names = ["ENABLED", "DIR", "INTERVAL_SEC"].map(|name| format!("PYOCO_WHEEL_SYNC_{name} "));
    let [enabled, dir, every] = names;
    [enabled, dir, every, "PYOCO_WHEEL_INSTALL_TIMEOUT_SEC ".to_owned()].map(|name| {
        let line =
            shown.lines().find(|line| line.starts_with(&name)).unwrap_or_else(|| panic!("{name}{shown}"));
        line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
    })
}

#[test]
fn flags_win_over_variables_and_variables_over_what_a_program_does_by_itself() {
    let (server, worker) = (env!("CARGO_BIN_EXE_pyoco-server"), env!("CARGO_BIN_EXE_pyoco-worker"));
    let flags = [
        "--wheel-sync",
        "--wheel-sync-dir",
        "w",
        "--wheel-sync-interval-sec",
        "1.5",
        "--wheel-install-timeout-sec",
        "20",
    ];
    let env = [("PYOCO_WHEEL_SYNC_ENABLED", "0"), ("PYOCO_WHEEL_SYNC_DIR", "v")];
    for (program, command) in [(server, vec!["up"]), (worker, Vec::new())] {
        let all: Vec<&str> = command.iter().copied().chain(flags).collect();
        let [enabled, dir, every, timeout] = settings(program, &all, &env);
        assert!(
            enabled.starts_with("1 ") && dir.starts_with("w ") && every.starts_with("1.5 "),
            "{enabled} {dir} {every}"
        );
        assert!(timeout.starts_with("20 "), "{timeout}");
        let [enabled, dir, ..] = settings(program, &command, &env);
        assert!(enabled.starts_with("0 ") && dir.starts_with("v "), "{enabled} {dir}");
        let off: Vec<&str> = command.iter().copied().chain(["--no-wheel-sync"]).collect();
        let [enabled, ..] = settings(program, &off, &[("PYOCO_WHEEL_SYNC_ENABLED", "1")]);
        assert!(enabled.starts_with("0 "), "{enabled}");
    }
    let [enabled, dir, ..] = settings(server, &["up", "--data-dir", "d"], &[]);
    assert!(enabled.starts_with("1 ") && dir.starts_with("d/wheels "), "{enabled} {dir}");
    let [enabled, dir, ..] = settings(worker, &[], &[]);
    assert!(enabled.starts_with("0 ") && dir.starts_with(".pyoco/wheels "), "{enabled} {dir}");
}
