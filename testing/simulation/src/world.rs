//! What all processes share: the store, the weather, the time, and what is known about all of it.

use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyoco_core::ids::{EventId, ExecutionId, Tag, Version};
use pyoco_core::time::Timestamp;
use pyoco_engine::{Clock, Ids};
use pyoco_ports::{DeadLetterRecord, DeadLetters as _, Delivery, Heard, WorkQueue as _};
use pyoco_store_memory::MemoryStore;
use rand::Rng as _;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::scenario::Scenario;
use crate::shown::Shown;
use crate::trace::Trace;
use crate::weather::{Fate, Lie, Weather};
use crate::witness::{Log, Witness, run_of};

/// What all processes share.
pub(crate) struct World {
    pub(crate) store: MemoryStore,
    pub(crate) is_shared: bool,
    pub(crate) lie: Option<Lie>,
    pub(crate) seed: u64,
    begun: Instant,
    weather: Mutex<Weather>,
    rng: Mutex<ChaCha8Rng>,
    trace: Mutex<Trace>,
    witness: Mutex<Witness>,
    shown: Mutex<Shown>,
    listeners: Mutex<Vec<(ExecutionId, mpsc::UnboundedSender<Heard>)>>,
    /// Jobs that were taken and not answered yet.
    in_hand: Mutex<Vec<Delivery>>,
    names: AtomicU64,
}

impl World {
    pub(crate) fn new(seed: u64, scenario: &Scenario, lie: Option<Lie>, keeps_lines: bool) -> Self {
        Self {
            store: MemoryStore::new(),
            is_shared: scenario.is_shared,
            lie,
            seed,
            begun: Instant::now(),
            weather: Mutex::new(scenario.weather),
            // Other numbers than those of the scenario.
            rng: Mutex::new(ChaCha8Rng::seed_from_u64(seed ^ 0x5eed_5eed_5eed_5eed)),
            trace: Mutex::new(Trace::new(keeps_lines)),
            witness: Mutex::default(),
            shown: Mutex::default(),
            listeners: Mutex::default(),
            in_hand: Mutex::default(),
            names: AtomicU64::new(1),
        }
    }

    pub(crate) fn witness(&self) -> MutexGuard<'_, Witness> {
        lock(&self.witness)
    }

    pub(crate) fn trace(&self) -> MutexGuard<'_, Trace> {
        lock(&self.trace)
    }

    /// Notes what happened now.
    pub(crate) fn note(&self, what: fmt::Arguments<'_>) {
        self.trace().note(self.begun.elapsed().as_millis(), what);
    }

    /// A promise was broken, now.
    pub(crate) fn broken(&self, promise: impl Into<String>) {
        let promise = promise.into();
        self.note(format_args!("BROKEN {promise}"));
        self.witness().broken.push(promise);
    }

    /// The storm is over.
    pub(crate) fn calm_down(&self) {
        *lock(&self.weather) = Weather::CALM;
    }

    pub(crate) fn fate(&self, is_append: bool) -> Fate {
        let weather = *lock(&self.weather);
        weather.fate(&mut lock(&self.rng), is_append)
    }

    /// Whether a kind of trouble strikes now.
    pub(crate) fn strikes(&self, share: impl FnOnce(&Weather) -> u32) -> bool {
        let share = share(&lock(&self.weather));
        Weather::strikes(share, &mut lock(&self.rng))
    }

    /// Whether the store lies like this, this time.
    pub(crate) fn lies(&self, lie: Lie) -> bool {
        self.lie == Some(lie) && Weather::strikes(150, &mut lock(&self.rng))
    }

    /// So many milliseconds, or fewer.
    pub(crate) fn millis(&self, most: u64) -> std::time::Duration {
        std::time::Duration::from_millis(lock(&self.rng).random_range(0..most))
    }

    /// What a shared store shows.
    pub(crate) fn shown(&self) -> MutexGuard<'_, Shown> {
        lock(&self.shown)
    }

    pub(crate) fn published(&self, execution: &ExecutionId) -> Option<(Version, Value)> {
        self.shown().published(execution)
    }

    /// The runs that dead letters tell of.
    pub(crate) async fn letters(&self) -> Vec<ExecutionId> {
        let letters = self.store.letter_page(None, usize::MAX).await.unwrap().letters;
        let run = |letter: &DeadLetterRecord| run_of(&letter.body);
        letters.iter().filter_map(run).collect()
    }

    pub(crate) fn listen(&self, execution: &ExecutionId) -> mpsc::UnboundedReceiver<Heard> {
        let (sender, receiver) = mpsc::unbounded_channel();
        lock(&self.listeners).push((execution.clone(), sender));
        receiver
    }

    /// Tells those who listen, unless they do not hear it.
    pub(crate) fn tell(&self, heard: &Heard) {
        let mut listeners = lock(&self.listeners);
        listeners.retain(|(_, listener)| !listener.is_closed());
        for (execution, listener) in listeners.iter() {
            if *execution == heard.execution && !self.strikes(|weather| weather.unheard) {
                let _ = listener.send(heard.clone());
            }
        }
    }

    pub(crate) fn taken(&self, delivery: &Delivery) {
        lock(&self.in_hand).push(delivery.clone());
    }

    pub(crate) fn answered(&self, delivery: &Delivery) {
        lock(&self.in_hand).retain(|taken| taken.id != delivery.id);
    }

    /// Whoever held a run to its end is done with its job when everybody can see that end. One that was taken back is seen by nobody.
    pub(crate) fn is_seen(&self, process: &Arc<str>, delivery: &Delivery) {
        let Some(execution) = run_of(&delivery.body).filter(|_| self.is_shared) else { return };
        let is_over = |log: &Log| {
            let is_theirs = log.held_to_the_end.as_ref() == Some(process);
            is_theirs && log.state.phase.is_terminal() && !log.state.hidden
        };
        if !self.witness().logs.get(&execution).is_some_and(is_over) {
            return;
        }
        let shown = self.published(&execution).map(|(_, body)| body["status"].clone());
        let is_end = |status: &Value| matches!(status.as_str(), Some("COMPLETED" | "FAILED" | "CANCELLED"));
        if !shown.as_ref().is_some_and(is_end) {
            self.broken(format!("{execution}: job {} was acknowledged, and {shown:?} is shown", delivery.id));
        }
    }

    /// The queue loses a job that somebody has in hand, the one that was taken first.
    pub(crate) async fn lose_one_in_hand(&self) {
        let lost = lock(&self.in_hand).first().cloned();
        if let Some(lost) = lost {
            self.note(format_args!("the queue loses job {} in hand", lost.id));
            self.witness().seen.jobs_lost += 1;
            self.answered(&lost);
            self.store.ack(&lost).await.unwrap();
        }
    }

    /// The queue loses every job that nobody has in hand.
    pub(crate) async fn lose_waiting(&self) {
        for execution in self.store.queued(&Tag::default()).await.unwrap() {
            self.note(format_args!("the queue loses the waiting jobs of {execution}"));
            self.witness().seen.jobs_lost += 1;
            self.store.drop_waiting(&execution).await.unwrap();
        }
    }

    /// The clock of a process.
    pub(crate) fn clock(&self, ahead: &Arc<AtomicI64>) -> Arc<dyn Clock> {
        Arc::new(Hands { begun: self.begun, ahead: ahead.clone() })
    }
}

impl Ids for World {
    fn event(&self) -> EventId {
        EventId::new(&format!("ev-{}", self.names.fetch_add(1, Ordering::Relaxed))).unwrap()
    }

    fn execution(&self) -> ExecutionId {
        ExecutionId::new(&format!("e-{}", self.names.fetch_add(1, Ordering::Relaxed))).unwrap()
    }
}

/// The virtual time, as the clock of one process shows it.
struct Hands {
    begun: Instant,
    /// Milliseconds; behind if negative.
    ahead: Arc<AtomicI64>,
}

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        let elapsed = i64::try_from(self.begun.elapsed().as_micros()).unwrap();
        let ahead = self.ahead.load(Ordering::Relaxed) * 1_000;
        Timestamp::from_micros(1_700_000_000_000_000 + elapsed + ahead)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
