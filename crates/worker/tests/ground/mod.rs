//! The ground that tests of real tasks stand on: a folder with modules, a runtime with a real Python, and what it wrote.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use pyoco_core::event::ErrorInfo;
use pyoco_core::ids::{Attempt, EventId, ExecutionId, NodeId, Tag};
use pyoco_core::plan::{Block, Plan, Runner, TaskSpec};
use pyoco_core::state::{Context, State};
use pyoco_core::time::Timestamp;
use pyoco_engine::{Clock, Engine, Ids, Settings, Submission};
use pyoco_ports::{LinePlace, LogEnd, LogLine, LogStream, LogTerms, StoreError, TaskLogs, Written};
use pyoco_store_memory::MemoryStore;
use pyoco_testing_deployment::Faulty;
use pyoco_testkit::{caller, create, worker_id};
use pyoco_worker::python::PythonOptions;
use pyoco_worker::{Call, End, JobMessage, LocalRuntime, Options, Runtime, Stop, Urgency, Worker};
use serde_json::Value;
use tokio::sync::watch;

/// The time of this machine: real tasks take real time.
pub struct WallClock;

impl Clock for WallClock {
    #[expect(clippy::disallowed_methods, reason = "here is where a test reads the time")]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap())
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

/// The lines of tasks, in memory; told about each batch.
#[derive(Default)]
pub struct Lines {
    pub lines: Mutex<Vec<LogLine>>,
    pub arrived: tokio::sync::Notify,
    /// Counts instead of keeping.
    pub only_count: std::sync::atomic::AtomicBool,
    pub bytes: AtomicU64,
    pub end: Mutex<LogEnd>,
    pub largest_batch: AtomicU64,
}

#[async_trait]
impl TaskLogs for Lines {
    async fn write_lines(
        &self,
        _: &ExecutionId,
        lines: Vec<LogLine>,
        terms: LogTerms,
    ) -> Result<Written, StoreError> {
        let before = *self.end.lock().unwrap();
        let written = before.take(lines, terms);
        *self.end.lock().unwrap() = written.end;
        let lines: Vec<LogLine> = written.lines.iter().map(|(_, line)| line.clone()).collect();
        let size: u64 = lines.iter().map(|line| line.text.len() as u64 + 1).sum();
        self.bytes.fetch_add(size, Ordering::SeqCst);
        self.largest_batch.fetch_max(size, Ordering::SeqCst);
        if !self.only_count.load(Ordering::SeqCst) {
            self.lines.lock().unwrap().extend(lines);
        }
        self.arrived.notify_one();
        Ok(written)
    }

    async fn log_end(&self, _: &ExecutionId) -> Result<LogEnd, StoreError> {
        Ok(*self.end.lock().unwrap())
    }

    async fn line_at(&self, _: &ExecutionId, _: u64) -> Result<Option<LinePlace>, StoreError> {
        unreachable!("no test of a worker asks where a byte stands")
    }

    async fn read_lines(
        &self,
        _: &ExecutionId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, LogLine)>, StoreError> {
        let lines = self.lines.lock().unwrap();
        Ok((1..).zip(lines.iter().cloned()).skip(usize::try_from(after).unwrap()).take(limit).collect())
    }
}

impl Lines {
    pub fn of(&self, stream: LogStream) -> Vec<String> {
        let lines = self.lines.lock().unwrap();
        lines.iter().filter(|line| line.stream == stream).map(|line| line.text.clone()).collect()
    }

    /// Waits for a line that begins like this and answers the rest of it.
    pub async fn after(&self, start: &str) -> String {
        let look = async {
            loop {
                let found = self.of(LogStream::Stdout);
                if let Some(rest) = found.iter().find_map(|line| line.strip_prefix(start)) {
                    return rest.to_owned();
                }
                self.arrived.notified().await;
            }
        };
        let found = tokio::time::timeout(Duration::from_secs(20), look).await;
        found.unwrap_or_else(|_| panic!("no '{start}' in {:?}", self.of(LogStream::Stdout)))
    }
}

/// The interpreter that has pyoco: `PYOCO_TEST_PYTHON`, else the project's `.venv`, else `python3`.
pub fn python() -> PathBuf {
    if let Some((_, given)) = std::env::vars().find(|(name, _)| name == "PYOCO_TEST_PYTHON") {
        return given.into();
    }
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python");
    if own.exists() { own } else { "python3".into() }
}

pub struct Ground {
    pub folder: tempfile::TempDir,
    pub runtime: Arc<LocalRuntime>,
    pub lines: Arc<Lines>,
    pub store: MemoryStore,
    /// What the engine sees of the store.
    pub faults: Arc<Faulty>,
    pub python: PythonOptions,
    pub clock: Arc<WallClock>,
    pub engine: Engine,
}

impl Ground {
    /// A folder with a module `tasks`.
    pub fn new(tasks: &str) -> Self {
        Self::with(&[("tasks.py", tasks)], |_| {})
    }

    pub fn with(files: &[(&str, &str)], change: impl FnOnce(&mut PythonOptions)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            write(&folder.path().join(path), text);
        }
        let mut options = PythonOptions::new(folder.path().to_owned(), std::env::vars().collect());
        options.python = python();
        change(&mut options);
        let (lines, store): (Arc<Lines>, _) = (Arc::default(), MemoryStore::new());
        let clock = Arc::new(WallClock);
        let blobs = Arc::new(store.clone());
        let writer = pyoco_engine::Lines::new(lines.clone(), u64::MAX);
        let python = options.clone();
        let runtime = LocalRuntime::new(options, writer, blobs, clock.clone());
        let ids = Arc::new(Counter(AtomicU64::new(0)));
        let faults = Arc::new(Faulty { inner: store.clone(), ..Faulty::default() });
        let engine = Engine::new(faults.clone(), clock.clone(), ids, Settings::default());
        Self { folder, runtime: Arc::new(runtime), lines, store, faults, python, clock, engine }
    }

    pub fn write(&self, path: &str, text: &str) {
        write(&self.folder.path().join(path), text);
    }

    /// One attempt at `main`, which is of a run of its own.
    pub async fn run(&self, address: &str) -> End {
        self.runtime.run(call(&Runner::Callable(address.to_owned())), quiet()).await
    }

    /// Runs a flow to its end, through a worker.
    pub async fn flow(&self, yaml: &str, params: Value) -> State {
        self.job("main", Some(yaml), params).await
    }

    /// Runs a job to its end, through a worker.
    pub async fn job(&self, flow: &str, yaml: Option<&str>, params: Value) -> State {
        let execution = self.submit(flow, yaml, params).await;
        let ran = self.worker().run_once(Duration::from_secs(1)).await;
        assert_eq!(ran.unwrap(), Some(execution.clone()));
        self.engine.state(&execution).await.unwrap()
    }

    pub async fn submit(&self, flow: &str, yaml: Option<&str>, params: Value) -> ExecutionId {
        let mut command = create();
        (command.start, command.graph_id) = (true, flow.to_owned());
        command.input.0 = params.as_object().cloned().unwrap_or_default();
        command.workflow = yaml.map(|text| pyoco_core::command::Workflow {
            text: text.into(),
            sha256: pyoco_core::digest::Digest::of_bytes(text.as_bytes()).to_string(),
        });
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

    pub fn worker(&self) -> Worker {
        self.worker_with(Options::new(worker_id("w1"), vec![Tag::default()]))
    }

    pub fn worker_with(&self, options: Options) -> Worker {
        let flows = Arc::new(self.runtime.flows());
        let env: HashMap<String, String> = std::env::vars().collect();
        Worker::new(self.engine.clone(), self.clock.clone(), options, flows, self.runtime.clone(), env)
    }
}

pub fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

static RUNS: AtomicU64 = AtomicU64::new(0);

/// One attempt of a task `t` in a run of its own.
pub fn call(runner: &Runner) -> Call {
    call_of(TaskSpec::new("t", runner.clone()), None)
}

pub fn call_of(task: TaskSpec, expose_env: Option<&[&str]>) -> Call {
    let mut plan = Plan::new("main".to_owned(), vec![task.clone()], Block::default()).unwrap();
    plan.expose_env = expose_env.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
    let run = RUNS.fetch_add(1, Ordering::SeqCst);
    Call {
        execution: ExecutionId::new(&format!("run-{run}")).unwrap(),
        node: NodeId::new("t").unwrap(),
        attempt: Attempt(1),
        task,
        plan: Arc::new(plan),
        context: Context::default(),
        loops: Vec::new(),
        wheels: None,
        trace: None,
    }
}

/// Never stops.
pub fn quiet() -> Stop {
    let (urgency, stop) = stop();
    // The attempt is not let go of: a sender that is gone asks it to stop.
    std::mem::forget(urgency);
    stop
}

pub fn stop() -> (watch::Sender<Urgency>, Stop) {
    let (urgency, receiver) = watch::channel(Urgency::None);
    (urgency, receiver.into())
}

pub fn value(end: &End) -> Value {
    match end {
        End::Succeeded { output, .. } => output.as_ref().map_or(Value::Null, |output| output.0.clone()),
        End::Failed { error, .. } => panic!("{}", error.text()),
        End::Stopped => panic!("it was stopped"),
    }
}

pub fn error(end: &End) -> &ErrorInfo {
    match end {
        End::Failed { error, .. } => error,
        End::Succeeded { .. } | End::Stopped => panic!("{end:?}"),
    }
}

/// Whether a process runs. One that ended but was not waited for yet does not.
pub fn is_alive(pid: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !status.is_empty() && !status.rsplit(')').next().unwrap().trim_start().starts_with(['Z', 'X'])
}

/// Waits until a process is gone; the kernel takes a moment to end one that was killed.
pub async fn until_gone(pid: &str) {
    let look = async {
        while is_alive(pid) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), look).await.unwrap_or_else(|_| panic!("{pid} is alive"));
}

pub fn job(flow: &str, yaml: Option<&str>) -> JobMessage {
    JobMessage {
        run_id: ExecutionId::new("e-1").unwrap(),
        flow_name: flow.to_owned(),
        params: None,
        workflow_yaml: yaml.map(str::to_owned),
        tags: None,
        submitted_at: None,
        tenant_id: None,
        api_key_id: None,
    }
}
