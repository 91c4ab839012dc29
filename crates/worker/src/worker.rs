//! The run loop: as many executions at once as there is room for, until it is told to stop.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use pyoco_core::ids::{ExecutionId, JobId, Tag, WorkerId};
use pyoco_core::notice::Notice;
use pyoco_core::time::{Millis, Timestamp};
use pyoco_engine::{Clock, Engine};
use pyoco_ports::StoreError;
use tokio::sync::{RwLock, watch};
use tokio::task::JoinSet;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::registry::Registry;
use crate::room::{Place, Room};
use crate::runtime::{Flows, Runtime};
use crate::wheels::{WheelFolder, WheelOptions, Wheelhouse};

/// After a failure of the store, so long before the next try.
pub(crate) const AFTER_FAILURE: Duration = Duration::from_millis(500);

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
    /// What the subject of a job begins with (`PYOCO_WORK_SUBJECT_PREFIX`); its tag follows.
    pub subject_prefix: String,
    /// Which process this is, for people who see two of the same name.
    pub instance: String,
    /// How often it reports to the registry (`PYOCO_WORKER_HEARTBEAT_INTERVAL_SEC`).
    pub heartbeat_every: Duration,
    /// How often it reports while it has runs (`PYOCO_RUN_HEARTBEAT_INTERVAL_SEC`).
    pub run_heartbeat_every: Duration,
    /// A worker that was not heard for so long is taken for dead (`PYOCO_WORKER_DISCONNECT_TIMEOUT_SEC`).
    pub disconnect_after: Millis,
    /// How long running tasks may go on after the worker was told to stop; then they go to another worker.
    pub drain_for: Duration,
    /// Whether executions are traced whose caller traces nothing.
    pub traces_all: bool,
    /// How it installs wheels; `None`: it does not.
    pub wheels: Option<WheelOptions>,
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
            subject_prefix: "pyoco.work".to_owned(),
            instance: String::new(),
            heartbeat_every: Duration::from_secs(5),
            run_heartbeat_every: Duration::from_secs(1),
            disconnect_after: Millis(20_000),
            drain_for: Duration::from_secs(25),
            traces_all: false,
            wheels: None,
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
    pub(crate) drain: watch::Receiver<Drain>,
    pub(crate) registry: Registry,
    /// Its wheels, if it installs any.
    pub(crate) wheels: Option<Wheelhouse>,
    /// Answers to the queue that are on their way.
    pub(crate) answers: TaskTracker,
    /// Jobs that are being attended to.
    in_hand: Held<JobId>,
    /// Executions that are being driven.
    driven: Held<ExecutionId>,
}

/// What this process has in its hands.
type Held<T> = Arc<Mutex<HashSet<T>>>;

/// One of them, until it is dropped.
pub(crate) struct InHand<T: Eq + Hash> {
    one: T,
    all: Held<T>,
}

impl<T: Eq + Hash + Clone> InHand<T> {
    /// Takes it; nothing if it is in hand already.
    fn take(all: &Held<T>, one: &T) -> Option<Self> {
        let is_new = all.lock().unwrap_or_else(PoisonError::into_inner).insert(one.clone());
        is_new.then(|| Self { one: one.clone(), all: all.clone() })
    }
}

impl<T: Eq + Hash> Drop for InHand<T> {
    fn drop(&mut self) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.one);
    }
}

/// Whether the worker is to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Drain {
    /// It is not.
    No,
    /// Tasks that run may finish; nothing more is started.
    Finishing,
    /// Nothing is waited for any longer.
    Over,
}

impl Shared {
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns when every answer so far has reached the queue.
    async fn answered(&self) {
        self.answers.close();
        self.answers.wait().await;
        self.answers.reopen();
    }

    /// Notes that a job is attended to; nothing if it is already.
    pub(crate) fn take_in_hand(&self, job: &JobId) -> Option<InHand<JobId>> {
        InHand::take(&self.in_hand, job)
    }

    /// Notes that an execution is driven here.
    pub(crate) fn drives(&self, execution: &ExecutionId) -> Option<InHand<ExecutionId>> {
        InHand::take(&self.driven, execution)
    }

    /// Whether an execution is driven here.
    pub(crate) fn is_driving(&self, execution: &ExecutionId) -> bool {
        self.driven.lock().unwrap_or_else(PoisonError::into_inner).contains(execution)
    }

    pub(crate) fn drain(&self) -> Drain {
        *self.drain.borrow()
    }
}

/// A worker.
pub struct Worker {
    shared: Arc<Shared>,
    drain: watch::Sender<Drain>,
    /// Held by whoever runs jobs, so that closing can wait for them.
    busy: RwLock<()>,
    reporting: OnceLock<AbortOnDropHandle<()>>,
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
        let (drain, receiver) = watch::channel(Drain::No);
        let registry = Registry::default();
        let answers = TaskTracker::new();
        let (in_hand, driven) = (Held::default(), Held::default());
        let wheels = options.wheels.clone().map(|wheels| {
            let tags = options.tags.iter().map(|tag| tag.as_str().to_owned()).collect();
            Wheelhouse::new(wheels, tags, engine.store().clone(), clock.clone())
        });
        let shared = Shared {
            engine,
            options,
            flows,
            runtime,
            clock,
            env,
            drain: receiver,
            registry,
            wheels,
            answers,
            in_hand,
            driven,
        };
        Self { shared: Arc::new(shared), drain, busy: RwLock::new(()), reporting: OnceLock::new() }
    }

    /// What it was told.
    pub fn options(&self) -> &Options {
        &self.shared.options
    }

    /// From the first job it looks for on, a worker is in the registry.
    fn report(&self) {
        let shared = self.shared.clone();
        self.reporting.get_or_init(|| {
            AbortOnDropHandle::new(tokio::spawn(async move { shared.keep_reporting().await }))
        });
    }

    /// Looks at the shelf of wheels if it is time to, which it is at first. What a run that begins now would have installed.
    pub async fn sync_wheels(&self) -> Option<Arc<WheelFolder>> {
        let wheels = self.shared.wheels.as_ref()?;
        // Whoever is busy with an installation is in the registry too.
        self.report();
        self.shared.sync_wheels().await;
        wheels.current().folder
    }

    /// Waits for one job, up to `patience`, and sees it through. `None` when none came, or it was none.
    pub async fn run_once(&self, patience: Duration) -> Result<Option<ExecutionId>, StoreError> {
        let _busy = self.busy.read().await;
        self.report();
        let shared = &self.shared;
        if !shared.sync_wheels().await {
            return Ok(None);
        }
        if !shared.knows_wheels() {
            let _ = tokio::time::timeout(patience, shared.wheels_due()).await;
            if !shared.sync_wheels().await || !shared.knows_wheels() {
                return Ok(None);
            }
        }
        let mut taken = shared.take(1).await?;
        if taken.is_empty() {
            shared.engine.store().wait(&shared.options.tags, patience).await?;
            if !shared.sync_wheels().await {
                return Ok(None);
            }
            taken = shared.take(1).await?;
        }
        let Some(delivery) = taken.pop() else { return Ok(None) };
        let ran = shared.handle(delivery, Place::none()).await;
        shared.answered().await;
        Ok(ran)
    }

    /// Runs until it is told to stop. Failures of the store are waited out.
    pub async fn run(&self) {
        let _busy = self.busy.read().await;
        self.report();
        let shared = &self.shared;
        let mut drain = shared.drain.clone();
        let mut jobs: JoinSet<()> = JoinSet::new();
        let room = Room::new(shared.options.concurrency);
        while shared.drain() == Drain::No {
            // Before a job is taken, so that it begins with what is on the shelf now. What runs keeps what it began with.
            if !shared.sync_wheels().await {
                break;
            }
            let may_take = shared.knows_wheels();
            if room.free() > 0 && may_take {
                match shared.take(room.free()).await {
                    Ok(taken) => {
                        for delivery in taken {
                            let (shared, place) = (shared.clone(), room.place());
                            jobs.spawn(async move { drop(shared.handle(delivery, place).await) });
                        }
                    }
                    Err(error) => {
                        notice!(error, Notice::StoreUnavailable, worker_id = %shared.options.worker, reason = %error);
                        tokio::time::sleep(AFTER_FAILURE).await;
                    }
                }
            }
            let has_room = room.free() > 0;
            tokio::select! {
                biased;
                _ = drain.changed() => {}
                Some(_) = jobs.join_next() => {}
                _ = shared.engine.store().wait(&shared.options.tags, Duration::from_secs(1)), if may_take && has_room => {}
                () = room.freed(), if !has_room => {}
                () = shared.wheels_due() => {}
            }
        }
        // What is in hand is finished or given back; nothing is left behind.
        while jobs.join_next().await.is_some() {}
        shared.answered().await;
    }

    /// Tells the worker to stop: tasks that run may finish for a while, nothing more is started, and what is left goes
    /// back to the queue.
    pub fn stop(&self) {
        press(&self.drain, Drain::Finishing);
    }

    /// Tells the worker to let go at once: tasks that run are ended and go to another worker.
    pub fn abandon(&self) {
        press(&self.drain, Drain::Over);
    }

    /// Stops, waits for what is in hand, and says goodbye in the registry.
    pub async fn close(&self) {
        self.stop();
        let patience = tokio::time::sleep(self.shared.options.drain_for);
        let idle = self.busy.write();
        tokio::pin!(patience, idle);
        tokio::select! {
            biased;
            _alone = &mut idle => {}
            () = &mut patience => {
                self.abandon();
                drop(idle.await);
            }
        }
        if let Some(reporting) = self.reporting.get() {
            reporting.abort();
            self.shared.registry.stopped(self.shared.now());
            self.shared.report().await;
        }
    }
}

/// Goes further in stopping, never back.
fn press(drain: &watch::Sender<Drain>, to: Drain) {
    drain.send_if_modified(|now| {
        let is_further = to > *now;
        *now = to.max(*now);
        is_further
    });
}

impl Shared {
    /// Looks at the shelf of wheels if it is time to. A worker that is to stop does not wait for an installation; then this is
    /// `false`, and nothing is to be taken any more.
    async fn sync_wheels(&self) -> bool {
        let Some(wheels) = &self.wheels else { return true };
        let mut drain = self.drain.clone();
        tokio::select! {
            biased;
            _ = drain.wait_for(|now| *now > Drain::No) => false,
            is_news = wheels.sync_if_due(&self.options.worker) => {
                if is_news {
                    self.registry.has_news();
                }
                true
            }
        }
    }

    /// Whether it is known what a run begins with. A worker that could never install what is on the shelf takes nothing: a run that it
    /// let begin without would keep that for good.
    fn knows_wheels(&self) -> bool {
        self.wheels.as_ref().is_none_or(|wheels| wheels.current().is_known)
    }

    /// Returns when the shelf of wheels is to be looked at; never if it is none of this worker's business.
    async fn wheels_due(&self) {
        match &self.wheels {
            Some(wheels) => wheels.due().await,
            None => std::future::pending().await,
        }
    }

    async fn take(&self, most: usize) -> Result<Vec<pyoco_ports::Delivery>, StoreError> {
        let (options, asked) = (&self.options, tokio::time::Instant::now());
        let store = self.engine.store();
        let taken = store.take(&options.tags, &options.worker, most, options.lease, self.now()).await?;
        // What was on its way for longer than its lease is another's by now.
        Ok(if asked.elapsed() < self.patience() { taken } else { Vec::new() })
    }
}
