//! A flow.yaml through the engine, a worker and a real SQLite file; and again after the process was lost in between.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use pyoco_core::command::Workflow;
use pyoco_core::ids::{EventId, ExecutionId, Tag};
use pyoco_core::plan::Plan;
use pyoco_core::state::{Phase, Root};
use pyoco_core::time::Timestamp;
use pyoco_core::view::RunStatus;
use pyoco_engine::{Clock, Engine, Ids, Settings, Submission};
use pyoco_flow::{Limits, Loaded};
use pyoco_ports::RunIndex;
use pyoco_store_sqlite::SqliteStore;
use pyoco_testkit::{caller, create, worker_id};
use pyoco_worker::{Call, End, Flows, JobMessage, LoadError, Options, Runtime, Stop, WheelFolder, Worker};
use serde_json::json;

const FLOW: &str = "\
flow:
  graph: |
    flow >> fetch >> [left, right] >> join
tasks:
  fetch: {callable: 'm:fetch'}
  left: {callable: 'm:left'}
  right: {callable: 'm:right'}
  join: {callable: 'm:join', outputs: [scratch.total]}
";

struct Hands(AtomicI64);

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.fetch_add(10, Ordering::SeqCst))
    }
}

struct Counter(AtomicU64);

impl Ids for Counter {
    fn event(&self) -> EventId {
        EventId::new(&format!("ev-{}", self.0.fetch_add(1, Ordering::SeqCst))).unwrap()
    }

    fn execution(&self) -> ExecutionId {
        ExecutionId::new(&format!("e-{}", self.0.fetch_add(1, Ordering::SeqCst))).unwrap()
    }
}

/// Compiles the text that came with the job.
struct Submitted;

#[async_trait]
impl Flows for Submitted {
    async fn plan(&self, job: &JobMessage, _: Option<&WheelFolder>) -> Result<Arc<Plan>, LoadError> {
        let text = job.workflow_yaml.as_deref().ok_or_else(|| LoadError::NotFound(job.flow_name.clone()))?;
        let failed = |error: pyoco_flow::FlowError| LoadError::Failed(error.to_string());
        let workflow = pyoco_flow::parse(text.as_bytes(), Limits::default()).map_err(failed)?;
        workflow.compile(&job.flow_name, &Loaded::default()).map(Arc::new).map_err(failed)
    }
}

/// Counts what it runs, outside the system; a task that is told to hang never ends.
#[derive(Default)]
struct Ledger {
    runs: Mutex<Vec<(String, String)>>,
    hang_on: Mutex<Option<String>>,
    called: tokio::sync::Notify,
}

#[async_trait]
impl Runtime for Ledger {
    async fn run(&self, call: Call, _stop: Stop) -> End {
        self.runs.lock().unwrap().push((call.execution.to_string(), call.task.name.clone()));
        self.called.notify_one();
        let hangs = self.hang_on.lock().unwrap().as_deref() == Some(call.task.name.as_str());
        if hangs {
            std::future::pending::<()>().await;
        }
        End::value(
            json!({"results": call.context.root(Root::Results).as_object().map_or(0, serde_json::Map::len)}),
        )
    }
}

struct Process {
    store: SqliteStore,
    engine: Engine,
    worker: Worker,
}

fn process(
    folder: &Path,
    name: &str,
    clock: &Arc<Hands>,
    ids: &Arc<Counter>,
    ledger: &Arc<Ledger>,
) -> Process {
    let store = SqliteStore::open(folder, pyoco_store_sqlite::Options::default()).unwrap();
    let engine = Engine::new(Arc::new(store.clone()), clock.clone(), ids.clone(), Settings::default());
    let options = Options::new(worker_id(name), vec![Tag::default()]);
    let flows = Arc::new(Submitted);
    let worker = Worker::new(engine.clone(), clock.clone(), options, flows, ledger.clone(), HashMap::new());
    Process { store, engine, worker }
}

async fn submit(engine: &Engine) -> ExecutionId {
    let mut command = create();
    command.start = true;
    command.workflow = Some(Workflow { text: FLOW.into(), sha256: "0".repeat(64) });
    let submission = Submission {
        command,
        issuer: caller(),
        endpoint: "POST /runs/yaml".into(),
        flow: pyoco_engine::Flow::Given,
        digest: None,
        is_key_made_up: false,
        key: None,
        correlation_id: None,
    };
    engine.submit(submission).await.unwrap().execution
}

#[tokio::test]
async fn runs_survive_the_loss_of_the_process_and_completed_tasks_do_not_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(Hands(AtomicI64::new(1_700_000_000_000_000)));
    let (ids, ledger) = (Arc::new(Counter(AtomicU64::new(0))), Arc::new(Ledger::default()));
    let mut submitted = Vec::new();
    {
        let first = process(folder.path(), "w1", &clock, &ids, &ledger);
        for _ in 0..20 {
            submitted.push(submit(&first.engine).await);
        }
        for _ in 0..5 {
            first.worker.run_once(Duration::from_secs(1)).await.unwrap();
        }
        // The sixth run hangs in its join; then the process is gone, with the claim and the lease still held.
        *ledger.hang_on.lock().unwrap() = Some("join".to_owned());
        let hanging = async {
            let is_join = |(_, task): &(String, String)| task == "join";
            while ledger.runs.lock().unwrap().iter().filter(|run| is_join(run)).count() < 6 {
                ledger.called.notified().await;
            }
        };
        tokio::select! {
            () = hanging => {}
            _ = first.worker.run_once(Duration::from_secs(5)) => panic!("it was to hang"),
        }
        *ledger.hang_on.lock().unwrap() = None;
        // A process that is gone holds no file.
        first.store.close().await.unwrap();
    }
    clock.0.fetch_add(31_000_000, Ordering::SeqCst);
    let second = process(folder.path(), "w2", &clock, &ids, &ledger);
    while second.worker.run_once(Duration::from_millis(1)).await.unwrap().is_some() {}
    for execution in &submitted {
        let state = second.engine.state(execution).await.unwrap();
        assert_eq!(state.phase, Phase::Completed);
        assert_eq!(state.context.root(Root::Scratch)["total"]["results"], json!(3));
        assert_eq!(second.engine.audit(execution).await.unwrap().findings, []);
    }
    assert_eq!(second.store.counts(None).await.unwrap(), [(RunStatus::Completed, 20)]);
    let runs = ledger.runs.lock().unwrap().clone();
    for execution in &submitted {
        for task in ["fetch", "left", "right", "join"] {
            let times = runs.iter().filter(|(id, name)| id == execution.as_str() && name == task).count();
            let was_lost = task == "join" && times == 2;
            assert!(times == 1 || was_lost, "{execution} ran {task} {times} times");
        }
    }
    let repeated = runs.len() - 20 * 4;
    assert_eq!(repeated, 1, "only the attempt that was lost with its worker is made again");
    second.store.close().await.unwrap();
}
