//! The golden run vectors of the original, through a real worker and real task processes. What no state shows (how often
//! a function was called, and when) is compared elsewhere.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::mem_forget,
    reason = "a test stops at the first surprise"
)]

mod ground;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ground::*;
use pyoco_core::command::{CancelExecution, Request};
use pyoco_core::ids::{ExecutionId, Tag};
use pyoco_core::plan::{FailPolicy, Plan};
use pyoco_core::state::{Root, State};
use pyoco_core::time::Millis;
use pyoco_core::view::RunSnapshot;
use pyoco_engine::Clock as _;
use pyoco_testkit::{caller, worker_id};
use pyoco_vectors::Source;
use pyoco_vectors::check::{self, Expectation};
use pyoco_vectors::decisions::{Verdict, verdict};
use pyoco_vectors::vector::{Loader, Vector, open};
use pyoco_worker::flows::FlowSources;
use pyoco_worker::{Flows, JobMessage, LoadError, Options, Worker};
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;

/// Vectors set policies on tasks after they were loaded.
struct Patched {
    flows: FlowSources,
    vector: Arc<Vector>,
}

#[async_trait]
impl Flows for Patched {
    async fn plan(&self, job: &JobMessage) -> Result<Arc<Plan>, LoadError> {
        let mut plan = Plan::clone(&*self.flows.plan(job).await?);
        let is_program = plan.root.nodes().iter().any(|node| !node.kind.blocks().is_empty());
        for (task, patch) in &self.vector.policies {
            let policy = &mut plan.tasks.iter_mut().find(|spec| spec.name == *task).unwrap().policy;
            policy.retries = patch.retries.unwrap_or(policy.retries);
            if is_program {
                continue;
            }
            if let Some(fail) = &patch.fail_policy {
                policy.fail = if fail == "isolate" { FailPolicy::Isolate } else { FailPolicy::Stop };
            }
            if let Some(seconds) = patch.timeout_sec {
                policy.timeout = Millis::from_seconds(seconds).filter(|limit| *limit != Millis(0));
            }
        }
        Ok(Arc::new(plan))
    }
}

/// The state at the end, or the message with which the text was refused.
async fn drive(vector: Arc<Vector>) -> (Ground, Result<State, String>) {
    let files: Vec<(&str, &str)> = [("vt.py", &vector.tasks_py), ("vflow.py", &vector.flow_py)]
        .into_iter()
        .filter_map(|(name, text)| Some((name, text.as_deref()?)))
        .collect();
    let ground = Ground::with(&files, |options| {
        options.keep_warm = 3;
        options.env.extend(vector.env.clone());
        options.flow_resolver = vector.flow_py.as_ref().map(|_| "vflow:resolve_flow".to_owned());
    });
    if let Some(text) = &vector.flow_yaml
        && let Err(error) = pyoco_flow::parse(text.as_bytes(), pyoco_flow::Limits::default())
    {
        return (ground, Err(error.to_string()));
    }
    // The vectors compare times; a process that is starting is not what they are about.
    ground.runtime.warm_up().await.unwrap();
    let params = Value::Object(vector.params.clone().unwrap_or_default());
    let execution = ground.submit("main", vector.flow_yaml.as_deref(), params).await;
    let worker = Worker::new(
        ground.engine.clone(),
        ground.clock.clone(),
        Options::new(worker_id("w1"), vec![Tag::default()]),
        Arc::new(Patched { flows: ground.runtime.flows(), vector: vector.clone() }),
        ground.runtime.clone(),
        std::env::vars().chain(vector.env.clone()).collect(),
    );
    tokio::select! {
        ran = worker.run_once(Duration::from_secs(5)) => assert_eq!(ran.unwrap(), Some(execution.clone())),
        () = cancel_when_due(&ground, &vector, &execution) => unreachable!(),
    }
    let state = ground.engine.state(&execution).await.unwrap();
    (ground, Ok(state))
}

async fn cancel_when_due(ground: &Ground, vector: &Vector, execution: &ExecutionId) {
    if let Some(cancel) = &vector.cancel {
        let mut watcher = ground.engine.watch(execution);
        loop {
            let state = ground.engine.state(execution).await.unwrap();
            let of_task = state
                .nodes
                .values()
                .filter(|node| state.task_of(node).is_some_and(|task| task.name == cancel.on_start));
            if of_task.map(|node| node.attempt.0 as usize).sum::<usize>() >= cancel.nth {
                break;
            }
            let _ = watcher.changed().await;
        }
        tokio::time::sleep(Duration::from_secs_f64(cancel.delay)).await;
        let request = Request::new(caller(), ground.clock.now(), CancelExecution { reason: None });
        ground.engine.command(execution, &request).await.unwrap();
    }
    std::future::pending().await
}

/// What a state shows of the fields of a vector.
fn observed(state: &State) -> Map<String, Value> {
    let snapshot = RunSnapshot::of(state, None);
    let (mut records, mut outputs) = (Map::new(), Map::new());
    for (task, record) in &snapshot.task_records {
        if record.state == "SUCCEEDED" {
            outputs.insert(task.clone(), record.output.clone());
        }
        let shown = json!({
            "state": record.state,
            "error": record.error,
            "has_traceback": record.traceback.is_some(),
            "inputs": record.inputs,
            "output": record.output,
            "has_started": record.started_at.is_some(),
            "has_ended": record.ended_at.is_some(),
            "has_duration": record.duration_ms.is_some(),
            "artifacts": record.artifacts,
        });
        records.insert(task.clone(), shown);
    }
    let fields = [
        ("run_status", json!(snapshot.status)),
        ("error", json!(snapshot.error)),
        ("tasks", json!(snapshot.tasks)),
        ("results", state.context.root(Root::Results).clone()),
        ("outputs", Value::Object(outputs)),
        ("scratch", state.context.root(Root::Scratch).clone()),
        ("params_after", state.context.root(Root::Params).clone()),
        ("snapshot_params_after", snapshot.params),
        ("records", Value::Object(records)),
    ];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Every difference below a path.
fn compare(path: &str, expected: &Value, got: &Value, expectation: &Expectation, found: &mut Vec<String>) {
    let is_same = expected == got || expected.get("$repr").is_some_and(|text| text == got);
    if is_same || expectation.exempt.iter().any(|exempt| exempt == path) {
        return;
    }
    let is_error = path == "error" || (path.starts_with("records.") && path.ends_with(".error"));
    let is_strict = expectation.fields.get("error_strict").and_then(Value::as_bool).unwrap_or(true);
    if is_error && !is_strict && !expected.is_null() && !got.is_null() {
        return;
    }
    match (expected, got) {
        (Value::Object(expected), Value::Object(got)) => {
            let keys: std::collections::BTreeSet<&String> = expected.keys().chain(got.keys()).collect();
            for key in keys {
                let absent = json!({"$absent": true});
                let (one, other) = (expected.get(key).unwrap_or(&absent), got.get(key).unwrap_or(&absent));
                compare(&format!("{path}.{key}"), one, other, expectation, found);
            }
        }
        _ => found.push(format!("{path}: expected {expected}, got {got}")),
    }
}

fn differences(verdict: &Verdict, outcome: &Result<State, String>) -> Vec<String> {
    match (verdict, outcome) {
        (Verdict::Refused, Err(_)) => Vec::new(),
        (Verdict::Refused, Ok(state)) if state.plan.is_none() => Vec::new(),
        (Verdict::Refused, Ok(_)) => vec!["it should be refused".to_owned()],
        (Verdict::Like(expectation), Err(message)) => {
            check::refusal(expectation, message).iter().map(ToString::to_string).collect()
        }
        (Verdict::Like(expectation), Ok(state)) => {
            let (observed, mut found) = (observed(state), Vec::new());
            for (field, expected) in &expectation.fields {
                if let Some(got) = observed.get(field) {
                    compare(field, expected, got, expectation, &mut found);
                }
            }
            found
        }
        (Verdict::OneOf(verdicts), _) => verdicts
            .iter()
            .map(|verdict| differences(verdict, outcome))
            .min_by_key(Vec::len)
            .unwrap_or_default(),
    }
}

async fn judge_all(loader: Loader) {
    let vectors: Vec<Vector> =
        open("run").unwrap().into_iter().filter(|vector| vector.loader == loader).collect();
    assert!(!vectors.is_empty());
    let mut report = Vec::new();
    let mut running = JoinSet::new();
    for vector in vectors {
        if running.len() >= 4 {
            report.extend(running.join_next().await.unwrap().unwrap());
        }
        running.spawn(async move {
            let vector = Arc::new(vector);
            let driven = tokio::time::timeout(Duration::from_secs(60), drive(vector.clone())).await;
            let found = match &driven {
                Ok((_, outcome)) => differences(&verdict(&vector, Source::Own), outcome),
                Err(_) => vec!["it does not end".to_owned()],
            };
            let name = vector.name.clone();
            found.into_iter().map(|difference| format!("{name}: {difference}")).collect::<Vec<_>>()
        });
    }
    report.extend(running.join_all().await.into_iter().flatten());
    assert!(report.is_empty(), "{}", report.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_flow_of_the_server_does_what_the_original_does() {
    judge_all(Loader::Server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_flow_object_does_what_the_original_does() {
    judge_all(Loader::FlowObject).await;
}
