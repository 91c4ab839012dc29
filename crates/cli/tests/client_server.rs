//! `pyoco-client` against the real `pyoco-server`, each a process of its own.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test stops at the first surprise"
)]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// A server that ends with its test.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(data: &Path, port: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pyoco-server"));
        command.args(["up", "--port", port, "--data-dir", data.to_str().unwrap()]).current_dir(data);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let url = lines.find_map(|line| line.unwrap().split_once(" is up: ").map(|(_, url)| url.to_owned()));
        // Its later lines must not block it.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, url: url.expect("the server says where it is") }
    }

    fn port(&self) -> &str {
        self.url.rsplit(':').next().unwrap()
    }

    fn stop(mut self) {
        kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGTERM).unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn program(url: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pyoco-client"));
    command.args(["--server", url]).args(arguments);
    command
}

fn ask(url: &str, arguments: &[&str]) -> Value {
    let output = program(url, arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Submits a run that no worker takes.
fn submit(url: &str) -> String {
    ask(url, &["submit", "--tag", "nobody", "--param", "x=1"])["run_id"].as_str().unwrap().to_owned()
}

#[test]
fn a_run_is_submitted_listed_read_and_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), "0");
    let url = server.url.as_str();
    let (first, second) = (submit(url), submit(url));
    assert_eq!(ask(url, &["get", &first])["params"]["x"], 1);
    assert_eq!(ask(url, &["tasks", &first])["status"], "PENDING");
    assert_eq!(ask(url, &["list", "--tag", "nobody"]).as_array().unwrap().len(), 2);
    let page = ask(url, &["list-vnext", "--limit", "1"]);
    assert_eq!(page["items"][0]["run_id"], second.as_str());
    let rest = ask(url, &["list-vnext", "--limit", "1", "--cursor", page["next_cursor"].as_str().unwrap()]);
    assert_eq!(
        (&rest["items"][0]["run_id"], &rest["next_cursor"]),
        (&Value::from(first.as_str()), &Value::Null)
    );
    let cancelled = ask(url, &["cancel", "--run-id", &first, "--wait", "--timeout-sec", "10"]);
    assert_eq!(cancelled["status"], "CANCELLED");
    let event = ask(url, &["watch", &first, "--until-terminal"]);
    assert_eq!(
        (&event["event"], &event["data"]["snapshot"]["status"]),
        (&"snapshot".into(), &"CANCELLED".into())
    );
    ask(url, &["workers", "--scope", "all"]);
    let metrics = program(url, &["metrics"]).output().unwrap();
    let metrics = String::from_utf8(metrics.stdout).unwrap();
    assert!(metrics.contains("pyoco_runs_total{status=\"CANCELLED\"} 1\n"), "{metrics}");
    server.stop();
}

#[test]
fn a_submission_repeated_under_its_key_makes_one_run() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), "0");
    let url = server.url.as_str();
    let arguments = ["submit", "--tag", "nobody", "--idempotency-key", "nightly"];
    let (first, again) = (ask(url, &arguments), ask(url, &arguments));
    assert_eq!(first["run_id"], again["run_id"]);
    assert_eq!(ask(url, &["list"]).as_array().unwrap().len(), 1);
    let other = program(url, &[&arguments[..], &["--param", "x=1"]].concat()).output().unwrap();
    assert_eq!(other.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&other.stderr).contains("HTTP 409"));
    // A worker is there, but none for this tag.
    let run = ask(url, &["get", first["run_id"].as_str().unwrap()]);
    assert_eq!(
        (&run["waiting"][0]["reason"], &run["waiting"][0]["tag"]),
        (&"no_worker".into(), &"nobody".into())
    );
    server.stop();
}

#[test]
fn a_watch_lives_through_a_restart_of_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), "0");
    let (url, port) = (server.url.clone(), server.port().to_owned());
    let run = submit(&url);
    let mut command =
        program(&url, &["watch", &run, "--until-terminal", "--output", "status", "--timeout-sec", "60"]);
    let mut watch = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().ends_with(&format!("\tsnapshot\tPENDING\t{run}")));
    server.stop();
    let server = Server::start(folder.path(), &port);
    ask(&url, &["cancel", "--run-id", &run]);
    let seen: Vec<String> = lines.map(Result::unwrap).filter(|line| line.contains("\tsnapshot\t")).collect();
    assert!(watch.wait().unwrap().success());
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert!(seen[0].ends_with(&format!("\tsnapshot\tCANCELLED\t{run}")), "{seen:?}");
    server.stop();
}
