//! Runs that ended long ago are removed: by an operator, with a server beside it and without, on the embedded store and in NATS; and
//! by a server itself. All of them are real processes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and measures its own patience"
)]

mod support;

use std::fs::File;
use std::io::Read as _;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::sys::signal::Signal;
use pyoco_client::api::RunStatus;
use pyoco_testing_nats::{NatsServer, Options};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use support::{PATIENCE, Running, Site};

const FLOW: &str = "version: 1\nflow: {graph: 'work'}\ntasks: {work: {callable: 'sum_tasks:work'}}\n";
/// Leaves a line for every time it ran.
const TASKS: &str = "def work(path, n):\n    print('the number is', n)\n    with open(path, 'a') as file:\n        file.write(f'{n}\\n')\n    if n < 0:\n        raise ValueError('too small')\n    return n\n";
/// What ended in the last so many seconds stays, whatever is asked.
const JUST_NOW: f64 = 5.0;

fn site() -> Site {
    Site::new().flow("sum", FLOW, TASKS)
}

/// Where the runs are.
#[derive(Clone, Copy)]
enum Place<'a> {
    Folder,
    Nats(&'a str),
}

impl Place<'_> {
    /// A server with a worker in it.
    fn start(self, site: &Site) -> Running {
        let Self::Nats(url) = self else { return site.start() };
        let mut command = Command::new(env!("CARGO_BIN_EXE_pyoco-server"));
        command.args(["up", "--port", "0", "--with-worker", "--nats-url", url]);
        command.arg("--flows").arg(site.path("flows")).envs(&site.env).current_dir(site.path("flows"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        site.start_with(command)
    }

    fn tool(self, site: &Site, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pyoco-server-admin"));
        command.env_remove("PYOCO_NATS_URL").envs(&site.env).current_dir(site.path("flows"));
        match self {
            Self::Folder => command.arg("--data-dir").arg(site.path("data")),
            Self::Nats(url) => command.args(["--nats-url", url]),
        };
        command.arg("prune").args(arguments).stdin(Stdio::null());
        command
    }

    /// Prunes, and gives how many are gone and how many stay that should not.
    #[track_caller]
    fn prune(self, site: &Site, arguments: &[&str]) -> (u64, u64) {
        let answer = told(&self.tool(site, arguments).output().unwrap());
        let members: Vec<&str> = answer.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(members, ["before", "dry_run", "removed", "left"], "{answer}");
        assert_eq!(answer["dry_run"], arguments.contains(&"--dry-run"), "{answer}");
        (answer["removed"].as_u64().unwrap(), answer["left"].as_u64().unwrap())
    }

    /// Waits until so many are old enough.
    #[track_caller]
    fn until_old(self, site: &Site, runs: u64) {
        let since = Instant::now();
        loop {
            let (old, _) = self.prune(site, &["--before", "0s", "--dry-run"]);
            assert!(old <= runs, "{old} would be removed");
            if old == runs {
                return;
            }
            assert!(since.elapsed() < PATIENCE, "only {old} of {runs} are old");
        }
    }
}

#[track_caller]
fn told(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

async fn ask(running: &Running, method: Method, path: &str, key: Option<&str>, body: Value) -> (u16, Value) {
    let mut request = reqwest::Client::new().request(method.clone(), format!("{}{path}", running.url));
    if method == Method::POST {
        request = request.json(&body);
    }
    if let Some(key) = key {
        request = request.header("X-Idempotency-Key", key);
    }
    let answer = request.send().await.unwrap();
    let (status, text) = (answer.status().as_u16(), answer.text().await.unwrap());
    (status, serde_json::from_str(&text).map_or(Value::String(text), lasting))
}

/// Without what is said of the worker and goes on while it lives.
fn lasting(value: Value) -> Value {
    let moves = |name: &str| {
        name == "heartbeat_at" || name == "waiting" || name.starts_with("worker_") && name != "worker_id"
    };
    match value {
        Value::Object(members) => {
            let members = members.into_iter().filter(|(name, _)| !moves(name));
            members.map(|(name, member)| (name, lasting(member))).collect()
        }
        Value::Array(items) => items.into_iter().map(lasting).collect(),
        plain @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => plain,
    }
}

async fn get(running: &Running, path: &str) -> (u16, Value) {
    ask(running, Method::GET, path, None, Value::Null).await
}

/// Everything that can be asked of a run, and the answers.
async fn whole(running: &Running, run: &str) -> Vec<(String, u16, Value)> {
    let mut answers = Vec::new();
    for path in [
        format!("/runs/{run}?include=records"),
        format!("/runs/{run}/tasks"),
        format!("/runs/{run}/logs"),
        format!("/jobs/{run}"),
        format!("/jobs/{run}/logs"),
        format!("/executions/{run}"),
        format!("/executions/{run}/events"),
    ] {
        let (status, answer) = get(running, &path).await;
        answers.push((path, status, answer));
    }
    answers
}

/// The lists that have runs in them.
async fn lists(running: &Running) -> String {
    let mut text = String::new();
    for path in ["/runs", "/jobs", "/executions", "/tags"] {
        let (status, list) = get(running, path).await;
        assert_eq!(status, 200, "{path}: {list}");
        text.push_str(&list.to_string());
    }
    text
}

/// How many runs there are in a status, as the figures say.
async fn counted(running: &Running, status: &str) -> u64 {
    let (_, figures) = get(running, "/metrics").await;
    let line = format!("pyoco_runs_total{{status=\"{status}\"}} ");
    let count = figures.as_str().unwrap().lines().find_map(|text| text.strip_prefix(&line));
    count.map_or(0, |count| count.parse().unwrap())
}

/// The keyed submission of these tests.
fn order(site: &Site, n: i64) -> Value {
    json!({"flow_name": "sum", "params": {"path": site.path("ran"), "n": n}})
}

fn job(site: &Site, n: i64) -> Value {
    json!({"flow": "sum", "parameters": {"path": site.path("ran"), "n": n}, "tags": ["nightly"]})
}

/// What has run so far, in this order.
fn ran(site: &Site) -> Vec<i64> {
    let text = std::fs::read_to_string(site.path("ran")).unwrap_or_default();
    text.lines().map(|line| line.parse().unwrap()).collect()
}

/// Waits until a run and its log have ended.
async fn ended(running: &Running, run: &str) -> RunStatus {
    let status = running.until_ended(run).await.status;
    let since = Instant::now();
    loop {
        let (_, log) = get(running, &format!("/runs/{run}/logs")).await;
        if log.to_string().contains("\"message\":\"run ") {
            return status;
        }
        assert!(since.elapsed() < PATIENCE, "the log of {run} does not end: {log}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn archive(running: &Running, run: &str) {
    let path = format!("/executions/{run}/archive");
    let (status, said) = ask(running, Method::POST, &path, Some("put away"), json!({})).await;
    assert_eq!(status, 202, "{said}");
}

async fn submit(running: &Running, path: &str, body: Value) -> (u16, Value) {
    ask(running, Method::POST, path, Some("monday"), body).await
}

/// What was asked and answered about those runs that may go, and about those that stay.
struct Seen {
    goes: Vec<(String, u16, Value)>,
    stays: Vec<(String, u16, Value)>,
}

/// The runs of a test: three that may go, the longest ended first, and two that stay.
struct Runs {
    keyed: String,
    job: String,
    failed: String,
    archived: String,
    waiting: String,
}

impl Runs {
    async fn make(site: &Site, running: &Running) -> Self {
        let (status, keyed) = submit(running, "/runs", order(site, 1)).await;
        assert_eq!(status, 200, "{keyed}");
        let keyed = keyed["run_id"].as_str().unwrap().to_owned();
        assert_eq!(ended(running, &keyed).await, RunStatus::Completed);
        let (status, job) = submit(running, "/jobs", job(site, 2)).await;
        assert_eq!(status, 201, "{job}");
        let job = job["id"].as_str().unwrap().to_owned();
        assert_eq!(ended(running, &job).await, RunStatus::Completed);
        let failed = running.submit("sum", order(site, -3)["params"].clone()).await;
        assert_eq!(ended(running, &failed).await, RunStatus::Failed);
        let archived = running.submit("sum", order(site, 4)["params"].clone()).await;
        assert_eq!(ended(running, &archived).await, RunStatus::Completed);
        archive(running, &archived).await;
        let (_, waiting) = ask(
            running,
            Method::POST,
            "/runs",
            None,
            json!({"flow_name": "sum", "params": {}, "tag": "nobody"}),
        )
        .await;
        let waiting = waiting["run_id"].as_str().unwrap().to_owned();
        assert_eq!(ran(site), [1, 2, -3, 4]);
        Self { keyed, job, failed, archived, waiting }
    }

    fn removed(&self) -> [&str; 3] {
        [&self.keyed, &self.job, &self.failed]
    }

    /// Everything of all of them.
    async fn seen(&self, running: &Running) -> Seen {
        let mut seen = Seen { goes: Vec::new(), stays: Vec::new() };
        for run in self.removed() {
            seen.goes.extend(whole(running, run).await);
        }
        for run in [&self.archived, &self.waiting] {
            seen.stays.extend(whole(running, run).await);
        }
        seen
    }

    /// Everything is as it was.
    async fn are_there(&self, running: &Running, before: &Seen) {
        let seen = self.seen(running).await;
        for (before, now) in before.goes.iter().zip(&seen.goes).chain(before.stays.iter().zip(&seen.stays)) {
            assert_eq!(now, before);
        }
    }

    /// Everything of those that may go is gone, and everything of the others is as it was.
    async fn are_gone(&self, running: &Running, before: &Seen) {
        let seen = self.seen(running).await;
        for (path, status, body) in seen.goes {
            assert_eq!(status, 404, "{path} {body}");
        }
        for (before, now) in before.stays.iter().zip(&seen.stays) {
            assert_eq!(now, before);
        }
        let lists = lists(running).await;
        assert!(self.removed().iter().all(|run| !lists.contains(*run)), "{lists}");
        assert!(!lists.contains("nightly"), "its label is gone with it: {lists}");
        assert!(lists.contains(&self.archived) && lists.contains(&self.waiting), "{lists}");
        let counts = [counted(running, "COMPLETED").await, counted(running, "FAILED").await];
        assert_eq!((counts, counted(running, "PENDING").await), ([1, 0], 1));
    }

    /// In NATS others hear of it a moment later.
    async fn until_unlisted(&self, running: &Running) {
        let since = Instant::now();
        loop {
            let lists = lists(running).await;
            if self.removed().iter().all(|run| !lists.contains(*run)) {
                return;
            }
            assert!(since.elapsed() < PATIENCE, "they stay in the lists: {lists}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Who submits the same again is recognised, and nothing runs.
    async fn are_remembered(&self, site: &Site, running: &Running) {
        let (status, again) = submit(running, "/runs", order(site, 1)).await;
        assert_eq!((status, &again["run_id"]), (200, &json!(self.keyed)), "{again}");
        assert_eq!(get(running, &format!("/runs/{}", self.keyed)).await.0, 404);
        let (status, other) = submit(running, "/runs", order(site, 9)).await;
        assert_eq!(status, 409, "{other}");
        // The answer of a job is the job, and that is gone.
        let (status, again) = submit(running, "/jobs", job(site, 2)).await;
        assert_eq!((status, &again["error"]["code"]), (404, &json!("JOB_NOT_FOUND")), "{again}");
        let (status, other) = submit(running, "/jobs", job(site, 9)).await;
        assert_eq!((status, &other["error"]["code"]), (409, &json!("IDEMPOTENCY_KEY_REUSED")), "{other}");
        let path = format!("/executions/{}/retry", self.failed);
        let (status, said) = ask(running, Method::POST, &path, Some("again"), json!({})).await;
        assert_eq!(status, 404, "{said}");
        // Whatever were in the queue would be run before this one.
        let next = running.submit("sum", order(site, 5)["params"].clone()).await;
        assert_eq!(running.until_ended(&next).await.status, RunStatus::Completed);
        assert_eq!(ran(site), [1, 2, -3, 4, 5]);
    }
}

/// Removes them as an operator would, with a look before.
async fn prune_all(site: &Site, place: Place<'_>, runs: &Runs, running: Option<&Running>) {
    let before = match running {
        Some(running) => Some((running, runs.seen(running).await, lists(running).await)),
        None => None,
    };
    place.until_old(site, 3);
    assert_eq!(place.prune(site, &["--before", "0s", "--dry-run", "--limit", "2"]), (2, 0));
    assert_eq!(place.prune(site, &["--before", "1h"]), (0, 0), "none is as old");
    if let Some((running, seen, lists_before)) = before {
        runs.are_there(running, &seen).await;
        assert_eq!(lists(running).await, lists_before, "a look changes nothing");
    }
    // The longest ended first.
    assert_eq!(place.prune(site, &["--before", "0s", "--limit", "1"]), (1, 0));
    if let Some(running) = running {
        assert_eq!(get(running, &format!("/executions/{}", runs.keyed)).await.0, 404);
        assert_eq!(get(running, &format!("/executions/{}", runs.job)).await.0, 200);
    }
    assert_eq!(place.prune(site, &["--before", "2100-01-01T00:00:00Z", "--json"]), (2, 0));
    assert_eq!(place.prune(site, &["--before", "0s"]), (0, 0), "they are gone");
}

/// Who did it is in the trail: two orders that removed something.
async fn is_written_down(running: &Running) {
    let (status, trail) = get(running, "/audit?action=runs.prune").await;
    assert_eq!(status, 200, "{trail}");
    let removed: Vec<&Value> =
        trail["items"].as_array().unwrap().iter().map(|entry| &entry["details"]["removed"]).collect();
    assert_eq!(removed, [2, 1], "{trail}");
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_removes_by_order_what_has_ended() {
    let site = site();
    let running = site.start();
    let runs = Runs::make(&site, &running).await;
    let before = runs.seen(&running).await;
    prune_all(&site, Place::Folder, &runs, Some(&running)).await;
    runs.are_gone(&running, &before).await;
    is_written_down(&running).await;
    // So it stays, whoever starts next.
    assert!(running.stop(Signal::SIGTERM).success());
    let running = site.start();
    runs.are_gone(&running, &before).await;
    runs.are_remembered(&site, &running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_ended_is_removed_from_the_files_of_a_server_that_is_stopped() {
    let site = site();
    let running = site.start();
    let runs = Runs::make(&site, &running).await;
    let before = runs.seen(&running).await;
    assert!(running.stop(Signal::SIGTERM).success());
    prune_all(&site, Place::Folder, &runs, None).await;
    let running = site.start();
    runs.are_gone(&running, &before).await;
    is_written_down(&running).await;
    runs.are_remembered(&site, &running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_ended_is_removed_from_nats_and_every_gateway_hears_of_it() {
    let (site, nats) = (site(), NatsServer::start(&Options::default()));
    let url = nats.url();
    let place = Place::Nats(&url);
    let running = place.start(&site);
    let runs = Runs::make(&site, &running).await;
    let other = place.start(&site);
    let before = runs.seen(&running).await;
    runs.are_there(&other, &before).await;
    prune_all(&site, place, &runs, Some(&running)).await;
    for gateway in [&running, &other] {
        runs.until_unlisted(gateway).await;
        runs.are_gone(gateway, &before).await;
        is_written_down(gateway).await;
    }
    assert!(other.stop(Signal::SIGTERM).success());
    let late = place.start(&site);
    runs.are_gone(&late, &before).await;
    assert!(late.stop(Signal::SIGTERM).success());
    runs.are_remembered(&site, &running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_only_just_ended_stays_and_a_terminal_is_told_in_words() {
    let site = site().env("PYOCO_RUNS_RETENTION_SEC", "0.001");
    let running = site.start();
    let run = running.submit("sum", order(&site, 1)["params"].clone()).await;
    let end = running.until_ended(&run).await.end_time.unwrap();
    Place::Folder.until_old(&site, 1);
    assert!(now() - end >= JUST_NOW, "it was counted too early");
    // Without a word about when it is as the server keeps them.
    for (arguments, wanted) in [
        (&["--dry-run"][..], ["1 run that ended before 20", "Z would be removed\r\n"]),
        (&[], ["1 run that ended before 20", "Z was removed\r\n"]),
        (&[], ["0 runs that ended before 20", "Z were removed\r\n"]),
    ] {
        let shown = on_terminal(Place::Folder.tool(&site, arguments));
        assert!(shown.contains(wanted[0]) && shown.ends_with(wanted[1]), "{shown}");
    }
    assert_eq!(get(&running, &format!("/runs/{run}")).await.0, 404);
}

/// What a command that does its work shows on a terminal.
fn on_terminal(mut command: Command) -> String {
    let terminal = nix::pty::openpty(None, None).unwrap();
    let (mut shown, slave) = (File::from(terminal.master), File::from(terminal.slave));
    command.env("TERM", "xterm").stdout(slave.try_clone().unwrap()).stderr(slave);
    let mut child = command.spawn().unwrap();
    // The command keeps its ends of the terminal; only the child's may stay open.
    drop(command);
    let (mut bytes, mut part) = (Vec::new(), [0; 1_024]);
    // The end of the last program on a terminal reads as an error.
    while let Ok(count @ 1..) = shown.read(&mut part) {
        bytes.extend_from_slice(&part[..count]);
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
    String::from_utf8(bytes).unwrap()
}

#[test]
fn an_order_that_makes_no_sense_is_refused_and_nothing_is_made() {
    let site = site().env("PYOCO_RUNS_RETENTION_SEC", "0");
    let wrong = [
        (&["--before", "soon"][..], "2026-01-31T00:00:00Z"),
        (&["--before=-5d"], "how long ago"),
        (&["--before", "1mo"], "30d"),
        (&["--limit", "0", "--before", "1d"], "--limit"),
        (&["--limit", "many", "--before", "1d"], "--limit"),
        (&["--everything"], "--everything"),
        (&["nightly"], "nightly"),
        (&["--dry-run"], "PYOCO_RUNS_RETENTION_SEC"),
    ];
    for (code, cases) in [(2, &wrong[..]), (1, &[(&["--before", "1d"][..], "no store")])] {
        for (arguments, word) in cases {
            let output = Place::Folder.tool(&site, arguments).output().unwrap();
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
            assert_eq!(output.stdout, b"", "{arguments:?}");
            assert!(said.contains(word), "{arguments:?}: {said}");
        }
    }
    assert!(!site.path("data").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_goes_with_one_order_is_removed_by_several() {
    const RUNS: u64 = 1_030;
    let site = site().argument("--no-worker");
    let running = site.start();
    for number in 0..RUNS {
        running.submit("sum", json!({"n": number})).await;
    }
    for (key, limit) in [("one", 1_000), ("two", 30)] {
        let cancel = json!({"action": "cancel", "filter": {"status": ["ACTIVE"]}, "limit": limit});
        let (status, answer) = ask(&running, Method::POST, "/executions/bulk", Some(key), cancel).await;
        assert_eq!((status, answer["done"].as_array().unwrap().len()), (200, limit), "{answer}");
    }
    Place::Folder.until_old(&site, RUNS);
    assert_eq!(Place::Folder.prune(&site, &["--before", "0s", "--limit", "1010", "--dry-run"]), (1_010, 0));
    assert_eq!(Place::Folder.prune(&site, &["--before", "0s", "--limit", "1010"]), (1_010, 0));
    assert_eq!(counted(&running, "CANCELLED").await, 20);
    assert_eq!(Place::Folder.prune(&site, &["--before", "0s"]), (20, 0));
    assert_eq!(counted(&running, "CANCELLED").await, 0);
    assert_eq!(get(&running, "/executions").await.1["items"], json!([]));
}

/// Waits until a path is answered so.
async fn until(running: &Running, path: &str, wanted: impl Fn(StatusCode, &Value) -> bool) {
    let since = Instant::now();
    loop {
        let (status, body) = get(running, path).await;
        if wanted(StatusCode::from_u16(status).unwrap(), &body) {
            return;
        }
        assert!(since.elapsed() < PATIENCE, "{path} stays {status} {body}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A server that looks all the time keeps runs, then removes them, then forgets their keys and who sent them.
async fn keeps_itself_small(place: Place<'_>) {
    let site = site().env("PYOCO_RETENTION_INTERVAL_SEC", "0.1").env("PYOCO_RUNS_RETENTION_SEC", "0");
    let running = place.start(&site);
    let runs = Runs::make(&site, &running).await;
    let before = runs.seen(&running).await;
    // By now it would have removed them, but 0 is for ever.
    place.until_old(&site, 3);
    runs.are_there(&running, &before).await;
    assert!(running.stop(Signal::SIGTERM).success());

    let site = site.env("PYOCO_RUNS_RETENTION_SEC", "1");
    let running = place.start(&site);
    for run in runs.removed() {
        until(&running, &format!("/runs/{run}"), |status, _| status == 404).await;
    }
    runs.until_unlisted(&running).await;
    runs.are_gone(&running, &before).await;
    let line = running.logged(|line| line["message"] == "runs that ended long ago were removed").await;
    assert_eq!((&line["level"], &line["removed"]), (&json!("INFO"), &json!(3)), "{line}");
    let (status, again) = submit(&running, "/runs", order(&site, 1)).await;
    assert_eq!((status, &again["run_id"]), (200, &json!(runs.keyed)), "{again}");
    let (_, trail) = get(&running, "/audit").await;
    assert!(trail.to_string().contains(&runs.keyed), "{trail}");
    assert!(running.stop(Signal::SIGTERM).success());
    assert_eq!(ran(&site), [1, 2, -3, 4]);

    let site = site.env("PYOCO_RUNS_RETENTION_SEC", "0");
    let site = site.env("PYOCO_TOMBSTONE_RETENTION_SEC", "0.5").env("PYOCO_AUDIT_RETENTION_SEC", "0.5");
    let running = place.start(&site);
    until(&running, "/audit", |_, trail| trail["items"] == json!([])).await;
    // Its tombstone is gone, so the key is new.
    let since = Instant::now();
    while get(&running, &format!("/runs/{}", runs.keyed)).await.0 == 404 {
        let (status, said) = submit(&running, "/runs", order(&site, 1)).await;
        assert_eq!((status, &said["run_id"]), (200, &json!(runs.keyed)), "{said}");
        assert!(since.elapsed() < PATIENCE, "its tombstone stays");
    }
    assert_eq!(running.until_ended(&runs.keyed).await.status, RunStatus::Completed);
    assert_eq!(ran(&site), [1, 2, -3, 4, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_keeps_its_store_small_by_itself() {
    keeps_itself_small(Place::Folder).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_keeps_nats_small_by_itself() {
    let nats = NatsServer::start(&Options::default());
    keeps_itself_small(Place::Nats(&nats.url())).await;
}
