//! A worker whose tasks are Rust functions, on the memory store: it runs flows, stops when told, and picks up what
//! another one left.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use pyoco_core::command::Request;
use pyoco_core::ids::{EventId, ExecutionId, Tag};
use pyoco_core::plan::{BlockBuilder, Kind, Plan, Policy, TaskIndex, TaskSpec};
use pyoco_core::state::{Phase, Root, State};
use pyoco_core::time::{Millis, Timestamp};
use pyoco_engine::{Clock, Engine, Ids, Settings, Submission};
use pyoco_ports::{Append, DeadLetters, EventLog, Job, WorkQueue, WorkerRegistry};
use pyoco_store_memory::MemoryStore;
use pyoco_testkit::*;
use pyoco_worker::*;
use serde_json::{Value, json};

struct Hands(AtomicI64);

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        // Each look is a little later, as it is in life.
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

/// Always the same plan; a flow named `nowhere` is unknown.
struct OneFlow(Arc<Plan>);

#[async_trait]
impl Flows for OneFlow {
    async fn plan(&self, job: &JobMessage, _: Option<&WheelFolder>) -> Result<Arc<Plan>, LoadError> {
        if job.flow_name == "nowhere" {
            Err(LoadError::NotFound(job.flow_name.clone()))
        } else {
            Ok(self.0.clone())
        }
    }
}

/// Tasks are named by what they do: `ok…` returns its name, `bad…` fails, `flaky` fails once, `slow` waits for its stop,
/// `deaf` never ends, `panics` does.
#[derive(Default)]
struct Functions {
    calls: Mutex<Vec<String>>,
    called: tokio::sync::Notify,
    /// Lets a slow task end by itself.
    release: tokio::sync::Notify,
    running: AtomicUsize,
    peak: AtomicUsize,
}

#[async_trait]
impl Runtime for Functions {
    async fn run(&self, call: Call, mut stop: Stop) -> End {
        self.calls.lock().unwrap().push(call.node.to_string());
        self.called.notify_one();
        let now = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.peak.fetch_max(now, Ordering::SeqCst);
        tokio::task::yield_now().await;
        let end = match call.task.name.as_str() {
            "slow" => tokio::select! {
                () = stop.requested() => End::Stopped,
                () = self.release.notified() => End::value(json!("released")),
            },
            "deaf" => std::future::pending().await,
            "panics" => panic!("on purpose"),
            "huge" => End::value(json!("x".repeat(2 << 20))),
            "flaky" if call.attempt.0 == 1 => End::error("not yet"),
            name if name.starts_with("bad") => End::error("boom"),
            name => {
                let item = call.loops.last().map_or(Value::Null, |frame| frame.members["item"].clone());
                let seen = call.context.root(Root::Results).as_object().map_or(0, serde_json::Map::len);
                End::value(json!({"name": name, "seen": seen, "item": item}))
            }
        };
        self.running.fetch_sub(1, Ordering::SeqCst);
        end
    }
}

struct Bench {
    store: MemoryStore,
    clock: Arc<Hands>,
    engine: Engine,
    functions: Arc<Functions>,
    plan: Arc<Plan>,
}

impl Bench {
    fn new(plan: Arc<Plan>) -> Self {
        let (store, clock) = (MemoryStore::new(), Arc::new(Hands(AtomicI64::new(1_700_000_000_000_000))));
        let ids = Arc::new(Counter(AtomicU64::new(0)));
        let engine = Engine::new(Arc::new(store.clone()), clock.clone(), ids, Settings::default());
        Self { store, clock, engine, functions: Arc::default(), plan }
    }

    fn worker(&self, name: &str) -> Worker {
        let mut options = Options::new(worker_id(name), vec![Tag::default()]);
        options.cancel_grace = Millis(50);
        self.worker_with(options)
    }

    fn worker_with(&self, options: Options) -> Worker {
        let flows = Arc::new(OneFlow(self.plan.clone()));
        Worker::new(
            self.engine.clone(),
            self.clock.clone(),
            options,
            flows,
            self.functions.clone(),
            HashMap::new(),
        )
    }

    async fn submit(&self, flow: &str, params: Value) -> ExecutionId {
        let mut command = create();
        (command.start, command.graph_id) = (true, flow.to_owned());
        command.input.0 = params.as_object().cloned().unwrap_or_default();
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
        self.engine.submit(submission).await.unwrap().execution
    }

    async fn ask(&self, execution: &ExecutionId, command: impl Into<pyoco_core::command::Command>) {
        let request = Request::new(caller(), self.clock.now(), command);
        self.engine.command(execution, &request).await.unwrap();
    }

    async fn state(&self, execution: &ExecutionId) -> State {
        self.engine.state(execution).await.unwrap()
    }

    /// Waits until the execution is as wanted; told by the watcher, not by asking again and again.
    async fn until(&self, execution: &ExecutionId, wanted: impl Fn(&State) -> bool) -> State {
        let mut watcher = self.engine.watch(execution);
        loop {
            let state = self.state(execution).await;
            if wanted(&state) {
                return state;
            }
            tokio::time::timeout(Duration::from_secs(10), watcher.changed()).await.expect("a change");
        }
    }

    /// Waits until so many calls were made.
    async fn until_called(&self, wanted: usize) {
        while self.calls().len() < wanted {
            self.functions.called.notified().await;
        }
    }

    /// What a worker says about itself, once it says that it is in this state.
    async fn registered(&self, worker: &str, state: &str) -> Value {
        let look = async {
            loop {
                if let Some(record) = self.store.worker(&worker_id(worker)).await.unwrap() {
                    let body: Value = serde_json::from_slice(&record.body).unwrap();
                    if body["state"] == state {
                        return body;
                    }
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), look).await.expect(state)
    }

    fn calls(&self) -> Vec<String> {
        self.functions.calls.lock().unwrap().clone()
    }

    async fn run_one(&self) -> Option<ExecutionId> {
        self.worker("w1").run_once(Duration::from_millis(1)).await.unwrap()
    }

    async fn jobs(&self) -> u64 {
        self.store.depth(&Tag::default()).await.unwrap()
    }
}

#[tokio::test]
async fn a_chain_runs_to_its_end_in_one_record_a_step() {
    let bench = Bench::new(Graph::chain(&["ok-a", "ok-b", "ok-c"], &callable()).plan());
    let execution = bench.submit("main", json!({})).await;
    assert_eq!(bench.run_one().await, Some(execution.clone()));
    let state = bench.state(&execution).await;
    assert_eq!(state.phase, Phase::Completed);
    assert_eq!(state.context.root(Root::Results)["ok-c"]["seen"], json!(2));
    // Submission, claim with the first start, and one record for each of the three steps.
    assert_eq!(state.version.0, 5);
    assert_eq!(bench.jobs().await, 0, "acknowledged");
    assert_eq!(bench.run_one().await, None);
}

#[tokio::test]
async fn a_fan_out_uses_the_slots_and_no_more() {
    let names: Vec<String> = (0..30).map(|n| format!("ok-{n}")).collect();
    let bench =
        Bench::new(names.iter().fold(Graph::new(), |graph, name| graph.task(name, callable())).plan());
    let execution = bench.submit("main", json!({})).await;
    bench.run_one().await;
    assert_eq!(bench.state(&execution).await.phase, Phase::Completed);
    assert_eq!(bench.functions.peak.load(Ordering::SeqCst), 8);
    assert_eq!(bench.calls().len(), 30);
}

#[tokio::test]
async fn retries_failures_panics_and_deadlines_end_as_the_policy_says() {
    let retry = Policy { retries: 1, retry_delay: Millis(1), ..Policy::default() };
    let limit = Policy { timeout: Some(Millis(20)), ..Policy::default() };
    let cases = [
        (Graph::new().task_with("flaky", callable(), retry), Phase::Completed, None, 2),
        (Graph::new().task("bad", callable()), Phase::Failed, Some("boom"), 1),
        (Graph::new().task("panics", callable()), Phase::Failed, Some("the task's runtime panicked"), 1),
        (
            Graph::new().task_with("deaf", callable(), limit),
            Phase::Failed,
            Some("Task 'deaf' exceeded timeout of 0.02s"),
            1,
        ),
    ];
    for (graph, phase, error, calls) in cases {
        let bench = Bench::new(graph.plan());
        let execution = bench.submit("main", json!({})).await;
        bench.run_one().await;
        let state = bench.state(&execution).await;
        assert_eq!((state.phase, state.last_error.as_deref()), (phase, error));
        assert_eq!(bench.calls().len(), calls);
        assert_eq!(bench.store.count_letters().await.unwrap(), u64::from(phase == Phase::Failed));
    }
}

#[tokio::test]
async fn loops_are_answered_and_unfolded() {
    let mut body = BlockBuilder::new();
    body.add("ok", Kind::Task(TaskIndex(0)));
    let over = pyoco_core::expr::Expression::parse("$ctx.params.items").unwrap();
    let kind =
        Kind::ForEach { over, item: Some("x".to_owned()), index: None, body: body.finish(false).block };
    let mut builder = BlockBuilder::new();
    builder.add("each", kind);
    let tasks = vec![TaskSpec::new("ok", callable())];
    let plan = Plan::new("main".to_owned(), tasks, builder.finish(false).block).unwrap();
    let bench = Bench::new(Arc::new(plan));
    let execution = bench.submit("main", json!({"items": ["p", "q"]})).await;
    bench.run_one().await;
    let state = bench.state(&execution).await;
    assert_eq!(state.phase, Phase::Completed);
    assert_eq!(bench.calls(), ["each/1/ok", "each/2/ok"]);
    assert_eq!(state.context.root(Root::Results)["ok"]["item"], json!("q"));
}

#[tokio::test]
async fn a_cancel_stops_a_task_that_listens_and_one_that_does_not() {
    for name in ["slow", "deaf"] {
        let bench = Bench::new(Graph::chain(&[name, "ok"], &callable()).plan());
        let execution = bench.submit("main", json!({})).await;
        let worker = bench.worker("w1");
        let canceling = async {
            bench.until(&execution, |state| !state.open.running.is_empty()).await;
            bench.ask(&execution, cancel()).await;
        };
        let ((), ran) = tokio::join!(canceling, worker.run_once(Duration::from_secs(5)));
        assert_eq!(ran.unwrap(), Some(execution.clone()));
        assert_eq!(bench.state(&execution).await.phase, Phase::Canceled);
        assert_eq!((bench.calls().len(), bench.jobs().await), (1, 0));
    }
}

#[tokio::test]
async fn the_cancel_of_one_node_stops_that_one() {
    let bench = Bench::new(Graph::new().task("slow", callable()).task("ok", callable()).plan());
    let execution = bench.submit("main", json!({})).await;
    let worker = bench.worker("w1");
    let canceling = async {
        bench.until(&execution, |state| state.open.running.len() == 1 && state.nodes.len() == 3).await;
        bench.ask(&execution, cancel_node("slow")).await;
    };
    let ((), ran) = tokio::join!(canceling, worker.run_once(Duration::from_secs(5)));
    ran.unwrap();
    let state = bench.state(&execution).await;
    assert_eq!(state.phase, Phase::Completed);
    assert_eq!(state.nodes[&node("slow")].status.to_string(), "CANCELED");
}

#[tokio::test]
async fn a_wait_parks_the_run_and_its_resume_brings_it_back() {
    let plan = Graph::new().task("ask", wait("k")).task("ok", callable()).edge("ask", "ok").plan();
    let bench = Bench::new(plan);
    let execution = bench.submit("main", json!({})).await;
    bench.run_one().await;
    let parked = bench.state(&execution).await;
    assert!(parked.is_parked());
    assert_eq!(bench.jobs().await, 0, "a parked run holds no worker and no message");
    bench.ask(&execution, resume("ask", "k")).await;
    assert_eq!(bench.jobs().await, 1);
    bench.run_one().await;
    assert_eq!(bench.state(&execution).await.phase, Phase::Completed);
}

#[tokio::test]
async fn what_another_worker_completed_is_not_run_again() {
    let bench = Bench::new(Graph::chain(&["ok-a", "slow", "ok-b"], &callable()).plan());
    let execution = bench.submit("main", json!({})).await;
    let first = bench.worker("w1");
    let dying = bench.until_called(2);
    // The first worker dies: its future is dropped in the middle of a task.
    tokio::select! {
        () = dying => {}
        _ = first.run_once(Duration::from_secs(5)) => panic!("it was to be in the middle"),
    }
    assert_eq!(bench.run_one().await, None, "the lease has not run out");
    bench.clock.0.fetch_add(31_000_000, Ordering::SeqCst);
    let second = bench.worker("w2");
    let finishing = async {
        bench.until_called(3).await;
        bench.ask(&execution, cancel()).await;
    };
    let ((), ran) = tokio::join!(finishing, second.run_once(Duration::from_secs(5)));
    assert_eq!(ran.unwrap(), Some(execution.clone()));
    assert_eq!(bench.calls(), ["ok-a", "slow", "slow"], "the completed task ran once");
    assert_eq!(bench.state(&execution).await.phase, Phase::Canceled);
}

#[tokio::test]
async fn a_worker_that_lost_its_claim_lets_go_without_a_word() {
    let bench = Bench::new(Graph::chain(&["slow", "ok"], &callable()).plan());
    let execution = bench.submit("main", json!({})).await;
    let first = bench.worker("w1");
    let stealing = async {
        bench.until(&execution, |state| !state.open.running.is_empty()).await;
        let mut theft = claim("1", None);
        theft.worker_id = worker_id("w2");
        let issuer =
            pyoco_core::command::Issuer::Worker { id: worker_id("w2"), epoch: pyoco_core::ids::Epoch(0) };
        let request = Request::new(issuer, bench.clock.now(), theft);
        bench.engine.command(&execution, &request).await.unwrap();
    };
    let ((), ran) = tokio::join!(stealing, first.run_once(Duration::from_secs(5)));
    ran.unwrap();
    assert_eq!(bench.state(&execution).await.epoch.0, 2);
    assert_eq!(bench.jobs().await, 1, "the message was not touched");
}

#[tokio::test]
async fn a_worker_that_cannot_read_the_log_any_more_leaves_the_message_alone() {
    let bench = Bench::new(Graph::chain(&["slow", "ok"], &callable()).plan());
    let execution = bench.submit("main", json!({})).await;
    let first = bench.worker("w1");
    let breaking = async {
        let state = bench.until(&execution, |state| !state.open.running.is_empty()).await;
        let forged = Append::new(execution.clone(), state.version, b"not a record".to_vec());
        bench.store.append(forged).await.unwrap();
        // Whoever writes next meets a log that cannot be folded.
        let request = Request::new(caller(), bench.clock.now(), cancel_node("slow"));
        assert!(bench.engine.command(&execution, &request).await.is_err());
        bench.functions.release.notify_one();
    };
    let ((), ran) = tokio::join!(breaking, first.run_once(Duration::from_secs(5)));
    ran.unwrap();
    bench.clock.0.fetch_add(10_000_000, Ordering::SeqCst);
    let early =
        bench.store.take(&[Tag::default()], &worker_id("w2"), 1, Millis(1), bench.clock.now()).await.unwrap();
    assert_eq!(early, [], "neither acknowledged nor sent back");
    assert_eq!(bench.jobs().await, 1);
}

#[tokio::test]
async fn a_worker_that_is_closed_finishes_its_task_and_gives_the_rest_back() {
    let bench = Bench::new(Graph::chain(&["slow", "ok"], &callable()).plan());
    let execution = bench.submit("main", json!({})).await;
    let worker = bench.worker("w1");
    let closing = async {
        bench.until(&execution, |state| !state.open.running.is_empty()).await;
        bench.ask(&execution, cancel_node("slow")).await;
        worker.stop();
    };
    let ((), ()) = tokio::join!(closing, worker.run());
    let state = bench.state(&execution).await;
    assert!(state.claim.is_none() || state.phase.is_terminal());
}

#[tokio::test]
async fn messages_that_nobody_can_use_are_buried_and_do_not_block_others() {
    let bench = Bench::new(Graph::chain(&["ok"], &callable()).plan());
    let nonsense =
        Job { execution: ExecutionId::new("x").unwrap(), tag: Tag::default(), body: b"{half".to_vec() };
    bench.store.enqueue(nonsense, bench.clock.now()).await.unwrap();
    let execution = bench.submit("main", json!({})).await;
    assert_eq!(bench.run_one().await, None);
    assert_eq!(bench.run_one().await, Some(execution));
    let letters = bench.store.letters(9).await.unwrap();
    let letter: Value = serde_json::from_slice(&letters[0].body).unwrap();
    assert_eq!((&letter["reason"], &letter["payload"]), (&json!("invalid_job"), &json!("{half")));
    assert_eq!(bench.jobs().await, 0);
}

#[tokio::test]
async fn a_flow_that_nobody_knows_fails_the_run_with_a_dead_letter() {
    let bench = Bench::new(Graph::chain(&["ok"], &callable()).plan());
    let execution = bench.submit("nowhere", json!({})).await;
    bench.run_one().await;
    let state = bench.state(&execution).await;
    assert_eq!(
        (state.phase, state.last_error.as_deref()),
        (Phase::Failed, Some("flow_not_found: 'nowhere'"))
    );
    let letters = bench.store.letters(9).await.unwrap();
    let letter: Value = serde_json::from_slice(&letters[0].body).unwrap();
    assert_eq!(letter["reason"], json!("flow_not_found"));
}

#[tokio::test]
async fn a_job_of_a_run_that_nobody_knows_is_tried_again_and_then_buried() {
    let bench = Bench::new(Graph::chain(&["ok"], &callable()).plan());
    let body = br#"{"run_id":"ghost","flow_name":"main"}"#.to_vec();
    let job = Job { execution: ExecutionId::new("ghost").unwrap(), tag: Tag::default(), body };
    bench.store.enqueue(job, bench.clock.now()).await.unwrap();
    for _ in 0..3 {
        bench.run_one().await;
        assert_eq!(bench.store.count_letters().await.unwrap(), 0);
        bench.clock.0.fetch_add(6_000_000, Ordering::SeqCst);
    }
    bench.run_one().await;
    assert_eq!((bench.store.count_letters().await.unwrap(), bench.jobs().await), (1, 0));
}

#[tokio::test]
async fn the_registry_shows_what_a_worker_does_and_that_it_left_in_good_order() {
    let bench = Bench::new(Graph::chain(&["slow"], &callable()).plan());
    let execution = bench.submit("main", json!({})).await;
    let worker = bench.worker("w1");
    let looking = async {
        bench.until(&execution, |state| !state.open.running.is_empty()).await;
        let running = bench.registered("w1", "RUNNING").await;
        assert_eq!(running["current_run_id"], json!(execution));
        assert_eq!(running["tags"], json!(["default"]));
        bench.functions.release.notify_one();
        let idle = bench.registered("w1", "IDLE").await;
        assert_eq!((&idle["last_run_id"], &idle["current_run_id"]), (&json!(execution), &Value::Null));
        assert_eq!(idle["last_run_status"], json!("COMPLETED"));
        worker.close().await;
    };
    let ((), ()) = tokio::join!(looking, worker.run());
    let left = bench.registered("w1", "STOPPED_GRACEFUL").await;
    assert_eq!(left["stop_reason"], json!("graceful_shutdown"));
    assert!(left["stopped_at"].is_f64());
}

#[tokio::test]
async fn a_worker_that_waited_long_enough_gives_its_running_task_to_another() {
    let bench = Bench::new(Graph::chain(&["slow", "ok"], &callable()).plan());
    let execution = bench.submit("main", json!({})).await;
    let mut options = Options::new(worker_id("w1"), vec![Tag::default()]);
    options.drain_for = Duration::from_millis(20);
    let leaving = bench.worker_with(options);
    let closing = async {
        bench.until_called(1).await;
        leaving.close().await;
    };
    let ((), ()) = tokio::join!(closing, leaving.run());
    assert_eq!(bench.jobs().await, 1, "its message is in the queue again");
    let next = bench.worker("w2");
    let finishing = async {
        bench.until_called(2).await;
        bench.functions.release.notify_one();
    };
    let ((), ran) = tokio::join!(finishing, next.run_once(Duration::from_secs(5)));
    assert_eq!(ran.unwrap(), Some(execution.clone()));
    assert_eq!(bench.state(&execution).await.phase, Phase::Completed);
    assert_eq!(bench.calls(), ["slow", "slow", "ok"]);
}

#[tokio::test]
async fn fan_outs_around_the_size_of_a_record_run_to_their_end() {
    for width in 254..=258 {
        for behind_one in [false, true] {
            let names: Vec<String> = (0..width).map(|number| format!("ok-{number}")).collect();
            let bench = Bench::new(fan_out(&names, behind_one));
            let execution = bench.submit("main", json!({})).await;
            let ran = tokio::time::timeout(Duration::from_secs(20), bench.run_one()).await;
            assert_eq!(ran.expect("it does not end"), Some(execution.clone()), "{width} tasks");
            assert_eq!(bench.state(&execution).await.phase, Phase::Completed);
            assert_eq!(bench.calls().len(), width + usize::from(behind_one));
        }
    }
}

/// Tasks side by side, at the beginning or behind one.
fn fan_out(names: &[String], behind_one: bool) -> Arc<Plan> {
    let first = if behind_one { Graph::new().task("ok-first", callable()) } else { Graph::new() };
    let graph = names.iter().fold(first, |graph, name| graph.task(name, callable()));
    let linked = names.iter().filter(|_| behind_one);
    linked.fold(graph, |graph, name| graph.edge("ok-first", name)).plan()
}

#[tokio::test]
async fn a_result_that_no_record_can_hold_fails_its_task_and_says_so() {
    let bench = Bench::new(Graph::chain(&["huge", "ok"], &callable()).plan());
    let execution = bench.submit("main", json!({})).await;
    let ran = tokio::time::timeout(Duration::from_secs(10), bench.run_one()).await;
    assert_eq!(ran.expect("it does not end"), Some(execution.clone()));
    let state = bench.state(&execution).await;
    assert_eq!(state.phase, Phase::Failed);
    assert!(state.last_error.unwrap().contains("1 MiB"));
    let letters = bench.store.letters(9).await.unwrap();
    let letter: Value = serde_json::from_slice(&letters[0].body).unwrap();
    assert_eq!((&letter["reason"], &letter["worker_id"]), (&json!("execution_error"), &json!("w1")));
    assert_eq!((&letter["run_id"], &letter["flow_name"]), (&json!(execution), &json!("main")));
    assert_eq!((&letter["tag"], &letter["error"]), (&json!("default"), &letter["error"]));
}

#[tokio::test]
async fn a_run_whose_workers_vanish_again_and_again_is_failed_with_a_letter() {
    let bench = Bench::new(Graph::chain(&["deaf"], &callable()).plan());
    let execution = bench.submit("main", json!({})).await;
    for lost in 1..=5 {
        let vanishing = bench.worker("w1");
        tokio::select! {
            () = bench.until_called(lost) => {}
            ran = vanishing.run_once(Duration::from_secs(5)) => panic!("it ended: {ran:?}"),
        }
        bench.clock.0.fetch_add(31_000_000, Ordering::SeqCst);
    }
    bench.run_one().await;
    let state = bench.state(&execution).await;
    assert_eq!(state.phase, Phase::Failed, "{:?}", state.last_error);
    assert_eq!((bench.store.count_letters().await.unwrap(), bench.jobs().await), (1, 0));
}

#[tokio::test]
async fn a_job_that_comes_again_while_it_is_in_hand_goes_on() {
    let bench = Bench::new(Graph::chain(&["slow"], &callable()).plan());
    let execution = bench.submit("main", json!({})).await;
    let mut options = Options::new(worker_id("w1"), vec![Tag::default()]);
    options.concurrency = 4;
    let worker = bench.worker_with(options);
    let jumping = async {
        bench.until_called(1).await;
        // The machine was asleep: every lease has run out at once.
        bench.clock.0.fetch_add(60_000_000, Ordering::SeqCst);
        let nothing = bench.submit("nowhere", json!({})).await;
        bench.until(&nothing, |state| state.phase.is_terminal()).await;
        bench.functions.release.notify_one();
        bench.until(&execution, |state| state.phase.is_terminal()).await;
        worker.stop();
    };
    let ((), ()) = tokio::join!(jumping, worker.run());
    let state = bench.state(&execution).await;
    assert_eq!((state.phase, state.epoch.0), (Phase::Completed, 1), "nobody took it over");
    assert_eq!(bench.calls(), ["slow"]);
}
