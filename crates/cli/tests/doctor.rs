//! `pyoco-server doctor` on stores that are sound, in use, damaged, foreign, open to others, and not there. It changes nothing.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and measures its own patience"
)]

mod support;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use pyoco_testing_nats::{NatsServer, Options};
use serde_json::Value;

use support::{Site, empty};

const FLOW: &str = "version: 2\nflow: {graph: 'say'}\ntasks:\n  say: {callable: 'hi_tasks:say'}\n";
const TASKS: &str = "def say(): return 'hi'\n";

fn site() -> Site {
    Site::new().flow("hi", FLOW, TASKS)
}

/// What the doctor says, with an exit code.
struct Said {
    code: i32,
    findings: Vec<Value>,
}

impl Said {
    fn of(output: &Output) -> Self {
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}{output:?}"));
        Self { code: output.status.code().unwrap(), findings: value["findings"].as_array().unwrap().clone() }
    }

    fn worse_than_ok(&self) -> Vec<&Value> {
        self.findings.iter().filter(|finding| finding["severity"] != "ok").collect()
    }

    /// Something of a severity about something that says this. Whatever is bad comes with what to do.
    fn has(&self, severity: &str, about: &str, seen: &str) {
        let is_it = |finding: &&Value| {
            finding["severity"] == severity
                && finding["about"] == about
                && finding["seen"].as_str().unwrap().contains(seen)
        };
        assert!(
            self.findings.iter().any(|finding| is_it(&finding)),
            "no {severity} {about} {seen}: {:#?}",
            self.findings
        );
    }
}

fn doctor(arguments: &[&str], vars: &[(&str, &str)]) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pyoco-server"));
    command
        .args(["doctor", "--json"])
        .args(arguments)
        .env("PYOCO_LOAD_DOTENV", "0")
        .envs(vars.iter().copied());
    Said::of(&command.output().unwrap())
}

fn of_folder(folder: &Path) -> Said {
    doctor(&["--data-dir", folder.to_str().unwrap()], &[])
}

/// Every file of a folder with its bytes, but for the shared memory of SQLite, which is nobody's data.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let name = entry.file_name().to_str().unwrap().to_owned();
        if !name.ends_with("-shm") && entry.file_type().unwrap().is_file() {
            files.insert(name, std::fs::read(entry.path()).unwrap());
        }
    }
    files
}

/// Has Python's own SQLite do something to a file.
fn sql(file: &Path, statement: &str) {
    let script = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute(sys.argv[2]); c.commit(); c.close()";
    let done = Command::new("python3").args(["-c", script]).arg(file).arg(statement).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[tokio::test]
async fn a_sound_store_is_found_sound_in_use_and_out_of_use_and_stays_as_it_is() {
    let site = site();
    let running = site.start();
    let run = running.submit("hi", empty()).await;
    running.until_ended(&run).await;
    let data = site.path("data");
    let said = of_folder(&data);
    assert_eq!((said.code, said.worse_than_ok().len()), (0, 0), "{:#?}", said.findings);
    said.has("ok", "store", "which a process has open");
    said.has("ok", "integrity", "the files are whole");
    said.has("ok", "runs", "the logs of 1 runs");
    said.has("ok", "stuck runs", "none");
    // The server does not mind.
    let run = running.submit("hi", empty()).await;
    running.until_ended(&run).await;
    assert!(running.stop(Signal::SIGTERM).success());
    let before = files(&data);
    for arguments in [&[][..], &["--deep"]] {
        let mut all = vec!["--data-dir", data.to_str().unwrap()];
        all.extend(arguments);
        let said = doctor(&all, &[]);
        assert_eq!((said.code, said.worse_than_ok().len()), (0, 0), "{:#?}", said.findings);
        said.has("ok", "store", "which nobody has open");
        said.has("ok", "runs", "the logs of 2 runs");
    }
    assert!(files(&data) == before, "the doctor has changed something");
}

#[tokio::test]
async fn what_a_killed_server_left_is_looked_at_as_it_is() {
    let site = site().argument("--no-worker");
    let running = site.start();
    running.submit("hi", empty()).await;
    running.kill();
    let data = site.path("data");
    let before = files(&data);
    assert!(!before["pyoco.db-wal"].is_empty());
    let said = of_folder(&data);
    assert_eq!(said.code, 0, "{:#?}", said.findings);
    said.has("ok", "runs", "1 have not ended and go on when a server is started");
    assert!(files(&data) == before, "the doctor has changed something");
}

#[tokio::test]
async fn a_damaged_file_a_foreign_one_and_a_changed_record_are_told_apart() {
    let site = site();
    let running = site.start();
    let run = running.submit("hi", empty()).await;
    running.until_ended(&run).await;
    assert!(running.stop(Signal::SIGTERM).success());
    let data = site.path("data");
    let file = data.join("pyoco.db");
    let sound = std::fs::read(&file).unwrap();

    // A record that is not what was written.
    sql(&file, "UPDATE records SET bytes = X'7b7d' WHERE version = 2");
    let said = of_folder(&data);
    assert_eq!(said.code, 1);
    said.has("error", "runs", &run);
    std::fs::write(&file, &sound).unwrap();

    // The end of a log is gone.
    sql(&file, "DELETE FROM records WHERE id = (SELECT max(id) FROM records)");
    let said = of_folder(&data);
    assert_eq!(said.code, 1);
    said.has("error", "runs", "the end of the log was lost");
    std::fs::write(&file, &sound).unwrap();

    // Pages of a table are overwritten.
    let mut damaged = sound.clone();
    let (from, to) = (damaged.len() / 2, damaged.len() / 2 + 40_960);
    damaged[from..to.min(sound.len())].fill(0x5a);
    std::fs::write(&file, &damaged).unwrap();
    let before = files(&data);
    let said = of_folder(&data);
    assert_eq!(said.code, 1);
    assert!(said.findings.iter().any(|finding| finding["severity"] == "error"), "{:#?}", said.findings);
    assert!(files(&data) == before);

    for (bytes, wanted) in [
        (
            &b"not a database at all, but long enough to be looked at. ".repeat(4)[..],
            "it is not an SQLite database",
        ),
        (&b""[..], "it is empty"),
        (&sound[..sound.len() / 2], "it has been cut short"),
    ] {
        std::fs::write(&file, bytes).unwrap();
        let said = of_folder(&data);
        assert_eq!(said.code, 1);
        said.has("error", "store", wanted);
        assert_eq!(std::fs::read(&file).unwrap(), bytes);
    }
    std::fs::write(&file, &sound).unwrap();
    sql(&file, "PRAGMA application_id = 7");
    let said = of_folder(&data);
    assert_eq!(said.code, 1);
    said.has("error", "store", "belongs to another program");
}

#[test]
fn what_others_may_read_a_missing_python_and_a_missing_store_are_warnings() {
    let site = site();
    let running = site.start();
    assert!(running.stop(Signal::SIGTERM).success());
    let data = site.path("data");
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::set_permissions(data.join("pyoco.db"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let said = doctor(
        &["--data-dir", data.to_str().unwrap(), "--python", "no-such-python"],
        &[("PYOCO_DATADIR", "x")],
    );
    assert_eq!(said.code, 0);
    said.has("warn", "permissions", "(mode 755)");
    said.has("warn", "permissions", "pyoco.db (mode 644)");
    said.has("warn", "python", "no-such-python");
    said.has("warn", "configuration", "did you mean PYOCO_DATA_DIR?");
    let nowhere = site.path("nowhere");
    let said = of_folder(&nowhere);
    assert_eq!(said.code, 0);
    said.has("warn", "store", "there is no store in");
    assert!(!nowhere.exists(), "the doctor has made a folder");
}

#[test]
fn a_mistake_in_the_settings_is_an_error_among_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let said = doctor(&["--data-dir", folder.path().to_str().unwrap()], &[("PYOCO_LOG_UTC", "s3cret")]);
    assert_eq!(said.code, 1);
    said.has("error", "configuration", "PYOCO_LOG_UTC must be one of");
    said.has("warn", "store", "there is no store in");
    assert!(!format!("{:?}", said.findings).contains("s3cret"));
}

#[tokio::test]
async fn runs_that_nobody_serves_are_named_and_a_gateway_without_keys_is_recognised() {
    let site = site().argument("--no-worker");
    let running = site.start();
    running.submit("hi", empty()).await;
    let data = site.path("data");
    let said = doctor(&["--data-dir", data.to_str().unwrap(), "--url", &running.url], &[]);
    assert_eq!(said.code, 0, "{:#?}", said.findings);
    said.has("warn", "workers", "runs wait for tags that nobody serves: default");
    said.has("ok", "access", "asks for no key, and only this machine reaches it there");
}

#[test]
fn for_people_every_finding_is_a_line_and_what_to_do_another() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_pyoco-server"))
        .args(["doctor", "--data-dir"])
        .arg(folder.path())
        .env("PYOCO_LOAD_DOTENV", "0")
        .output()
        .unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let at = text.lines().position(|line| line.starts_with("warn   store")).expect(&text);
    assert!(text.lines().nth(at + 1).unwrap().trim_start().starts_with("→ check --data-dir"), "{text}");
}

#[tokio::test]
async fn servers_of_nats_are_looked_at_and_nothing_is_made_there() {
    let nats = NatsServer::start(&Options::default());
    let url = nats.url();
    for _ in 0..2 {
        let said = doctor(&["--nats-url", &url], &[]);
        assert_eq!(said.code, 0, "{:#?}", said.findings);
        said.has("warn", "streams", "there are none yet");
    }
    let site = site().argument("--nats-url").argument(&url).argument("--with-worker");
    let running = site.start();
    let run = running.submit("hi", empty()).await;
    running.until_ended(&run).await;
    let monitor = nats.monitor_url();
    let said = doctor(&["--nats-url", &url], &[("PYOCO_NATS_MONITOR_URL", &monitor)]);
    assert_eq!(said.code, 0, "{:#?}", said.findings);
    said.has("ok", "nats", "nats-server 2.");
    said.has("ok", "clock", "it agrees with the server's");
    said.has("warn", "durability", "sync_interval: always");
    said.has("ok", "streams", "as they would be made");
    said.has("ok", "consumers", "1 of jobs");
    said.has("ok", "runs", "the logs of 1 runs");
    said.has("ok", "stuck runs", "none");
    said.has("ok", "workers", "1 are alive");
    // What was made differs from what the settings say now.
    let vars = [
        ("PYOCO_NATS_MONITOR_URL", monitor.as_str()),
        ("PYOCO_DURABILITY", "strict"),
        ("PYOCO_DLQ_MAX_MSGS", "5"),
        ("PYOCO_NATS_REPLICAS", "3"),
        ("PYOCO_CONSUMER_ACK_WAIT_SEC", "7"),
    ];
    let said = doctor(&["--nats-url", &url], &vars);
    assert_eq!(said.code, 1);
    said.has("error", "durability", "sync_interval: always");
    said.has("error", "replicas", "the server is in no cluster");
    said.has("warn", "streams", "PYOCO_DLQ: its max_msgs is 100000, it would be made with 5");
    said.has("warn", "consumers", "its ack_wait is 30000000000 ns, it would be made with 7000000000 ns");
    drop(running);
    drop(nats);
    let said = doctor(&["--nats-url", &url], &[]);
    assert_eq!(said.code, 1);
    said.has("error", "nats", "");
}

#[tokio::test]
async fn a_run_whose_job_was_lost_while_no_gateway_looks_is_stuck() {
    let nats = NatsServer::start(&Options::default());
    let site = site().argument("--nats-url").argument(&nats.url());
    let running = site.start();
    let run = running.submit("hi", empty()).await;
    assert!(running.stop(Signal::SIGTERM).success());
    let client = async_nats::connect(nats.url()).await.unwrap();
    let purged = client.request("$JS.API.STREAM.PURGE.PYOCO_WORK", "".into()).await.unwrap();
    assert!(String::from_utf8_lossy(&purged.payload).contains("\"purged\":1"), "{purged:?}");
    let since = Instant::now();
    loop {
        let said = doctor(&["--nats-url", &nats.url()], &[("PYOCO_SWEEP_INTERVAL_SEC", "0.1")]);
        if said.code == 1 {
            said.has("error", "stuck runs", &run);
            said.has("warn", "workers", "default");
            return;
        }
        assert!(since.elapsed() < Duration::from_secs(20), "{:#?}", said.findings);
    }
}

#[tokio::test]
async fn a_run_whose_job_was_lost_under_a_server_that_does_not_sweep_is_stuck() {
    let site = site().argument("--no-worker");
    let running = site.start();
    let run = running.submit("hi", empty()).await;
    assert!(running.stop(Signal::SIGTERM).success());
    let data = site.path("data");
    sql(&data.join("pyoco.db"), "DELETE FROM jobs");
    sql(&data.join("pyoco.db"), "UPDATE runs SET updated_at = updated_at - 60000000");
    // To the doctor this test is a server that does nothing.
    let lock = std::fs::File::open(data.join("pyoco.lock")).unwrap();
    lock.lock().unwrap();
    let said = of_folder(&data);
    assert_eq!(said.code, 1, "{:#?}", said.findings);
    said.has("error", "stuck runs", &run);
}

#[tokio::test]
async fn a_clock_that_was_set_back_is_noticed() {
    let site = site();
    let running = site.start();
    let run = running.submit("hi", empty()).await;
    running.until_ended(&run).await;
    assert!(running.stop(Signal::SIGTERM).success());
    let data = site.path("data");
    sql(&data.join("pyoco.db"), "UPDATE runs SET updated_at = updated_at + 3600000000");
    let said = of_folder(&data);
    assert_eq!(said.code, 0, "{:#?}", said.findings);
    said.has("warn", "clock", "the clock was set back");
}

#[tokio::test]
async fn a_run_that_is_being_removed_is_no_damage() {
    let site = site();
    let running = site.start();
    for _ in 0..2 {
        let run = running.submit("hi", empty()).await;
        running.until_ended(&run).await;
    }
    assert!(running.stop(Signal::SIGTERM).success());
    let data = site.path("data");
    let file = data.join("pyoco.db");
    let first = "(SELECT execution FROM records ORDER BY id LIMIT 1)";
    sql(
        &file,
        &format!(
            "INSERT INTO tombstones (execution, at) SELECT execution, 1 FROM runs WHERE execution = {first}"
        ),
    );
    sql(&file, &format!("DELETE FROM records WHERE version < 3 AND execution = {first}"));
    for arguments in [&[][..], &["--deep"]] {
        let mut all = vec!["--data-dir", data.to_str().unwrap()];
        all.extend(arguments);
        let said = doctor(&all, &[]);
        assert_eq!((said.code, said.worse_than_ok().len()), (0, 0), "{:#?}", said.findings);
        said.has("ok", "runs", "the logs of 1 runs");
    }
    sql(&file, "DELETE FROM tombstones");
    assert_eq!(of_folder(&data).code, 1, "without its tombstone it is");
}

#[tokio::test]
async fn a_log_in_nats_that_cannot_be_read_is_named_and_the_look_goes_on() {
    let nats = NatsServer::start(&Options::default());
    let site = site().argument("--nats-url").argument(&nats.url()).argument("--with-worker");
    let running = site.start();
    let mut runs = Vec::new();
    for _ in 0..2 {
        let run = running.submit("hi", empty()).await;
        running.until_ended(&run).await;
        runs.push(run);
    }
    let client = async_nats::connect(nats.url()).await.unwrap();
    let lost = client.request("$JS.API.STREAM.PURGE.PYOCO_EVENTS", r#"{"seq": 2}"#.into()).await.unwrap();
    assert!(String::from_utf8_lossy(&lost.payload).contains("\"purged\":1"), "{lost:?}");
    let said = doctor(&["--nats-url", &nats.url()], &[]);
    assert_eq!(said.code, 1);
    said.has("error", "runs", &runs[0]);
    said.has("ok", "stuck runs", "none");
    let tombstone =
        format!(r#"{{"execution": "{}", "at": "2027-01-15T08:00:00Z", "digest": null}}"#, runs[0]);
    client.request(format!("pyoco.tombstones.{}", runs[0]), tombstone.into()).await.unwrap();
    let said = doctor(&["--nats-url", &nats.url()], &[]);
    said.has("ok", "runs", "the logs of 1 runs");
}
