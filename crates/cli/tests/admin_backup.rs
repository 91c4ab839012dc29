//! Backups as an operator makes and uses them: of a busy server, of a stopped one, and of NATS; and those that cannot be trusted.
//! All of them are real processes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise"
)]

mod support;

use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::Signal;
use pyoco_client::Client;
use pyoco_client::api::{RunSnapshot, RunStatus, SubmitRequest};
use pyoco_testing_nats::{NatsServer, Options};
use serde_json::{Value, json};
use support::{Running, Site, is_terminal};

const FLOW: &str = "version: 1\nflow: {graph: 'say >> add'}\ntasks: {say: {callable: 'sum_tasks:say'}, add: {callable: 'sum_tasks:add'}}\n";
const TASKS: &str =
    "def say(n):\n    print('the number is', n)\n    return n\n\ndef add(n):\n    return n + 1\n";

fn site() -> Site {
    Site::new().flow("sum", FLOW, TASKS).env("PYOCO_LOG_LEVEL", "warning")
}

/// The tool, where the arguments say.
fn admin(site: &Site, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pyoco-server-admin"));
    command.args(arguments).env_remove("PYOCO_NATS_URL").envs(&site.env).current_dir(site.path("flows"));
    command.stdin(Stdio::null()).output().unwrap()
}

#[track_caller]
fn done(site: &Site, arguments: &[&str]) -> Value {
    let output = admin(site, arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Does not do it, and gives why.
#[track_caller]
fn refused(site: &Site, arguments: &[&str]) -> String {
    let output = admin(site, arguments);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
    assert_eq!(output.stdout, b"", "{said}");
    said
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

/// A run as anybody sees it, with what its tasks wrote. How its worker is now is not the run's.
async fn whole(running: &Running, run: &str) -> (RunSnapshot, String) {
    let snapshot = running.client.get_run_with_records(run).await.unwrap().into_value();
    let snapshot = RunSnapshot {
        heartbeat_at: None,
        worker_alive: None,
        worker_state: None,
        worker_heartbeat_at: None,
        worker_hidden: None,
        worker_tags: None,
        ..snapshot
    };
    let log = reqwest::Client::new().get(format!("{}/runs/{run}/logs", running.url));
    let log = log.header("accept", "text/plain").send().await.unwrap();
    assert!(log.status().is_success(), "{}", log.status());
    (snapshot, log.text().await.unwrap())
}

async fn finished(running: &Running, count: usize) -> Vec<(String, (RunSnapshot, String))> {
    let mut runs = Vec::new();
    for number in 0..count {
        runs.push(running.submit("sum", json!({"n": number})).await);
    }
    let mut finished = Vec::new();
    for run in runs {
        let ended = running.until_ended(&run).await;
        assert_eq!(ended.status, RunStatus::Completed, "{:?}", ended.error);
        // The log is closed right after the end.
        let mut seen = whole(running, &run).await;
        while !seen.1.contains("run completed") {
            seen = whole(running, &run).await;
        }
        finished.push((run, seen));
    }
    finished
}

/// Submits and cancels until it is told to stop, and gives all that was accepted.
async fn keep_busy(client: Client, stop: Arc<AtomicBool>) -> Vec<String> {
    let mut accepted = Vec::new();
    while !stop.load(Ordering::SeqCst) {
        let params = json!({"n": accepted.len()}).as_object().cloned().unwrap();
        let request = SubmitRequest {
            flow_name: "sum".to_owned(),
            params: params.into_iter().collect(),
            ..SubmitRequest::default()
        };
        let run = client.submit_run(&request).await.unwrap().run_id.clone();
        if accepted.len() % 3 == 0 {
            // One that has ended is not canceled any more.
            let _ = client.cancel_run(&run, None).await;
        }
        accepted.push(run);
    }
    accepted
}

/// Backs up while runs come and go, before, while and after.
async fn back_up_under_load(
    site: &Site,
    running: &Running,
    place: &[&str],
    backups: &[&Path],
) -> Vec<String> {
    let stop = Arc::new(AtomicBool::new(false));
    let busy: Vec<_> =
        (0..3).map(|_| tokio::spawn(keep_busy(running.client.clone(), stop.clone()))).collect();
    for backup in backups {
        let arguments: Vec<&str> = place.iter().copied().chain(["backup", "--out", text(backup)]).collect();
        let answer = tokio::task::block_in_place(|| done(site, &arguments));
        assert_eq!(answer["path"], text(backup));
        assert!(answer["bytes"].as_u64().unwrap() > 0, "{answer}");
    }
    stop.store(true, Ordering::SeqCst);
    let mut accepted = Vec::new();
    for busy in busy {
        accepted.extend(busy.await.unwrap());
    }
    accepted
}

/// What ended before is there and whole, and all else that is there ends too.
async fn all_is_well(running: &Running, finished: &[(String, (RunSnapshot, String))], accepted: &[String]) {
    for (run, before) in finished {
        assert_eq!(&whole(running, run).await, before, "{run}");
    }
    let mut there = 0;
    for run in accepted {
        if running.client.get_run(run).await.is_ok() {
            there += 1;
            assert!(is_terminal(running.until_ended(run).await.status));
        }
    }
    eprintln!("{there} of {} that were accepted meanwhile are in the backup", accepted.len());
    // It goes on as any other.
    let run = running.submit("sum", json!({"n": 41})).await;
    let ended = running.until_ended(&run).await;
    assert_eq!(ended.task_records.unwrap()["add"].output, json!(42));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_of_a_busy_server_becomes_a_store_that_is_whole() {
    let site = site();
    let running = site.start();
    let finished = finished(&running, 10).await;
    let data = site.path("data");
    let (folder, file) = (site.path("monday"), site.path("monday.tar"));
    let place = ["--data-dir", text(&data)];
    let accepted = back_up_under_load(&site, &running, &place, &[&folder, &file]).await;
    assert_eq!(names(&folder), ["manifest.json", "pyoco-logs.db", "pyoco.db"]);
    for (path, mode) in [(&folder, 0o700), (&file, 0o600), (&folder.join("pyoco.db"), 0o600)] {
        let found = std::fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(found & 0o777, mode, "{}", path.display());
    }
    // Nothing is left beside them.
    assert_eq!(names(site.path("data").parent().unwrap()), ["data", "flows", "monday", "monday.tar"]);
    assert!(running.stop(Signal::SIGTERM).success());
    for backup in [&folder, &file] {
        std::fs::remove_dir_all(&data).unwrap();
        let answer = done(&site, &["--data-dir", text(&data), "restore", "--from", text(backup)]);
        assert!(answer["checked"]["executions"].as_u64().unwrap() >= 10, "{answer}");
        assert_eq!((&answer["checked"]["repaired"], &answer["store"]), (&json!(0), &json!("embedded")));
        let running = site.start();
        all_is_well(&running, &finished, &accepted).await;
        assert!(running.stop(Signal::SIGTERM).success());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_server_is_backed_up_from_its_files() {
    let site = site();
    let running = site.start();
    let finished = finished(&running, 2).await;
    assert!(running.stop(Signal::SIGTERM).success());
    let (data, backup) = (site.path("data"), site.path("backup.tar"));
    let answer = done(&site, &["--data-dir", text(&data), "backup", "--out", "../backup.tar"]);
    assert_eq!(
        answer["path"],
        text(&site.path("flows").join("../backup.tar")),
        "as it was said, from its root"
    );
    std::fs::remove_dir_all(&data).unwrap();
    // An empty folder is as good as none, and nothing need be checked.
    std::fs::create_dir(&data).unwrap();
    let answer = done(&site, &["--data-dir", text(&data), "restore", "--no-check", "--from", text(&backup)]);
    assert_eq!(answer["checked"], Value::Null);
    all_is_well(&site.start(), &finished, &[]).await;
}

/// The shelf as anybody sees it, and the bytes of each wheel.
async fn shelf(running: &Running) -> (Value, Vec<Vec<u8>>) {
    let list: Value = reqwest::get(format!("{}/wheels", running.url)).await.unwrap().json().await.unwrap();
    let mut contents = Vec::new();
    for wheel in list.as_array().unwrap() {
        let url = format!("{}/wheels/{}", running.url, wheel["name"].as_str().unwrap());
        let answer = reqwest::get(url).await.unwrap();
        assert!(answer.status().is_success(), "{}", answer.status());
        contents.push(answer.bytes().await.unwrap().to_vec());
    }
    (list, contents)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_with_wheels_restores_them() {
    let site = site();
    let running = site.start();
    for (package, version) in [("tool", "1.0"), ("tool", "1.1"), ("other", "2")] {
        let (name, bytes) = pyoco_testkit::wheel(package, version, &[("tool.py", "VALUE = 1\n")]);
        let part = reqwest::multipart::Part::bytes(bytes).file_name(name);
        let form = reqwest::multipart::Form::new().part("wheel", part).text("tags", "gpu,cpu");
        let sent = reqwest::Client::new().post(format!("{}/wheels", running.url)).multipart(form).send();
        let answer = sent.await.unwrap();
        assert!(answer.status().is_success(), "{}", answer.text().await.unwrap());
    }
    let before = shelf(&running).await;
    assert_eq!(before.1.len(), 3);
    let (data, folder, file) = (site.path("data"), site.path("monday"), site.path("monday.tar"));
    for backup in [&folder, &file] {
        // From the server, which is at work.
        let arguments = ["--data-dir", text(&data), "backup", "--out", text(backup)];
        tokio::task::block_in_place(|| done(&site, &arguments));
    }
    assert_eq!(names(&folder), ["manifest.json", "pyoco-logs.db", "pyoco.db", "wheel-files"]);
    assert!(running.stop(Signal::SIGTERM).success());
    for backup in [&folder, &file] {
        std::fs::remove_dir_all(&data).unwrap();
        done(&site, &["--data-dir", text(&data), "restore", "--from", text(backup)]);
        let running = site.start();
        assert_eq!(shelf(&running).await, before);
        assert!(running.stop(Signal::SIGTERM).success());
    }
    // One byte of one wheel.
    let wheels = folder.join("wheel-files");
    let wheel = wheels.join(names(&wheels).remove(0));
    let mut bytes = std::fs::read(&wheel).unwrap();
    bytes[20] ^= 1;
    std::fs::write(&wheel, bytes).unwrap();
    let target = site.path("new");
    let said = refused(&site, &["--data-dir", text(&target), "restore", "--from", text(&folder)]);
    assert!(said.contains("is not as it was") && !target.exists(), "{said}");
}

#[test]
fn nothing_that_exists_is_written_over() {
    let site = Site::new().argument("--no-worker");
    let (data, backup) = (site.path("data"), site.path("backup"));
    let said = refused(&site, &["--data-dir", text(&data), "backup", "--out", text(&backup)]);
    assert!(said.contains("no store"), "{said}");
    assert!(site.start().stop(Signal::SIGTERM).success());
    for there in ["file.tar", "file"] {
        std::fs::write(site.path(there), "mine").unwrap();
        let out = site.path(there);
        let said = refused(&site, &["--data-dir", text(&data), "backup", "--out", text(&out)]);
        assert!(said.contains("exists already"), "{said}");
        assert_eq!(std::fs::read_to_string(&out).unwrap(), "mine");
    }
    let nowhere = site.path("no").join("such");
    assert!(
        refused(&site, &["--data-dir", text(&data), "backup", "--out", text(&nowhere)])
            .contains("no such folder")
    );
    done(&site, &["--data-dir", text(&data), "backup", "--out", text(&backup)]);
    let before = std::fs::read(data.join("pyoco.db")).unwrap();
    let said = refused(&site, &["--data-dir", text(&data), "restore", "--from", text(&backup)]);
    assert!(said.contains("--data-dir"), "{said}");
    assert_eq!(std::fs::read(data.join("pyoco.db")).unwrap(), before);
}

#[test]
fn a_backup_that_is_torn_changed_or_of_another_is_refused_and_nothing_is_written() {
    let site = Site::new().argument("--no-worker");
    assert!(site.start().stop(Signal::SIGTERM).success());
    let (data, good, packed) = (site.path("data"), site.path("good"), site.path("good.tar"));
    for out in [&good, &packed] {
        done(&site, &["--data-dir", text(&data), "backup", "--out", text(out)]);
    }
    let copy = |name: &str| {
        let folder = site.path(name);
        std::fs::create_dir(&folder).unwrap();
        for file in names(&good) {
            std::fs::copy(good.join(&file), folder.join(&file)).unwrap();
        }
        folder
    };
    let changed = copy("changed");
    let mut file = File::options().write(true).open(changed.join("pyoco.db")).unwrap();
    file.seek(SeekFrom::Start(5_000)).unwrap();
    file.write_all(b"?").unwrap();
    let torn = copy("torn");
    let logs = File::options().write(true).open(torn.join("pyoco-logs.db")).unwrap();
    logs.set_len(logs.metadata().unwrap().len() / 2).unwrap();
    let lost = copy("lost");
    std::fs::remove_file(lost.join("pyoco.db")).unwrap();
    let newer = copy("newer");
    let list = std::fs::read_to_string(newer.join("manifest.json")).unwrap();
    std::fs::write(
        newer.join("manifest.json"),
        list.replace("\"format_version\": 1", "\"format_version\": 2"),
    )
    .unwrap();
    let (foreign, plain) = (site.path("foreign"), site.path("plain"));
    std::fs::create_dir(&foreign).unwrap();
    std::fs::write(foreign.join("pyoco.db"), "hello").unwrap();
    std::fs::write(&plain, "this is no archive").unwrap();
    let cut = site.path("cut.tar");
    let bytes = std::fs::read(&packed).unwrap();
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    let target = site.path("new").join("data");
    let before = names(target.parent().unwrap().parent().unwrap());
    let none = site.path("none");
    let cases = [
        (&changed, "pyoco.db is not as it was"),
        (&torn, "bytes and should have"),
        (&lost, "pyoco.db"),
        (&newer, "form 2"),
        (&foreign, "no backup"),
        (&plain, "no backup"),
        (&cut, "no backup"),
        (&none, "there is no backup"),
    ];
    for (from, word) in cases {
        let said = refused(&site, &["--data-dir", text(&target), "restore", "--from", text(from)]);
        assert!(said.contains(word), "{}: {said}", from.display());
        assert!(!target.exists());
        let _ = std::fs::remove_dir(site.path("new"));
        assert_eq!(names(target.parent().unwrap().parent().unwrap()), before, "{}", from.display());
    }
    // What is good still is.
    done(&site, &["--data-dir", text(&target), "restore", "--from", text(&packed)]);
}

#[test]
fn a_backup_with_a_changed_record_is_found_out_by_the_auditor() {
    let site = Site::new().argument("--no-worker");
    let running = site.start();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let run = runtime.block_on(running.submit("sum", json!({"n": 1})));
    assert!(running.stop(Signal::SIGTERM).success());
    // A record on the disk loses its text, and SQLite finds nothing wrong with the file.
    let (data, backup) = (site.path("data"), site.path("backup"));
    let path = data.join("pyoco.db");
    let bytes = std::fs::read(&path).unwrap();
    let (wanted, broken) = (b"EXECUTION_CREATED", b"EXECUTION_CREATEX");
    let at = bytes.windows(wanted.len()).position(|window| window == wanted).expect("a record");
    let mut file = File::options().write(true).open(&path).unwrap();
    file.seek(SeekFrom::Start(at as u64)).unwrap();
    file.write_all(broken).unwrap();
    drop(file);
    done(&site, &["--data-dir", text(&data), "backup", "--out", text(&backup)]);
    let target = site.path("new");
    let said = refused(&site, &["--data-dir", text(&target), "restore", "--from", text(&backup)]);
    assert!(said.contains("1 of 1 executions") && said.contains(&run), "{said}");
    assert!(!target.exists());
    done(&site, &["--data-dir", text(&target), "restore", "--no-check", "--from", text(&backup)]);
    assert!(target.exists());
}

/// A gateway with a worker in it, on NATS.
fn on_nats(site: &Site, nats: &NatsServer) -> Running {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pyoco-server"));
    command
        .args(["up", "--port", "0", "--with-worker", "--nats-url", &nats.url()])
        .arg("--flows")
        .arg(site.path("flows"));
    command.envs(&site.env).current_dir(site.path("flows"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    site.start_with(command)
}

fn streams(nats: &NatsServer) -> Vec<String> {
    let answer = nats.ask("/jsz?streams=true");
    let mut names: Vec<String> = answer["account_details"][0]["stream_detail"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|stream| stream["name"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_of_nats_becomes_streams_of_an_empty_server() {
    // The worker that had runs in hand is gone after the restore; the next one has not to wait for long.
    let site = site().env("PYOCO_CONSUMER_ACK_WAIT_SEC", "3").env("PYOCO_ACK_PROGRESS_INTERVAL_SEC", "0.5");
    let (old, new) = (NatsServer::start(&Options::default()), NatsServer::start(&Options::default()));
    let (from, to) = (old.url(), new.url());
    let (folder, file) = (site.path("monday"), site.path("monday.tar"));
    let said = refused(&site, &["--nats-url", &from, "backup", "--out", text(&folder)]);
    assert!(said.contains("no stream of ours"), "{said}");
    assert_eq!(streams(&old), Vec::<String>::new(), "a look makes nothing");
    let running = on_nats(&site, &old);
    let finished = finished(&running, 5).await;
    let accepted = back_up_under_load(&site, &running, &["--nats-url", &from], &[&folder, &file]).await;
    // Every stream that we make is in it, whoever adds one.
    let copied: Vec<String> =
        names(&folder).iter().filter_map(|name| name.strip_suffix(".snapshot").map(str::to_owned)).collect();
    assert_eq!(copied, streams(&old));
    let said = refused(&site, &["--nats-url", &from, "restore", "--from", text(&folder)]);
    assert!(said.contains("PYOCO_EVENTS") && said.contains("already"), "{said}");
    let data = site.path("data");
    let said = refused(&site, &["--data-dir", text(&data), "restore", "--from", text(&folder)]);
    assert!(said.contains("--nats-url") && !data.exists(), "{said}");
    // A copy that was changed is refused, and nothing is made.
    let changed = site.path("changed");
    std::fs::create_dir(&changed).unwrap();
    for name in names(&folder) {
        std::fs::copy(folder.join(&name), changed.join(&name)).unwrap();
    }
    std::fs::write(changed.join("PYOCO_EVENTS.snapshot"), "?").unwrap();
    let said = refused(&site, &["--nats-url", &to, "restore", "--from", text(&changed)]);
    assert!(said.contains("PYOCO_EVENTS.snapshot"), "{said}");
    assert_eq!(streams(&new), Vec::<String>::new());
    assert!(running.stop(Signal::SIGTERM).success());
    drop(old);

    let answer = done(&site, &["--nats-url", &to, "restore", "--from", text(&file)]);
    assert!(answer["checked"]["executions"].as_u64().unwrap() >= 5, "{answer}");
    let running = on_nats(&site, &new);
    all_is_well(&running, &finished, &accepted).await;
    // Whatever is there is in the list.
    for run in &accepted {
        if running.client.get_run(run).await.is_ok() {
            let url = format!("{}/executions/{run}", running.url);
            assert!(reqwest::get(url).await.unwrap().status().is_success(), "{run}");
        }
    }
}

/// The first record of the first run is lost.
async fn lose_first_record(nats: &NatsServer) -> async_nats::Client {
    let client = async_nats::connect(nats.url()).await.unwrap();
    let lost = client.request("$JS.API.STREAM.PURGE.PYOCO_EVENTS", r#"{"seq": 2}"#.into()).await.unwrap();
    assert!(String::from_utf8_lossy(&lost.payload).contains("\"purged\":1"), "{lost:?}");
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_cannot_be_read_is_a_failure_unless_it_was_being_removed() {
    let site = site();
    let (old, new) = (NatsServer::start(&Options::default()), NatsServer::start(&Options::default()));
    let running = on_nats(&site, &old);
    let broken = finished(&running, 1).await.remove(0).0;
    let sound = finished(&running, 1).await;
    assert!(running.stop(Signal::SIGTERM).success());
    let client = lose_first_record(&old).await;
    let (before, after) = (site.path("before"), site.path("after"));
    done(&site, &["--nats-url", &old.url(), "backup", "--out", text(&before)]);
    let said = refused(&site, &["--nats-url", &new.url(), "restore", "--from", text(&before)]);
    assert!(said.contains("1 of 2 executions") && said.contains(&broken), "{said}");
    assert_eq!(streams(&new), Vec::<String>::new(), "what was made is taken back");

    // Somebody was about to remove it when the backup was made.
    let tombstone = json!({"execution": broken, "at": "2027-01-15T08:00:00Z", "digest": null});
    let subject = format!("pyoco.tombstones.{broken}");
    let kept = client.request(subject, tombstone.to_string().into()).await.unwrap();
    assert!(String::from_utf8_lossy(&kept.payload).contains("PYOCO_RETENTION"), "{kept:?}");
    done(&site, &["--nats-url", &old.url(), "backup", "--out", text(&after)]);
    let answer = done(&site, &["--nats-url", &new.url(), "restore", "--from", text(&after)]);
    assert_eq!(
        (&answer["checked"], &answer["keys"]),
        (&json!({"executions": 2, "repaired": 0, "removed": 1, "left": 0, "resumed": 0}), &json!(0))
    );
    let running = on_nats(&site, &new);
    assert!(running.client.get_run(&broken).await.is_err());
    all_is_well(&running, &sound, &[]).await;
}

#[test]
fn a_restored_store_says_how_many_keys_open_it_also_those_that_were_revoked_since() {
    let site = Site::new().argument("--no-worker");
    assert!(site.start().stop(Signal::SIGTERM).success());
    let (data, backup, restored) = (site.path("data"), site.path("backup"), site.path("restored"));
    let admin = |arguments: &[&str]| {
        let all: Vec<&str> =
            ["--data-dir", text(&data)].into_iter().chain(arguments.iter().copied()).collect();
        done(&site, &all)
    };
    let revoke = |key: &Value| {
        admin(&["api-key", "revoke", "--key-id", key["key_id"].as_str().unwrap()]);
    };
    let keys = [(); 2].map(|()| admin(&["api-key", "create", "--tenant", "team"]));
    revoke(&keys[0]);
    admin(&["backup", "--out", text(&backup)]);
    revoke(&keys[1]);
    let answer = done(&site, &["--data-dir", text(&restored), "restore", "--from", text(&backup)]);
    assert_eq!(answer["keys"], 1, "{answer}");
}
