//! Settings as an operator meets them: every mistake at once, every value with where it comes from, no secret anywhere.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and measures its own patience"
)]

mod support;

use std::path::Path;
use std::process::{Command, Output};

use nix::sys::signal::Signal;
use serde_json::Value;

use support::Site;

const SERVER: &str = env!("CARGO_BIN_EXE_pyoco-server");
const WORKER: &str = env!("CARGO_BIN_EXE_pyoco-worker");
const ADMIN: &str = env!("CARGO_BIN_EXE_pyoco-server-admin");

/// Runs a program in a folder with nothing but these variables set.
fn run(program: &str, folder: &Path, arguments: &[&str], vars: &[(&str, &str)]) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).env_clear().envs(vars.iter().copied());
    command.output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().next().is_none()
}

const MISTAKES: [(&str, &str); 6] = [
    ("PYOCO_HTTP_AUTH_MODE", "s3cret-1"),
    ("PYOCO_DEFAULT_TAG", "s3cret.2"),
    ("PYOCO_SWEEP_INTERVAL_SEC", "0"),
    ("PYOCO_WORKFLOW_YAML_MAX_BYTES", "s3cret-3"),
    ("PYOCO_NATS_USER", "somebody"),
    ("PYOCO_WHEEL_SYNC_ENABLED", "s3cret-4"),
];

#[test]
fn every_mistake_is_named_at_once_and_nothing_is_started() {
    for (program, arguments) in [
        (SERVER, &["up", "--port", "0"][..]),
        (SERVER, &["check-config"]),
        (SERVER, &["up", "--check-config"]),
        (WORKER, &["--data-dir", ".pyoco", "--run-once"]),
        (WORKER, &["--check-config"]),
        (ADMIN, &["api-key", "create", "--tenant", "team"]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let output = run(program, folder.path(), arguments, &MISTAKES);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let said = stderr(&output);
        for (name, _) in MISTAKES {
            assert!(said.contains(name), "{name} is not in {said}");
        }
        for text in [&said, &stdout(&output)] {
            assert!(!text.contains("s3cret"), "{text}");
        }
        assert!(is_empty(folder.path()), "{arguments:?} has written something");
    }
}

#[test]
fn a_mode_of_access_that_is_none_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for mode in ["apikey", "on", "true", "api_key,none"] {
        let output = run(SERVER, folder.path(), &["up", "--port", "0"], &[("PYOCO_HTTP_AUTH_MODE", mode)]);
        assert_eq!(output.status.code(), Some(1), "{mode}");
        assert!(
            stderr(&output).contains("PYOCO_HTTP_AUTH_MODE must be one of none, api_key"),
            "{}",
            stderr(&output)
        );
    }
    assert!(is_empty(folder.path()));
}

#[test]
fn every_value_is_shown_with_where_it_comes_from_and_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let dotenv = "PYOCO_DEFAULT_TAG=gpu\nPYOCO_PYTHON=ignored\nPYOCO_NATS_TOKEN=s3cret-token\n";
    std::fs::write(folder.path().join(".env"), dotenv).unwrap();
    let vars = [
        ("PYOCO_PYTHON", "/usr/bin/python3"),
        ("PYOCO_AUTH_PEPPER", "s3cret-pepper"),
        ("PYOCO_NATS_URL", "nats://me:s3cret-word@host:4222,nats://other:1"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "key=s3cret-header"),
        ("PYOCO_DASHBOARD_LANG", "ja"),
    ];
    let flags = ["up", "--data-dir", "/srv/pyoco", "--dashboard-lang", "auto", "--check-config"];
    let output = run(SERVER, folder.path(), &flags, &vars);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    let row = |name: &str| -> Vec<String> {
        let line = text.lines().find(|line| line.split_whitespace().next() == Some(name));
        line.expect(name).split_whitespace().skip(1).map(str::to_owned).collect()
    };
    assert_eq!(row("PYOCO_DATA_DIR"), ["/srv/pyoco", "flag"]);
    assert_eq!(row("PYOCO_DASHBOARD_LANG"), ["auto", "flag"]);
    assert_eq!(row("PYOCO_DASHBOARD_ACTIONS"), ["0", "default"]);
    assert_eq!(row("PYOCO_PYTHON"), ["/usr/bin/python3", "env"]);
    assert_eq!(row("PYOCO_DEFAULT_TAG"), ["gpu", ".env"]);
    assert_eq!(row("PYOCO_SWEEP_INTERVAL_SEC"), ["15.0", "default"]);
    assert_eq!(row("PYOCO_NATS_URL"), ["nats://host:4222,nats://other:1", "env"]);
    assert_eq!(row("PYOCO_NATS_TOKEN"), ["(set)", ".env"]);
    assert_eq!(row("PYOCO_AUTH_PEPPER"), ["(set)", "env"]);
    let json = run(SERVER, folder.path(), &["check-config", "--json"], &vars);
    let told: Value = serde_json::from_str(&stdout(&json)).unwrap();
    assert_eq!((&told["valid"], &told["mistakes"]), (&Value::Bool(true), &serde_json::json!([])));
    for text in [text, stderr(&output), stdout(&json)] {
        assert!(!text.contains("s3cret"), "{text}");
    }
}

#[test]
fn a_worker_tells_where_it_would_look_for_runs() {
    let folder = tempfile::tempdir().unwrap();
    let shown = |arguments: &[&str]| {
        let output = run(WORKER, folder.path(), arguments, &[]);
        assert!(output.status.success(), "{}", stderr(&output));
        let text = stdout(&output);
        text.lines().filter(|line| line.starts_with("PYOCO_NATS_URL ")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(shown(&["--check-config"])[0].contains("nats://127.0.0.1:4222"));
    assert!(shown(&["--check-config", "--nats-url", "nats://x:1"])[0].ends_with("flag"));
    assert!(shown(&["--check-config", "--data-dir", "d"]).is_empty());
    assert!(is_empty(folder.path()));
}

#[test]
fn what_a_start_would_refuse_is_found_without_one() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |arguments: &[&str], vars: &[(&str, &str)], wanted: &str| {
        let output = run(SERVER, folder.path(), arguments, vars);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(stderr(&output).contains(wanted), "{}", stderr(&output));
    };
    refused(&["up", "--host", "0.0.0.0", "--check-config"], &[], "--allow-unauthenticated");
    refused(&["up", "--flows", "nowhere", "--check-config"], &[], "--flows nowhere: there is no such folder");
    let creds = [("PYOCO_NATS_URL", "nats://h:1"), ("PYOCO_NATS_CREDS", "nowhere.creds")];
    refused(&["check-config"], &creds, "PYOCO_NATS_CREDS names nowhere.creds, which cannot be read");
    let fine = |arguments: &[&str], vars: &[(&str, &str)]| {
        let output = run(SERVER, folder.path(), arguments, vars);
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    };
    fine(&["up", "--host", "0.0.0.0", "--allow-unauthenticated", "--check-config"], &[]);
    fine(&["up", "--host", "0.0.0.0", "--check-config"], &[("PYOCO_HTTP_AUTH_MODE", "api_key")]);
    // Without NATS nobody reads the file.
    fine(&["check-config"], &creds[1..]);
    assert!(is_empty(folder.path()));
}

#[tokio::test]
async fn a_misspelt_name_is_warned_about_with_the_one_that_was_meant() {
    let folder = tempfile::tempdir().unwrap();
    let vars = [("PYOCO_DATADIR", "x"), ("PYOCO_QUITE_OTHER", "y"), ("PYOCO_ENV_FILE", "nowhere.env")];
    let output = run(SERVER, folder.path(), &["check-config"], &vars);
    assert!(output.status.success());
    let said = stderr(&output);
    assert!(
        said.contains(
            "PYOCO_DATADIR is set, but this version knows no such setting; did you mean PYOCO_DATA_DIR?"
        ),
        "{said}"
    );
    assert!(said.contains("PYOCO_QUITE_OTHER is set") && said.contains("is it misspelt?"), "{said}");
    assert!(said.contains("PYOCO_ENV_FILE names nowhere.env, which cannot be read"), "{said}");
    let site = Site::new().env("PYOCO_DATADIR", "x").argument("--no-worker");
    let running = site.start();
    let is_it = |line: &Value| {
        line["level"] == "WARNING" && line.to_string().contains("did you mean PYOCO_DATA_DIR?")
    };
    running.logged(is_it).await;
    assert!(running.stop(Signal::SIGTERM).success());
}

#[test]
fn every_setting_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let shown = |arguments: &[&str]| {
        let output = run(SERVER, folder.path(), arguments, &[]);
        assert!(output.status.success(), "{arguments:?}");
        stdout(&output)
    };
    let reference = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/configuration.md"
    ));
    assert_eq!(shown(&["config", "--markdown"]), reference.unwrap());
    assert!(shown(&["config", "PYOCO_DATA_DIR"]).starts_with("PYOCO_DATA_DIR [default: .pyoco]\n"));
    let all = shown(&["config", "--json"]);
    let names: Vec<String> = all
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["name"].as_str().unwrap().to_owned())
        .collect();
    for name in ["PYOCO_NATS_URL", "PYOCO_WHEEL_SYNC_DIR", "PYOCO_DASHBOARD_LANG", "PYOCO_API_KEY"] {
        assert!(names.iter().any(|found| found == name), "{name}");
    }
    let output = run(SERVER, folder.path(), &["config", "PYOCO_DATADIR"], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("did you mean PYOCO_DATA_DIR?"), "{}", stderr(&output));
}

#[test]
fn the_help_ends_with_the_settings_that_are_read() {
    let folder = tempfile::tempdir().unwrap();
    for (program, arguments, name, not_there) in [
        (SERVER, &["up", "--help"][..], "PYOCO_DATA_DIR=.pyoco", "PYOCO_WORKER_METRICS_ADDR"),
        (WORKER, &["--help"], "PYOCO_WORKER_METRICS_ADDR", "PYOCO_HTTP_AUTH_MODE"),
        (ADMIN, &["--help"], "PYOCO_AUTH_PEPPER", "PYOCO_LOG_UTC"),
    ] {
        let help = stdout(&run(program, folder.path(), arguments, &[]));
        let (_, settings) = help.split_once("Variables and their defaults").expect(&help);
        assert!(settings.contains(name) && !settings.contains(not_there), "{settings}");
    }
}
