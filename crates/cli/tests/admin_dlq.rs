//! Dead letters as an operator sees them, has their runs repeated and throws them away: through a server, on its files, and in NATS
//! where others write them too. All of them are real processes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise"
)]

mod support;

use std::process::{Command, Output, Stdio};

use nix::sys::signal::Signal;
use pyoco_client::api::RunStatus;
use pyoco_testing_nats::{NatsServer, Options};
use serde_json::{Value, json};
use support::{Running, Site, empty};

const FLOW: &str = "version: 1\nflow: {graph: 'a'}\ntasks: {a: {callable: 'shop_tasks:a'}}\n";
/// Fails until a file is there.
const TASKS: &str = "import os\n\ndef a(path):\n    if not os.path.exists(path):\n        raise ValueError('the shop is closed')\n    return 'sold'\n";

fn site() -> Site {
    Site::new().flow("shop", FLOW, TASKS).env("PYOCO_LOG_LEVEL", "warning")
}

/// Where the letters are.
#[derive(Clone, Copy)]
enum Place<'a> {
    Folder,
    Nats(&'a str),
}

fn admin(site: &Site, place: Place<'_>, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pyoco-server-admin"));
    command.env_remove("PYOCO_NATS_URL").envs(&site.env).current_dir(site.path("flows"));
    match place {
        Place::Folder => command.arg("--data-dir").arg(site.path("data")),
        Place::Nats(url) => command.args(["--nats-url", url]),
    };
    command.arg("dlq").args(arguments).stdin(Stdio::null()).output().unwrap()
}

#[track_caller]
fn done(site: &Site, place: Place<'_>, arguments: &[&str]) -> Value {
    let output = admin(site, place, arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn member<'a>(list: &'a Value, name: &str) -> Vec<&'a str> {
    list.as_array().unwrap().iter().map(|item| item[name].as_str().unwrap_or("-")).collect()
}

/// Lets runs fail, each for another reason.
async fn fail(site: &Site, running: &Running) -> [String; 3] {
    let path = site.path("open");
    let mut shops = Vec::new();
    // One after the other, so that their letters are in this order.
    for _ in 0..2 {
        let run = running.submit("shop", json!({"path": path})).await;
        let ended = running.until_ended(&run).await;
        assert_eq!((ended.status, ended.error.as_deref()), (RunStatus::Failed, Some("the shop is closed")));
        shops.push(run);
    }
    let [closed, again] = shops.try_into().unwrap();
    let unknown = running.submit("nowhere", empty()).await;
    assert_eq!(running.until_ended(&unknown).await.status, RunStatus::Failed);
    [closed, again, unknown]
}

/// Everything that can be done with letters, while a server runs.
async fn every_verb(site: &Site, running: &Running, place: Place<'_>) {
    let [closed, again, unknown] = fail(site, running).await;
    let listed = done(site, place, &["list"]);
    assert_eq!(member(&listed, "run_id")[0], unknown, "newest first: {listed}");
    assert_eq!(member(&listed, "reason"), ["flow_not_found", "execution_error", "execution_error"]);
    assert_eq!((&listed[1]["tag"], &listed[1]["flow_name"]), (&json!("default"), &json!("shop")));
    assert_eq!(listed[1]["error"], json!("the shop is closed"), "{listed}");
    assert_eq!(member(&done(site, place, &["list", "--limit", "1"]), "run_id"), [unknown.as_str()]);
    let wrong = done(site, place, &["list", "--reason", "execution_error", "--limit", "1"]);
    assert_eq!(member(&wrong, "reason"), ["execution_error"]);
    assert_eq!(done(site, place, &["list", "--tag", "gpu"]), json!([]));
    let key = member(&listed, "key")[0].to_owned();
    let shown = done(site, place, &["show", &key]);
    assert_eq!((&shown["letter"]["run_id"], &shown["key"]), (&json!(unknown), &json!(key)), "{shown}");
    for verb in ["show", "redrive"] {
        let output = admin(site, place, &[verb, "nobody/7"]);
        assert_eq!(output.status.code(), Some(2));
        assert_eq!(output.stdout, b"{\"error\": \"not_found\", \"key\": \"nobody/7\"}\n");
    }

    // What would be done, and nothing is.
    let dry = done(site, place, &["redrive", "--reason", "execution_error", "--dry-run"]);
    let runs = member(&dry["redriven"], "run_id").into_iter().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(runs.len(), 2, "{dry}");
    assert_eq!(done(site, place, &["list"]), listed);

    // Somebody was faster with one of them.
    std::fs::write(site.path("open"), "").unwrap();
    let retried = reqwest::Client::new().post(format!("{}/executions/{again}/retry", running.url));
    let retried = retried.header("Idempotency-Key", "by-hand").json(&json!({})).send().await.unwrap();
    assert!(retried.status().is_success(), "{}", retried.status());
    let redriven = done(site, place, &["redrive", "--reason", "execution_error"]);
    assert_eq!(member(&redriven["redriven"], "run_id"), runs.iter().map(String::as_str).collect::<Vec<_>>());
    let of = |run: &str| {
        let found = redriven["redriven"].as_array().unwrap().iter().find(|one| one["run_id"] == run);
        found.cloned().unwrap()
    };
    assert_eq!(
        (&of(&again)["already"], &of(&closed)["already"]),
        (&json!(true), &json!(false)),
        "{redriven}"
    );
    let new = of(&closed)["retried_by"].as_str().unwrap().to_owned();
    let ended = running.until_ended(&new).await;
    assert_eq!(ended.status, RunStatus::Completed, "{:?}", ended.error);
    let old = reqwest::get(format!("{}/executions/{closed}", running.url)).await.unwrap();
    assert!(old.text().await.unwrap().contains(&new), "the old one tells of the new one");
    assert_eq!(member(&done(site, place, &["list"]), "run_id"), [unknown.as_str()]);

    // The flow is still unknown: its run fails once more, and there is another letter of it.
    let redriven = done(site, place, &["redrive", "--all"]);
    let new = redriven["redriven"][0]["retried_by"].as_str().unwrap().to_owned();
    assert_eq!(running.until_ended(&new).await.status, RunStatus::Failed);
    assert_eq!(member(&done(site, place, &["list"]), "run_id"), [new.as_str()]);

    let refused = admin(site, place, &["purge"]);
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.status.code() == Some(1) && said.contains("--yes"), "{said}");
    assert_eq!(done(site, place, &["purge", "--before", "1h", "--yes"])["purged"], json!(0));
    assert_eq!(done(site, place, &["purge", "--yes"])["purged"], json!(1));
    assert_eq!(done(site, place, &["list"]), json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_are_looked_after_through_the_server_while_it_runs() {
    let site = site();
    let running = site.start();
    every_verb(&site, &running, Place::Folder).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_are_looked_after_on_the_files_of_a_stopped_server() {
    let site = site();
    let running = site.start();
    let [closed, again, unknown] = fail(&site, &running).await;
    assert!(running.stop(Signal::SIGTERM).success());
    assert_eq!(done(&site, Place::Folder, &["list"]).as_array().unwrap().len(), 3);
    std::fs::write(site.path("open"), "").unwrap();
    let redriven = done(&site, Place::Folder, &["redrive", "--reason", "execution_error"]);
    assert_eq!(member(&redriven["redriven"], "run_id"), [closed.as_str(), again.as_str()], "{redriven}");
    assert_eq!(member(&done(&site, Place::Folder, &["list"]), "run_id"), [unknown.as_str()]);
    assert_eq!(done(&site, Place::Folder, &["purge", "--yes"])["purged"], json!(1));
    // The new runs wait for the server.
    let running = site.start();
    for new in member(&redriven["redriven"], "retried_by") {
        assert_eq!(running.until_ended(new).await.status, RunStatus::Completed);
    }
}

/// A gateway with a worker in it, on NATS.
fn on_nats(site: &Site, url: &str) -> Running {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pyoco-server"));
    command
        .args(["up", "--port", "0", "--with-worker", "--nats-url", url])
        .arg("--flows")
        .arg(site.path("flows"));
    command.envs(&site.env).current_dir(site.path("flows"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    site.start_with(command)
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_in_nats_are_looked_after_with_a_server_or_without() {
    let site = site();
    let nats = NatsServer::start(&Options::default());
    let running = on_nats(&site, &nats.url());
    every_verb(&site, &running, Place::Nats(&nats.url())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_that_others_wrote_are_listed_shown_and_removed() {
    let site = site();
    let nats = NatsServer::start(&Options::default());
    let (url, place) = (nats.url(), Place::Nats(&nats.url()));
    let running = on_nats(&site, &url);
    let run = running.submit("shop", json!({"path": site.path("open")})).await;
    running.until_ended(&run).await;
    done(&site, place, &["purge", "--yes"]);
    std::fs::write(site.path("open"), "").unwrap();
    // As the original writes them: without headers. And a job that nobody can read, and a letter that is none.
    let client = async_nats::connect(&url).await.unwrap();
    let letter = json!({"reason": "execution_error", "error": "boom", "timestamp": 1.5, "run_id": run});
    let context = [("pyoco.dlq.default", letter.to_string()), ("pyoco.dlq.gpu", "no letter".to_owned())];
    for (subject, body) in context {
        let answer = client.request(subject, body.into()).await.unwrap();
        assert!(!String::from_utf8_lossy(&answer.payload).contains("error"));
    }
    client.request("pyoco.work.default", "{\"no\": \"job\"}".into()).await.unwrap();
    let listed = loop {
        let listed = done(&site, place, &["list"]);
        if listed.as_array().unwrap().len() == 3 {
            break listed;
        }
    };
    assert_eq!(member(&listed, "reason"), ["invalid_job", "-", "execution_error"], "{listed}");
    assert_eq!(member(&listed, "tag"), ["default", "gpu", "default"]);
    let keys = member(&listed, "key");
    assert_eq!(done(&site, place, &["show", keys[1]])["letter"], json!("no letter"));
    assert!(
        done(&site, place, &["show", keys[0]])["not_redriven"].as_str().unwrap().contains("submit it anew")
    );
    let redriven = done(&site, place, &["redrive", "--all"]);
    assert_eq!(member(&redriven["redriven"], "run_id"), [run.as_str()], "{redriven}");
    assert_eq!(member(&redriven["skipped"], "key"), [keys[1], keys[0]], "those stay, and it is said why");
    let new = redriven["redriven"][0]["retried_by"].as_str().unwrap();
    assert_eq!(running.until_ended(new).await.status, RunStatus::Completed);
    assert_eq!(member(&done(&site, place, &["list"]), "key"), [keys[0], keys[1]]);
    assert_eq!(done(&site, place, &["purge", "--yes"])["purged"], json!(2));
}
