//! The run loop: as many executions at once as there is room for, until it is told to stop.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use pyoco_core::ids::{ExecutionId, Tag, WorkerId};
use pyoco_core::time::{Millis, Timestamp};
use pyoco_engine::{Clock, Engine};
use pyoco_ports::StoreError;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::runtime::{Flows, Runtime};

/// What an operator chooses for a worker.
#[derive(Debug, Clone)]
pub struct Options {
    /// What it calls itself.
    pub worker: WorkerId,
    /// Which jobs it takes; several tags mean any of them.
    pub tags: Vec<Tag>,
    /// Executions at once.
    pub concurrency: usize,
    /// Tasks of one execution at once.
    pub task_slots: usize,
    /// How long a job is its own without a word (`PYOCO_CONSUMER_ACK_WAIT_SEC`).
    pub lease: Millis,
    /// How often it says that it still works (`PYOCO_ACK_PROGRESS_INTERVAL_SEC`).
    pub extend_every: Duration,
    /// How long a task may take to stop by itself (`PYOCO_CANCEL_GRACE_PERIOD_SEC`).
    pub cancel_grace: Millis,
    /// A pause longer than this does not hold the worker.
    pub park_after: Millis,
}

impl Options {
    /// The defaults of the contract.
    pub fn new(worker: WorkerId, tags: Vec<Tag>) -> Self {
        Self {
            worker,
            tags,
            concurrency: 1,
            task_slots: 8,
            lease: Millis(30_000),
            extend_every: Duration::from_secs(10),
            cancel_grace: Millis(30_000),
            park_after: Millis(5_000),
        }
    }
}

/// What the parts of a worker share.
pub(crate) struct Shared {
    pub(crate) engine: Engine,
    pub(crate) options: Options,
    pub(crate) flows: Arc<dyn Flows>,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) clock: Arc<dyn Clock>,
    /// What `$env` shows.
    pub(crate) env: HashMap<String, String>,
    /// The worker is to stop: finish what runs, start nothing more.
    pub(crate) drain: watch::Receiver<bool>,
}

impl Shared {
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

/// A worker.
pub struct Worker {
    shared: Arc<Shared>,
    drain: watch::Sender<bool>,
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Worker({})", self.shared.options.worker)
    }
}

impl Worker {
    /// A worker on an engine. It takes nothing before it is run.
    pub fn new(
        engine: Engine,
        clock: Arc<dyn Clock>,
        options: Options,
        flows: Arc<dyn Flows>,
        runtime: Arc<dyn Runtime>,
        env: HashMap<String, String>,
    ) -> Self {
        let (drain, receiver) = watch::channel(false);
        let shared = Shared { engine, options, flows, runtime, clock, env, drain: receiver };
        Self { shared: Arc::new(shared), drain }
    }

    /// Waits for one job, up to `patience`, and sees it through. `None` when none came, or it was none.
    pub async fn run_once(&self, patience: Duration) -> Result<Option<ExecutionId>, StoreError> {
        let shared = &self.shared;
        let mut taken = shared.take(1).await?;
        if taken.is_empty() {
            shared.engine.store().wait(&shared.options.tags, patience).await?;
            taken = shared.take(1).await?;
        }
        match taken.first() {
            Some(delivery) => Ok(shared.handle(delivery).await),
            None => Ok(None),
        }
    }

    /// Runs until `close`. Failures of the store are waited out.
    pub async fn run(&self) {
        let shared = &self.shared;
        let mut drain = shared.drain.clone();
        let mut jobs: JoinSet<()> = JoinSet::new();
        while !*drain.borrow() {
            let free = shared.options.concurrency.saturating_sub(jobs.len());
            if free > 0
                && let Ok(taken) = shared.take(free).await
            {
                for delivery in taken {
                    let shared = shared.clone();
                    jobs.spawn(async move { drop(shared.handle(&delivery).await) });
                }
            }
            let has_room = jobs.len() < shared.options.concurrency;
            tokio::select! {
                _ = drain.changed() => {}
                Some(_) = jobs.join_next() => {}
                _ = shared.engine.store().wait(&shared.options.tags, Duration::from_secs(1)), if has_room => {}
            }
        }
        // What is in hand is finished or given back; nothing is left behind.
        while jobs.join_next().await.is_some() {}
    }

    /// Tells the worker to stop: tasks that run may finish, nothing more is started, and what is left goes back.
    pub fn close(&self) {
        self.drain.send_replace(true);
    }
}

impl Shared {
    async fn take(&self, most: usize) -> Result<Vec<pyoco_ports::Delivery>, StoreError> {
        let options = &self.options;
        self.engine.store().take(&options.tags, &options.worker, most, options.lease, self.now()).await
    }
}
