//! The examples as they stand in their folders, against the real server.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and measures its own patience"
)]

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use pyoco_client::api::{Execution, ExecutionNode, Status};
use serde_json::{Value, json};

use support::{Running, Site};

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// A server as `make up` starts it: its flows are the examples.
fn server() -> (Site, Running) {
    let site = Site::new();
    std::fs::remove_dir(site.path("flows")).unwrap();
    std::os::unix::fs::symlink(examples(), site.path("flows")).unwrap();
    let running = site.start();
    (site, running)
}

/// Runs a script of an example, with our programs first on the path.
fn script(running: &Running, file: &str, arguments: &[&str]) -> Output {
    let programs = Path::new(env!("CARGO_BIN_EXE_pyoco-client")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("sh");
    command.arg(examples().join(file)).args(arguments);
    command.env("PATH", path).env("PYOCO_SERVER_URL", &running.url);
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// What the script printed in the line after a heading.
fn below<'a>(said: &'a str, heading: &str) -> &'a str {
    said.lines().skip_while(|line| *line != heading).nth(1).unwrap_or_else(|| panic!("{heading}: {said}"))
}

async fn read(running: &Running, execution: &str) -> Execution {
    running.client.get_execution(execution, None).await.unwrap().into_value()
}

fn node<'a>(execution: &'a Execution, id: &str) -> &'a ExecutionNode {
    execution.nodes.iter().find(|node| node.node_id == id).unwrap()
}

#[tokio::test]
async fn the_approval_goes_on_when_a_person_says_yes() {
    let (_site, running) = server();
    let output = script(&running, "approval/run.sh", &["yes"]);
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", text(&output.stderr));
    assert!(said.contains("May the letter go out?"), "{said}");
    let execution = read(&running, below(&said, "== an execution of it starts")).await;
    assert_eq!(execution.status, Status::Completed);
    assert_eq!(node(&execution, "send").output, json!({"sent": "Dear Grace, it works."}));
    assert!(said.trim_end().lines().last().unwrap().contains("\tEXECUTION_COMPLETED\t"), "{said}");
}

#[tokio::test]
async fn the_approval_that_was_refused_is_asked_again_and_not_written_again() {
    let (_site, running) = server();
    let output = script(&running, "approval/run.sh", &["no"]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}\n{}", text(&output.stderr));
    assert!(
        text(&output.stderr).contains("- reason: the letter was not approved"),
        "{}",
        text(&output.stderr)
    );
    let first = below(&said, "== an execution of it starts");
    assert_eq!(read(&running, first).await.status, Status::Failed);

    let ask = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pyoco-client"));
        let output = command.args(["--server", &running.url]).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    let answer: Value =
        serde_json::from_str(&ask(&["exec", "retry", first, "--from-node", "approve"])).unwrap();
    let second = answer["executionId"].as_str().unwrap();
    let since = std::time::Instant::now();
    while !ask(&["waits"]).contains(second) {
        assert!(since.elapsed() < support::PATIENCE, "it does not ask again");
    }
    ask(&["node", "resume", second, "approve", "--key", "letter", "--output", r#"{"approved": true}"#]);
    ask(&["exec", "events", second, "--follow"]);
    let execution = read(&running, second).await;
    assert_eq!((execution.status, execution.retry_of.as_deref()), (Status::Completed, Some(first)));
    assert_eq!(node(&execution, "send").output, json!({"sent": "Dear Grace, it works."}));
    let drafted = running.log().into_iter().filter(|line| line["message"] == "writing to Grace").count();
    assert_eq!(drafted, 1, "the letter is written once");
}

#[tokio::test]
async fn the_external_worker_drives_a_fork_and_a_join_to_the_end() {
    let (_site, running) = server();
    let output = script(&running, "external-worker/drive.sh", &[]);
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", text(&output.stderr));
    assert_eq!(below(&said, "== how it ended"), "COMPLETED");
    let execution = read(&running, below(&said, "== an execution")).await;
    assert_eq!(execution.status, Status::Completed);
    for (name, output) in [
        ("prepare", json!({"words": ["hello", "world"]})),
        ("left", json!("hello")),
        ("right", json!("world")),
        ("merge", json!("hello world")),
    ] {
        let node = node(&execution, name);
        assert_eq!((&node.output, node.worker_id.as_deref()), (&output, Some("shell")), "{name}");
        for step in ["start", "progress", "success"] {
            assert!(said.contains(&format!("{name}: {step}\n")), "{said}");
        }
    }
    for kind in ["FORK_OPENED", "JOIN_GATE_UPDATED", "JOIN_PASSED"] {
        assert!(said.contains(&format!("  {kind}\n")), "{said}");
    }
}

#[test]
fn the_external_worker_says_why_it_gives_up() {
    let (site, running) = server();
    let copy = site.path("drive.sh");
    std::fs::copy(examples().join("external-worker/drive.sh"), &copy).unwrap();
    std::fs::write(site.path("flow.yaml"), "version: 2\nflow: {graph: 'a'}\ntasks: {a: {}}\n").unwrap();
    let output = Command::new("sh").arg(&copy).env("PYOCO_SERVER_URL", &running.url).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(
        said.contains("/nodes/prepare/start: HTTP 404 {\"error\":{\"code\":\"NODE_NOT_FOUND\""),
        "{said}"
    );
}

#[tokio::test]
async fn the_analysis_is_what_a_job_runs_and_says_how_far_it_is() {
    let (_site, running) = server();
    let ask = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pyoco-client"));
        let output = command.args(["--server", &running.url]).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        (text(&output.stdout), text(&output.stderr))
    };
    let (log, beside) =
        ask(&["job", "submit", "--param", "mode=fast", "--tag", "demo", "--follow", "--no-timestamps"]);
    let job = beside.strip_prefix("job: ").unwrap().trim_end();
    for line in [
        "load stdout | reading data.csv: 200 rows",
        "load stdout | read 20 of 200 rows (10 %)",
        "load stderr | row 58 is left out: its amount is ''",
        "load stdout | read 200 of 200 rows (100 %)",
        "by_region stdout | added up by region 198 of 198 rows (100 %)",
        "by_month stdout | added up by month 198 of 198 rows (100 %)",
    ] {
        assert!(log.lines().any(|said| said == line), "{line}: {log}");
    }
    assert_eq!(log.lines().filter(|said| said.starts_with("load stdout | read ")).count(), 10, "{log}");
    let execution = read(&running, job).await;
    assert_eq!((execution.graph_id.as_str(), execution.status), ("analysis", Status::Completed));
    let found = &node(&execution, "summary").output;
    assert_eq!(found["rows"], json!(198));
    let sum =
        |name: &str| found[name].as_object().unwrap().values().map(|sum| sum.as_f64().unwrap()).sum::<f64>();
    let total = found["total"].as_f64().unwrap();
    assert!((sum("regions") - total).abs() < 0.01 && (sum("months") - total).abs() < 0.05, "{found}");
    assert!(ask(&["job", "list", "--tag", "demo"]).0.starts_with(job));
}

#[tokio::test]
async fn the_analysis_of_another_file_can_fail_and_says_why() {
    let (site, running) = server();
    let file = site.path("empty.csv");
    std::fs::write(&file, "date,region,amount\n2026-01-01,north,many\n").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_pyoco-client"));
    let input = format!("input={}", file.display());
    command.args(["--server", &running.url, "job", "submit", "--param", &input, "--follow"]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("empty.csv has no row with an amount"), "{}", text(&output.stderr));
}

#[tokio::test]
async fn the_wheel_is_shipped_and_the_next_version_is_what_the_next_run_uses() {
    let (_site, running) = server();
    let output = script(&running, "wheel/run.sh", &[]);
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", text(&output.stderr));
    for (greeting, version) in [("Hello", "1.0.0"), ("Good day", "2.0.0")] {
        assert!(said.contains(&format!("\"output\": \"{greeting}, Grace (greeter {version})\"")), "{said}");
        assert!(
            said.contains(&format!("\"wheels\": [{{\"name\": \"greeter-{version}-py3-none-any.whl\"")),
            "{said}"
        );
    }
    // A version that is there never changes, and the script says so and ends.
    let again = script(&running, "wheel/run.sh", &[]);
    assert_eq!(again.status.code(), Some(1));
    assert!(text(&again.stderr).contains("bump version"), "{}", text(&again.stderr));
}
