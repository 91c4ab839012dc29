//! A store that does what it is asked and answers too late: nobody knows whether a record arrived. Every task runs as often as the
//! log says, and everything comes to its end.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use pyoco_core::ids::Tag;
use pyoco_core::plan::{Plan, Policy};
use pyoco_core::state::{Phase, State};
use pyoco_core::view::RunStatus;
use pyoco_engine::{Engine, EngineError, Submission};
use pyoco_ports::{Durability, RunIndex as _, WorkQueue as _};
use pyoco_testing_deployment::Deployment;
use pyoco_testkit::*;
use pyoco_worker::*;
use serde_json::json;

struct OneFlow(Arc<Plan>);

#[async_trait]
impl Flows for OneFlow {
    async fn plan(&self, _job: &JobMessage, _: Option<&WheelFolder>) -> Result<Arc<Plan>, LoadError> {
        Ok(self.0.clone())
    }
}

/// Remembers which attempt of what was called how often. `flaky` fails at first.
#[derive(Default)]
struct Ledger(Mutex<BTreeMap<(String, u32), usize>>);

#[async_trait]
impl Runtime for Ledger {
    async fn run(&self, call: Call, _stop: Stop) -> End {
        *self.0.lock().unwrap().entry((call.node.to_string(), call.attempt.0)).or_default() += 1;
        tokio::task::yield_now().await;
        if call.task.name.starts_with("flaky") && call.attempt.0 == 1 {
            End::error("not yet")
        } else {
            End::value(json!(call.attempt.0))
        }
    }
}

fn plan() -> Arc<Plan> {
    let retry = Policy { retries: 2, ..Policy::default() };
    let mut graph = Graph::new().task("first", callable()).task("last", callable());
    for number in 0..12 {
        let name = if number % 3 == 0 { format!("flaky-{number}") } else { format!("ok-{number}") };
        graph = graph.task_with(&name, callable(), retry).edge("first", &name).edge(&name, "last");
    }
    graph.plan()
}

async fn submit(engine: &Engine) -> pyoco_core::ids::ExecutionId {
    let mut command = create();
    command.start = true;
    let submission = Submission {
        command,
        issuer: caller(),
        endpoint: "POST /runs".into(),
        flow: pyoco_engine::Flow::Given,
        digest: None,
        is_key_made_up: false,
        key: None,
        correlation_id: None,
    };
    engine.submit(submission).await.unwrap().execution
}

fn status(state: &State) -> RunStatus {
    RunStatus::of(state)
}

/// Runs the plan while every `every`th append is answered too late.
async fn run(every: usize, bare: bool) {
    let deployment = Deployment::new();
    let engine = deployment.engine();
    let execution = submit(&engine).await;
    deployment.store.bare.store(bare, Ordering::SeqCst);
    deployment.store.time_out_every.store(every, Ordering::SeqCst);
    let ledger = Arc::new(Ledger::default());
    let options = Options::new(worker_id("w"), vec![Tag::default()]);
    let worker = Worker::new(
        engine.clone(),
        deployment.hands.clone(),
        options,
        Arc::new(OneFlow(plan())),
        ledger.clone(),
        HashMap::new(),
    );
    // A claim that was answered too late sends the job back; it is taken again.
    for _round in 0..20 {
        let ran = tokio::time::timeout(Duration::from_secs(60), worker.run_once(Duration::from_millis(1)));
        ran.await.expect("nothing hangs").unwrap();
        deployment.hands.forward(40_000);
        if engine.glance(&execution, |state| state.phase.is_terminal()).await.unwrap() {
            break;
        }
    }
    deployment.store.time_out_every.store(0, Ordering::SeqCst);
    let state = engine.state(&execution).await.unwrap();
    assert_eq!(state.phase, Phase::Completed, "every {every}: {:?}", state.last_error);
    // What the log calls an attempt was one call, unless it was lost with a claim.
    for ((node, attempt), calls) in ledger.0.lock().unwrap().iter() {
        assert_eq!(*calls, 1, "every {every}: {node}, attempt {attempt}");
    }
    let row = deployment.store.inner.get(&execution).await.unwrap().unwrap();
    assert_eq!((row.version, row.summary.status), (state.version, status(&state)), "every {every}");
    // Whoever takes what is left finds that there is nothing to do.
    worker.run_once(Duration::from_millis(1)).await.unwrap();
    assert_eq!(deployment.store.inner.depth(&Tag::default()).await.unwrap(), 0, "every {every}");
}

#[tokio::test(start_paused = true)]
async fn every_attempt_is_made_once_whichever_answers_come_too_late() {
    for every in 2..9 {
        for bare in [false, true] {
            run(every, bare).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_record_that_arrived_after_all_is_followed_up_by_whoever_comes_next() {
    let deployment = Deployment::new();
    let engine = deployment.engine();
    deployment.store.bare.store(true, Ordering::SeqCst);
    let execution = submit(&engine).await;
    deployment.store.time_out.store(1, Ordering::SeqCst);
    let cancelled = engine
        .transact(&execution, Durability::Full, |batch| {
            let request =
                pyoco_core::command::Request::new(caller(), batch.state().updated_at.unwrap(), cancel());
            let answer = batch.decide(&request);
            pyoco_engine::Decided { value: answer.is_ok(), effects: Vec::new() }
        })
        .await;
    assert!(matches!(cancelled, Err(EngineError::Store(_))), "{cancelled:?}");
    let row = deployment.store.inner.get(&execution).await.unwrap().unwrap();
    assert_eq!(row.summary.status, RunStatus::Pending, "nobody has seen to the row");
    engine
        .transact(&execution, Durability::Full, |_| pyoco_engine::Decided { value: (), effects: Vec::new() })
        .await
        .unwrap();
    let row = deployment.store.inner.get(&execution).await.unwrap().unwrap();
    assert_eq!(row.summary.status, RunStatus::Cancelled);
}
