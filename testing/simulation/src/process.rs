//! Gateways and workers: how they are started, die, and come back.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyoco_core::ids::{Tag, WorkerId};
use pyoco_core::time::Millis;
use pyoco_engine::{Engine, Settings};
use pyoco_figures::Figures;
use pyoco_worker::{Options, Worker};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::link::Link;
use crate::scenario::Scenario;
use crate::tasks::{Plans, Tasks};
use crate::world::World;

const GATEWAYS: [&str; 2] = ["g1", "g2"];
const WORKERS: [&str; 2] = ["w1", "w2"];
/// As the server does it, with shorter pauses between comparisons.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
const COMPARE_EVERY: u32 = 4;

/// Nobody reads them here; one for all is cheap.
static FIGURES: LazyLock<Figures> = LazyLock::new(Figures::default);

/// The processes of a deployment.
pub(crate) struct Site {
    pub(crate) world: Arc<World>,
    scenario: Scenario,
    plans: Arc<Plans>,
    /// How far the clock of each process is ahead: first the gateways, then the workers.
    clocks: [Arc<AtomicI64>; 4],
    gateways: [Mutex<Option<Gateway>>; 2],
    workers: [Mutex<Option<AtWork>>; 2],
    started: AtomicU32,
}

/// A gateway that is up.
struct Gateway {
    engine: Engine,
    link: Arc<Link>,
    dies: CancellationToken,
    _sweeping: AbortOnDropHandle<()>,
}

/// A worker that is up.
struct AtWork {
    worker: Arc<Worker>,
    link: Arc<Link>,
    running: AbortOnDropHandle<()>,
}

impl Site {
    pub(crate) fn new(world: &Arc<World>, scenario: Scenario) -> Arc<Self> {
        let plans = Arc::new(Plans::of(&scenario));
        Arc::new(Self {
            world: world.clone(),
            scenario,
            plans,
            clocks: Default::default(),
            gateways: Default::default(),
            workers: Default::default(),
            started: AtomicU32::new(0),
        })
    }

    pub(crate) const fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    fn link(&self, name: &str) -> Arc<Link> {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let process: Arc<str> = format!("{name}.{number}").into();
        self.world.note(format_args!("{process} starts"));
        Link::new(&self.world, &process)
    }

    fn engine(&self, link: &Arc<Link>, clock: usize) -> Engine {
        let settings = Settings {
            cancel_grace: millis(self.scenario.cancel_grace),
            figures: FIGURES.clone(),
            ..Settings::default()
        };
        let clock = self.world.clock(&self.clocks[clock]);
        Engine::new(link.clone(), clock, self.world.clone(), settings)
    }

    /// Starts every process that is not up.
    pub(crate) fn start_all(&self) {
        for number in 0..2 {
            self.start_gateway(number);
            self.start_worker(number);
        }
    }

    pub(crate) fn start_gateway(&self, number: usize) {
        let mut slot = lock(&self.gateways[number]);
        if slot.is_none() {
            let link = self.link(GATEWAYS[number]);
            let engine = self.engine(&link, number);
            let sweeping = AbortOnDropHandle::new(tokio::spawn(keep_sweeping(engine.clone())));
            *slot = Some(Gateway { engine, link, dies: CancellationToken::new(), _sweeping: sweeping });
        }
    }

    pub(crate) fn start_worker(&self, number: usize) {
        let mut slot = lock(&self.workers[number]);
        if slot.is_none() {
            let link = self.link(WORKERS[number]);
            let engine = self.engine(&link, 2 + number);
            let clock = self.world.clock(&self.clocks[2 + number]);
            let tasks = Tasks { world: self.world.clone(), process: link.process.clone() };
            let (options, plans) = (self.options(number), self.plans.clone());
            let worker = Worker::new(engine, clock, options, plans, Arc::new(tasks), HashMap::new());
            let worker = Arc::new(worker);
            let running = worker.clone();
            let running = AbortOnDropHandle::new(tokio::spawn(async move { running.run().await }));
            *slot = Some(AtWork { worker, link, running });
        }
    }

    fn options(&self, number: usize) -> Options {
        let worker = WorkerId::new(WORKERS[number]).unwrap();
        Options {
            concurrency: self.scenario.concurrency,
            task_slots: self.scenario.task_slots,
            lease: Millis(4_000),
            extend_every: Duration::from_secs(1),
            cancel_grace: millis(self.scenario.cancel_grace),
            park_after: Millis(300),
            heartbeat_every: Duration::from_secs(2),
            run_heartbeat_every: Duration::from_secs(1),
            disconnect_after: Millis(6_000),
            drain_for: Duration::from_millis(1_500),
            ..Options::new(worker, vec![Tag::default()])
        }
    }

    /// A gateway and how to hear that it died; none while it is down.
    pub(crate) fn gateway(&self, number: usize) -> Option<(Engine, CancellationToken)> {
        lock(&self.gateways[number]).as_ref().map(|up| (up.engine.clone(), up.dies.clone()))
    }

    pub(crate) fn kill_gateway(&self, number: usize) {
        if let Some(gateway) = lock(&self.gateways[number]).take() {
            self.world.note(format_args!("{} dies", gateway.link.process));
            self.world.witness().seen.deaths += 1;
            gateway.link.cut();
            gateway.dies.cancel();
        }
    }

    pub(crate) fn kill_worker(&self, number: usize) {
        if let Some(at_work) = lock(&self.workers[number]).take() {
            self.world.note(format_args!("{} dies", at_work.link.process));
            self.world.witness().seen.deaths += 1;
            at_work.link.cut();
        }
    }

    /// Tells a worker to stop and waits until it has.
    pub(crate) async fn stop_worker(&self, number: usize) {
        let Some(at_work) = lock(&self.workers[number]).take() else { return };
        self.world.note(format_args!("{} is to stop", at_work.link.process));
        self.world.witness().seen.stops += 1;
        at_work.worker.close().await;
        // It returns once nothing is in hand.
        let _ = at_work.running.await;
        self.world.note(format_args!("{} has stopped", at_work.link.process));
        at_work.link.cut();
    }

    pub(crate) fn jump(&self, process: usize, millis: i64) {
        self.world.note(format_args!("the clock of process {process} jumps by {millis} ms"));
        self.world.witness().seen.clock_jumps += 1;
        self.clocks[process].fetch_add(millis, Ordering::Relaxed);
    }

    /// All clocks are right again.
    pub(crate) fn set_clocks(&self) {
        for clock in &self.clocks {
            clock.store(0, Ordering::Relaxed);
        }
    }
}

/// What a server does beside answering.
async fn keep_sweeping(engine: Engine) {
    for round in 1_u32.. {
        tokio::time::sleep(SWEEP_EVERY).await;
        // What fails is tried again by the next.
        let _ = sweep(&engine, round.is_multiple_of(COMPARE_EVERY)).await;
    }
}

async fn sweep(engine: &Engine, compares: bool) -> Result<(), pyoco_engine::EngineError> {
    let tags = if compares { engine.store().runnable_tags().await? } else { Vec::new() };
    engine.sweep(&tags, 100).await?;
    if compares {
        engine.succeed_the_gone(100).await?;
        engine.finish_the_begun().await?;
    }
    Ok(())
}

fn millis(duration: Duration) -> Millis {
    Millis(u64::try_from(duration.as_millis()).unwrap())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
