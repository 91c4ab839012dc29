//! Small stages in one process, each made for a mistake that real processes come to too seldom. The stage is always the same; whether
//! anything is found depends on what the environment has planted.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use pyoco_core::command::{AnnotateExecution, Request};
use pyoco_core::ids::{ExecutionId, Tag, Version};
use pyoco_core::plan::Plan;
use pyoco_core::record;
use pyoco_engine::{Engine, EngineError, Flow, Settings, Submission};
use pyoco_ports::EventLog as _;
use pyoco_server::{RandomIds, SystemClock};
use pyoco_store_sqlite::SqliteStore;
use pyoco_testing_deployment::Deployment;
use pyoco_testkit::{Graph, callable, caller, create, worker_id};
use pyoco_worker::{Call, End, Flows, JobMessage, LoadError, Options, Runtime, Stop, WheelFolder, Worker};
use serde_json::json;
use tokio::sync::watch;

use crate::check::{Evidence, Run, Violation, check};
use crate::history::{Line, Said};
use crate::{PATIENCE, look};

/// Plays a scene, and says what was found.
pub async fn play(name: &str) -> Vec<Violation> {
    match name {
        "two-writers" => two_writers().await,
        "two-readers" => two_readers().await,
        "zombie" => zombie().await,
        other => panic!("there is no scene {other:?}"),
    }
}

/// An execution that nobody runs yet.
pub async fn submit(engine: &Engine) -> ExecutionId {
    let mut command = create();
    command.start = true;
    let submission = Submission {
        command,
        flow: Flow::Given,
        issuer: caller(),
        endpoint: "POST /runs".into(),
        key: None,
        is_key_made_up: false,
        digest: None,
        correlation_id: None,
    };
    engine.submit(submission).await.expect("an execution").execution
}

/// One more record: a label.
pub async fn label(engine: &Engine, execution: &ExecutionId, label: &str) -> Result<(), EngineError> {
    let command = AnnotateExecution {
        add_labels: vec![label.to_owned()],
        remove_labels: Vec::new(),
        hidden: None,
        retried_by: None,
    };
    let request = Request::new(caller(), pyoco_engine::Clock::now(&SystemClock), command);
    engine.command(execution, &request).await.map(|_| ())
}

/// Two who write to one execution in turn, each remembering what it wrote itself; and an auditor.
async fn two_writers() -> Vec<Violation> {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(folder.path(), Default::default()).unwrap());
    let engine =
        || Engine::new(store.clone(), Arc::new(SystemClock), Arc::new(RandomIds), Settings::default());
    let (one, other) = (engine(), engine());
    let execution = submit(&one).await;
    for round in 0..3 {
        for writer in [&other, &one] {
            // Whoever reads what is broken says so; the auditor does in any case.
            let _ = label(writer, &execution, &format!("label-{round}")).await;
        }
    }
    let audit = engine().audit(&execution).await.expect("an audit");
    let findings = audit.findings.iter().map(|finding| format!("{finding:?}")).collect();
    let runs = [(execution.to_string(), Run { findings, ..Run::default() })];
    check(&Evidence { runs: runs.into(), ..Evidence::default() })
}

/// Two who look at one execution, one of whom also writes.
async fn two_readers() -> Vec<Violation> {
    let deployment = Deployment::new();
    let (writer, reader) = (deployment.engine(), deployment.engine());
    let execution = submit(&writer).await;
    let run = execution.to_string();
    let mut history = vec![Line {
        at: 0,
        operation: 0,
        said: Said::Accepted { label: "one".to_owned(), run: run.clone() },
    }];
    for operation in 1..7 {
        let engine = if operation % 2 == 0 { &writer } else { &reader };
        let version = engine.look(&execution, |state| state.version.0).await.expect("a look").expect("a run");
        let sees = Said::Sees { run: run.clone(), version, status: "PENDING".to_owned() };
        for said in [Said::Reads { run: run.clone() }, sees] {
            history.push(Line { at: 0, operation, said });
        }
        label(&writer, &execution, &format!("label-{operation}")).await.expect("a label");
    }
    let found = Run { shown: Some("PENDING".to_owned()), ..Run::default() };
    check(&Evidence { history, runs: [(run, found)].into(), ..Evidence::default() })
}

struct Chain(Arc<Plan>);

#[async_trait]
impl Flows for Chain {
    async fn plan(&self, _: &JobMessage, _: Option<&WheelFolder>) -> Result<Arc<Plan>, LoadError> {
        Ok(self.0.clone())
    }
}

/// Tasks that end when their worker may go on.
struct Gate(watch::Receiver<bool>);

#[async_trait]
impl Runtime for Gate {
    async fn run(&self, call: Call, _: Stop) -> End {
        let _ = self.0.clone().wait_for(|is_open| *is_open).await;
        End::value(json!(call.attempt.0))
    }
}

/// A worker is lost in the middle of a task, another takes over, and the first comes back.
async fn zombie() -> Vec<Violation> {
    let deployment = Deployment::new();
    let plan = Graph::new().task("first", callable()).task("last", callable()).edge("first", "last").plan();
    let worker = |name: &str| {
        let (open, gate) = watch::channel(false);
        let mut options = Options::new(worker_id(name), vec![Tag::default()]);
        // Nobody hears of it while it is lost.
        options.heartbeat_every = Duration::from_secs(3_600);
        options.run_heartbeat_every = Duration::from_secs(3_600);
        let (clock, runtime) = (deployment.hands.clone(), Arc::new(Gate(gate)));
        let flows = Arc::new(Chain(plan.clone()));
        let worker = Worker::new(deployment.engine(), clock, options, flows, runtime, HashMap::new());
        (Arc::new(worker), open)
    };
    let ((lost, lost_gate), (heir, heir_gate)) = (worker("lost"), worker("heir"));
    let execution = submit(&deployment.engine()).await;
    let working = |worker: Arc<Worker>| tokio::spawn(async move { drop(worker.run_once(PATIENCE).await) });
    let first = working(lost);
    until_claimed(&deployment, &execution, 1).await;
    deployment.hands.forward(200_000);
    let second = working(heir);
    until_claimed(&deployment, &execution, 2).await;
    lost_gate.send_replace(true);
    // It lets go of what is not its own, or does what it should not.
    let _ = tokio::time::timeout(PATIENCE, first).await.expect("the lost one ends");
    heir_gate.send_replace(true);
    let _ = tokio::time::timeout(PATIENCE, second).await.expect("the heir ends");
    let log = log(&deployment, &execution).await;
    let shown = Some("COMPLETED".to_owned());
    let run = Run { log, listed: shown.clone(), shown, ..Run::default() };
    check(&Evidence { runs: [(execution.to_string(), run)].into(), ..Evidence::default() })
}

async fn log(deployment: &Deployment, execution: &ExecutionId) -> Vec<crate::check::Record> {
    let stored = deployment.store.inner.read(execution, Version(0)).await.expect("a log");
    stored
        .iter()
        .map(|stored| look::seen(&record::Record::decode(&stored.bytes).expect("a record")))
        .collect()
}

async fn until_claimed(deployment: &Deployment, execution: &ExecutionId, times: usize) {
    let since = Instant::now();
    while log(deployment, execution).await.iter().filter(|record| record.claim.is_some()).count() < times {
        assert!(since.elapsed() < PATIENCE, "nobody claims it");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
