//! A gateway with a nats-server of its own, and programs that may do only what they need.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise"
)]

mod bootstrap;
mod support;

use std::collections::HashMap;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use bootstrap::{Home, Node, pid_in, until};
use futures_util::StreamExt as _;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pyoco_client::api::{RunStatus, SubmitRequest};
use pyoco_testing_nats::free_port;
use serde_json::json;
use support::{PATIENCE, Running, Site, is_alive, processes_with};

const FLOW: &str = "version: 1\nflow: {graph: 'add'}\ntasks: {add: {callable: 'sum_tasks:add'}}\n";
const TASKS: &str = "def add(n):\n    print('adding to', n)\n    return n + 1\n";

fn site() -> Site {
    let nats = pyoco_testing_nats::nats_server().to_str().unwrap().to_owned();
    Site::new().flow("sum", FLOW, TASKS).env("NATS_SERVER_PATH", &nats)
}

/// Ends everything that was started in the folder of a site.
struct Broom(String);

impl Broom {
    fn of(site: &Site) -> Self {
        Self(site.path("data").to_str().unwrap().to_owned())
    }
}

impl Drop for Broom {
    fn drop(&mut self) {
        for pid in processes_with(&self.0) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

fn with_nats(site: Site, client: u16, http: u16) -> Site {
    let site = site.argument("--with-nats-bootstrap").argument("--with-worker");
    let site = site.argument("--nats-client-port").argument(&client.to_string());
    site.argument("--nats-http-port").argument(&http.to_string())
}

async fn completes(running: &Running, number: i64) -> String {
    let run = running.submit("sum", json!({"n": number})).await;
    let ended = running.until_ended(&run).await;
    assert_eq!(ended.status, RunStatus::Completed, "{:?}", ended.error);
    assert_eq!(ended.task_records.unwrap()["add"].output, json!(number + 1));
    run
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_starts_its_nats_server_and_survives_its_crash_and_its_own() {
    let site = with_nats(site(), free_port(), free_port());
    let _broom = Broom::of(&site);
    let pid_file = site.path("data/nats/nats-server.pid");
    let running = site.start();
    let first = completes(&running, 1).await;
    let conf = std::fs::read_to_string(site.path("data/nats/nats-bootstrap.conf")).unwrap();
    assert!(conf.contains("sync_interval: always"), "{conf}");

    // Another one on the same folder does not take its server for one that was left behind.
    let second = site.command(0).output().unwrap();
    let said = String::from_utf8_lossy(&second.stderr);
    assert!(second.status.code() == Some(1) && said.contains("[pyoco-server][ERR-PYOCO-0018]"), "{said}");
    assert!(said.contains("another pyoco-server"), "{said}");

    // The server crashes: it is started again, and the gateway finds it.
    let server = pid_in(&pid_file);
    kill(Pid::from_raw(server), Signal::SIGKILL).unwrap();
    running
        .logged(|line| line["message"].as_str().is_some_and(|text| text.contains("nats-server is up again")))
        .await;
    let request = SubmitRequest {
        flow_name: "sum".to_owned(),
        params: [("n".to_owned(), json!(2))].into_iter().collect(),
        ..SubmitRequest::default()
    };
    let since = tokio::time::Instant::now();
    let healed = loop {
        match running.client.submit_run(&request).await {
            Ok(answer) => break answer.run_id.clone(),
            Err(error) => assert!(since.elapsed() < PATIENCE, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(running.until_ended(&healed).await.status, RunStatus::Completed);
    assert_ne!(pid_in(&pid_file), server);

    // The gateway crashes: its server is found by the next start, and stopped before another is.
    let orphan = pid_in(&pid_file);
    running.kill();
    assert!(is_alive(orphan));
    let running = site.start();
    assert!(!is_alive(orphan));
    for run in [&first, &healed] {
        assert_eq!(running.until_ended(run).await.status, RunStatus::Completed);
    }
    completes(&running, 3).await;
    let server = pid_in(&pid_file);
    assert!(running.stop(Signal::SIGTERM).success());
    assert!(!is_alive(server) && !pid_file.exists());
}

#[test]
fn a_port_of_somebody_else_or_another_address_is_refused() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let said = |site: &Site| {
        let output = site.command(0).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.starts_with("[pyoco-server][ERR-PYOCO-0018]"), "{said}");
        said
    };
    for (client, http) in [(port, free_port()), (free_port(), port)] {
        let said = said(&with_nats(site(), client, http));
        assert!(
            said.contains(&format!("port {port}")) && said.contains(&std::process::id().to_string()),
            "{said}"
        );
    }
    let site = with_nats(site(), free_port(), free_port());
    let other = site.argument("--nats-url").argument("nats://user:hush@elsewhere:4222");
    let refused = said(&other);
    assert!(refused.contains("nats://elsewhere:4222") && !refused.contains("hush"), "{refused}");
    assert!(!other.path("data/nats").exists());
}

/// The variables of a file that `up --with-users` has written.
fn variables(path: &Path) -> HashMap<String, String> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

async fn connected(variables: &HashMap<String, String>, url: &str) -> async_nats::Client {
    let options = async_nats::ConnectOptions::new()
        .user_and_password(variables["PYOCO_NATS_USER"].clone(), variables["PYOCO_NATS_PASSWORD"].clone())
        .custom_inbox_prefix(&variables["PYOCO_NATS_INBOX_PREFIX"])
        .request_timeout(Some(Duration::from_secs(2)));
    options.connect(url).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn with_users_each_program_may_do_what_it_needs_and_no_more() {
    let (home, node) = (Home::new(), Node::new("n"));
    node.start(&home, "up", &["--with-users"]);
    assert!(async_nats::connect(node.url()).await.is_err(), "nobody comes in without a password");
    let of = |name: &str| variables(&home.path(&format!("n/{name}.env")));
    let (gateway, worker, admin) = (of("gateway"), of("worker"), of("admin"));

    let mut site = site();
    site.env.extend(gateway.clone());
    let running = site.start();
    let mut command = Command::new(env!("CARGO_BIN_EXE_pyoco-worker"));
    command.arg("--flows").arg(site.path("flows")).envs(&site.env).envs(&worker);
    command.current_dir(site.path("flows")).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut process = command.spawn().unwrap();
    for number in 0..3 {
        completes(&running, number).await;
    }
    let run = running.submit("sum", json!({"n": "text"})).await;
    assert_eq!(running.until_ended(&run).await.status, RunStatus::Failed, "a dead letter, too");

    // An admin makes a key while a worker listens as far as it can.
    let (as_worker, as_gateway) =
        (connected(&worker, &node.url()).await, connected(&gateway, &node.url()).await);
    let mut heard = as_worker.subscribe("$KV.pyoco_auth.>").await.unwrap();
    let mut answers = as_worker.subscribe("_INBOX_gateway.>").await.unwrap();
    let mut tool = Command::new(env!("CARGO_BIN_EXE_pyoco-server-admin"));
    tool.args(["api-key", "create", "--tenant", "team-a"])
        .envs(&site.env)
        .envs(&admin)
        .current_dir(site.path("flows"));
    let made = tool.output().unwrap();
    assert!(made.status.success(), "{}", bootstrap::said(&made));
    let newest = r#"{"last_by_subj": "$KV.pyoco_auth.api_keys.*"}"#;
    let read = |client: async_nats::Client| async move {
        client.request("$JS.API.STREAM.MSG.GET.KV_pyoco_auth", newest.into()).await
    };
    let answer = read(as_gateway.clone()).await.unwrap();
    assert!(String::from_utf8_lossy(&answer.payload).contains("\"data\""), "a gateway reads keys");
    assert!(read(as_worker.clone()).await.is_err(), "a worker does not");
    for way in [
        "$JS.API.DIRECT.GET.KV_pyoco_auth",
        "$JS.API.CONSUMER.CREATE.KV_pyoco_auth",
        "$JS.API.STREAM.CREATE.mirror",
        "$JS.API.STREAM.DELETE.PYOCO_EVENTS",
    ] {
        assert!(as_worker.request(way, "{}".into()).await.is_err(), "{way}");
    }
    assert!(as_gateway.request("$JS.API.STREAM.DELETE.PYOCO_EVENTS", "".into()).await.is_err());
    // What was allowed to be heard would have come before the answers.
    let nothing = Duration::from_millis(1);
    assert!(tokio::time::timeout(nothing, heard.next()).await.is_err());
    assert!(tokio::time::timeout(nothing, answers.next()).await.is_err());
    completes(&running, 7).await;

    let log = std::fs::read_to_string(home.path("n/nats-server.log")).unwrap();
    let ours = ["pyoco-http-api", "pyoco-nats-worker", "pyoco-admin-cli"];
    let refused: Vec<&str> = log.lines().filter(|line| line.contains("Violation")).collect();
    assert!(refused.iter().any(|line| line.contains("$KV.pyoco_auth.>")), "{log}");
    let of_ours = refused.iter().filter(|line| ours.iter().any(|name| line.contains(name)));
    assert_eq!(of_ours.collect::<Vec<_>>(), Vec::<&&str>::new());
    // The doctor is who the folder says, and sees all of it.
    let report = home.json(&["doctor", "--nats-url", &node.url(), "--credentials-of", "n"]);
    assert_eq!(report["jetstream"]["streams"].as_array().unwrap().len(), 13, "{report}");
    assert_eq!(report["worst"], "ok", "{report}");
    for secret in variables(&home.path("n/credentials.env")).values() {
        assert!(!log.contains(secret.as_str()));
    }
    process.kill().unwrap();
    process.wait().unwrap();
    assert!(running.stop(Signal::SIGTERM).success());
    until("the end", || home.path("n.pid").exists().then_some(()));
}
