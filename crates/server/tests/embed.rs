//! The product inside another program: a worker and a router from a configuration.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::time::Duration;

use pyoco_core::command::{CreateExecution, Issuer, Workflow};
use pyoco_core::digest::Digest;
use pyoco_core::event::{Actor, ActorKind};
use pyoco_core::ids::ExecutionId;
use pyoco_core::json::Object;
use pyoco_core::state::{Phase, Root};
use pyoco_engine::Submission;
use pyoco_server::{Backend, Config, Functions, RustFlow, Worker, WorkerOptions};
use serde_json::json;

fn config(folder: &tempfile::TempDir) -> Config {
    Config { data_dir: folder.path().join("data"), ..Config::new() }
}

async fn submit(backend: &Backend, flow: &str, text: Option<&str>) -> ExecutionId {
    let workflow = text
        .map(|text| Workflow { text: text.into(), sha256: Digest::of_bytes(text.as_bytes()).to_string() });
    let command = CreateExecution {
        graph_id: flow.to_owned(),
        input: Object(json!({"n": 20}).as_object().unwrap().clone()),
        tag: None,
        labels: Vec::new(),
        tenant_id: None,
        api_key_id: None,
        workflow,
        graph_version: None,
        plan: None,
        retry_of: None,
        keep: None,
        traceparent: None,
        start: true,
    };
    let issuer = Issuer::Caller(Actor::named(ActorKind::User, "embedder"));
    let submission = Submission {
        command,
        issuer,
        endpoint: "embedded".into(),
        flow: pyoco_engine::Flow::Given,
        digest: None,
        is_key_made_up: false,
        key: None,
        correlation_id: None,
    };
    backend.engine().submit(submission).await.unwrap().execution
}

#[tokio::test]
async fn a_worker_from_a_configuration_runs_rust_python_and_commands() {
    let folder = tempfile::tempdir().unwrap();
    let functions = Functions::new()
        .flow("rusty", RustFlow::new("a").task("a", |task| async move { Ok(task.param("n")) }))
        .unwrap();
    let text = "version: 2\nflow: {graph: 'sum >> say'}\ntasks:\n  sum: {callable: 'math:factorial', inputs: {}}\n  say: {command: [sh, -c, 'test -n \"$PATH\"']}\n";
    let text = text.replace("'math:factorial', inputs: {}", "'os:getcwd'");
    let (rusty, mixed) = {
        let backend = Backend::open(config(&folder)).await.unwrap();
        let submitted = (submit(&backend, "rusty", None).await, submit(&backend, "mixed", Some(&text)).await);
        backend.close().await.unwrap();
        submitted
    };
    let worker = Worker::connect(config(&folder), functions, "embedded", &["default"]).await.unwrap();
    assert_eq!(worker.run_once(Duration::from_secs(5)).await.unwrap(), Some(rusty.to_string()));
    assert_eq!(worker.run_once(Duration::from_secs(5)).await.unwrap(), Some(mixed.to_string()));
    assert_eq!(worker.run_once(Duration::ZERO).await.unwrap(), None);
    worker.close().await.unwrap();
    let backend = Backend::open(config(&folder)).await.unwrap();
    let state = backend.engine().state(&rusty).await.unwrap();
    assert_eq!((state.phase, &state.context.root(Root::Results)["a"]), (Phase::Completed, &json!(20)));
    let state = backend.engine().state(&mixed).await.unwrap();
    assert_eq!(state.phase, Phase::Completed, "{:?}", state.last_error);
    backend.close().await.unwrap();
}

#[tokio::test]
async fn names_that_make_no_sense_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let backend = Backend::open(config(&folder)).await.unwrap();
    for (id, tag) in [("", "default"), ("w", "a.b"), ("w", "")] {
        let options =
            WorkerOptions { id: id.to_owned(), tags: vec![tag.to_owned()], ..WorkerOptions::default() };
        assert!(Worker::on(&backend, Functions::new(), options).is_err(), "{id:?} {tag:?}");
    }
    drop(backend.router());
    backend.close().await.unwrap();
}
