//! A worker on a backend: which tasks it knows, what it calls itself, and how much it does at once.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pyoco_core::ids::{Tag, WorkerId};
use pyoco_worker::python::PythonOptions;
use pyoco_worker::{Functions, LocalRuntime, Options, WheelOptions};

use crate::backend::millis;
use crate::config::{WheelsConfig, task_environment};
use crate::{Backend, Config, RandomIds, Role, StartError};

/// What an operator chooses for a worker.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// Its name in the registry.
    pub id: String,
    /// The tags whose runs it takes; none means the default tag.
    pub tags: Vec<String>,
    /// Runs at once; none means the number of cores.
    pub concurrency: Option<NonZeroUsize>,
    /// Tasks of one run at once.
    pub task_slots: NonZeroUsize,
    /// The folder of named flows.
    pub flows: Option<PathBuf>,
    /// A Python function that builds flows, `module:function` or `path/file.py:function`.
    pub flow_resolver: Option<String>,
    /// The environment that tasks see; the process's own by default, without secrets of the server's.
    pub env: HashMap<String, String>,
}

impl Default for WorkerOptions {
    fn default() -> Self {
        Self {
            id: "worker".to_owned(),
            tags: Vec::new(),
            concurrency: None,
            task_slots: EIGHT,
            flows: None,
            flow_resolver: None,
            env: task_environment(),
        }
    }
}

/// The shelf of wheels is not looked at more often than this, whatever the settings say.
const SHORTEST_LOOK: Duration = Duration::from_millis(100);

/// Tasks of one run at once, as the original.
const EIGHT: NonZeroUsize = NonZeroUsize::new(8).unwrap();

/// A worker that takes runs from a backend's queue.
#[derive(Debug)]
pub struct Worker {
    backend: Backend,
    worker: pyoco_worker::Worker,
    runtime: Arc<LocalRuntime>,
    /// Whether the backend is this worker's own.
    owns_backend: bool,
}

impl Worker {
    /// Opens the store of a configuration and a worker on it. `functions` are flows of Rust tasks; flows that they do not
    /// know are looked for in Python. An empty `tags` means the default tag.
    pub async fn connect(
        config: Config,
        functions: Functions,
        worker_id: &str,
        tags: &[&str],
    ) -> Result<Self, StartError> {
        let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
        let options = WorkerOptions { id: worker_id.to_owned(), tags, ..WorkerOptions::default() };
        let backend = Backend::open_as(config, Role::Worker(worker_id.to_owned())).await?;
        let mut worker = Self::on(&backend, functions, options)?;
        worker.owns_backend = true;
        worker.check().await?;
        Ok(worker)
    }

    /// A worker on a backend that others share.
    pub fn on(backend: &Backend, functions: Functions, options: WorkerOptions) -> Result<Self, StartError> {
        let config = backend.config();
        if let Some(flows) = options.flows.as_ref().filter(|flows| !flows.is_dir()) {
            let text = format!("--flows {}: there is no such folder", flows.display());
            return Err(StartError::Worker(text));
        }
        let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let concurrency = options.concurrency.unwrap_or(cores).get();
        // A place for every task that may run, so that none waits for a process.
        let hosts = concurrency.saturating_mul(options.task_slots.get());
        let folder = std::env::current_dir().map_err(StartError::other)?;
        let python = PythonOptions {
            python: config.python.clone(),
            hosts,
            keep_warm: concurrency.min(hosts),
            artifacts_dir: folder.join(&config.data_dir).join("artifacts"),
            flow_resolver: options.flow_resolver,
            flows_dir: options.flows.map(|flows| folder.join(flows)),
            ..PythonOptions::new(folder, options.env.clone())
        };
        let wheels = wheels(config, &python);
        let lines = backend.engine().lines().clone();
        let runtime = Arc::new(LocalRuntime::new(python, lines, backend.store(), backend.clock()));
        let tasks = Arc::new(functions.or(Arc::new(runtime.flows()), runtime.clone()));
        let settings = Options {
            concurrency,
            task_slots: options.task_slots.get(),
            lease: millis(config.ack_wait),
            extend_every: config.ack_progress.max(Duration::from_millis(10)),
            cancel_grace: millis(config.cancel_grace),
            subject_prefix: config.nats.work_subject_prefix.clone(),
            instance: RandomIds::instance(),
            heartbeat_every: config.worker_heartbeat,
            run_heartbeat_every: config.run_heartbeat,
            disconnect_after: millis(config.worker_disconnect),
            drain_for: config.drain_timeout,
            traces_all: config.traces.is_on(),
            wheels,
            ..Options::new(worker_id(&options.id)?, tags(&options.tags, &config.default_tag)?)
        };
        let engine = backend.engine().clone();
        let worker =
            pyoco_worker::Worker::new(engine, backend.clock(), settings, tasks.clone(), tasks, options.env);
        Ok(Self { backend: backend.clone(), worker, runtime, owns_backend: false })
    }

    /// Makes sure that the flow resolver can be imported, so that a misspelt one is found at the start. One that comes in a
    /// wheel is found there, if the wheel was uploaded before.
    pub async fn check(&self) -> Result<(), StartError> {
        if !self.runtime.has_resolver() {
            return Ok(());
        }
        let wheels = self.worker.sync_wheels().await;
        let checked = self.runtime.check_resolver(wheels.as_deref()).await;
        checked.map_err(|reason| StartError::Worker(format!("--flow-resolver cannot be used: {reason}")))
    }

    /// What it calls itself.
    pub fn id(&self) -> &WorkerId {
        &self.worker.options().worker
    }

    /// Waits for one run, up to `timeout`, and sees it through. Its id, or nothing when none came.
    pub async fn run_once(&self, timeout: Duration) -> Result<Option<String>, StartError> {
        let ran = self.worker.run_once(timeout).await.map_err(StartError::other)?;
        Ok(ran.map(|run| run.to_string()))
    }

    /// Takes runs until it is told to stop.
    pub async fn run(&self) {
        let wheels = self.worker.sync_wheels().await;
        // Without Python only tasks in Python fail, each saying so; commands and Rust functions need none.
        if let Err(reason) = self.runtime.warm_up(wheels.as_deref()).await {
            tracing::warn!(worker_id = %self.id(), reason, "no Python task can run here");
        }
        self.worker.run().await;
    }

    /// Tells it to stop: tasks that run may finish, nothing more is started.
    pub fn stop(&self) {
        self.worker.stop();
    }

    /// Stops, waits for what is in hand as long as it may take, and lets everything go.
    pub async fn close(&self) -> Result<(), StartError> {
        self.worker.close().await;
        self.runtime.close().await;
        if self.owns_backend { self.backend.clone().close().await } else { Ok(()) }
    }

    /// Ends what runs at once; it goes to another worker.
    pub fn abandon(&self) {
        self.worker.abandon();
    }
}

/// How a worker installs wheels, if it is told to.
fn wheels(config: &Config, python: &PythonOptions) -> Option<WheelOptions> {
    let told = &config.wheels;
    told.sync.unwrap_or(false).then(|| WheelOptions {
        every: told.sync_every.max(SHORTEST_LOOK),
        install_timeout: told.install_timeout,
        ..WheelOptions::new(
            told.sync_dir.clone().unwrap_or_else(|| WheelsConfig::SYNC_DIR.into()),
            python.clone(),
        )
    })
}

fn worker_id(text: &str) -> Result<WorkerId, StartError> {
    WorkerId::new(text).map_err(|source| StartError::Name {
        what: "worker id",
        text: text.to_owned(),
        source,
    })
}

fn tags(texts: &[String], default: &Tag) -> Result<Vec<Tag>, StartError> {
    if texts.is_empty() {
        return Ok(vec![default.clone()]);
    }
    let tag = |text: &String| {
        Tag::new(text).map_err(|source| StartError::Name { what: "tag", text: text.clone(), source })
    };
    texts.iter().map(tag).collect()
}
