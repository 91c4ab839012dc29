//! The audit trail of one process: what was done goes to the store in batches, and nobody who does something waits for it.
//!
//! What an execution was told stands in its own log, which is the truth; so an entry may come a moment later. Whoever needs it to be
//! there first writes it through. Who did what is the gateway's and the server's to say.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyoco_core::time::Timestamp;
use pyoco_figures::Figures;
use pyoco_ports::{AuditEntry, AuditTrail, StoreError};
use tokio::time::Instant;

use crate::Ids;

/// What is noted is written so long after it at the latest, together with what was noted since.
const PAUSE: Duration = Duration::from_millis(50);
/// So many entries are written at once.
const BATCH: usize = 256;
/// So many may wait while the store is away: with a kilobyte for each, some megabytes.
const MOST: usize = 16_384;
/// What is counted is written so seldom.
const COUNTED_FOR: Duration = Duration::from_secs(1);
/// A store that is away is asked again so often,
const TRY_AGAIN: Duration = Duration::from_millis(500);
/// and for so long by a process that ends.
const LAST_PATIENCE: Duration = Duration::from_secs(5);

/// Writes the entries of one process. Clones share it.
#[derive(Clone)]
pub struct Trail {
    shared: Arc<Shared>,
}

struct Shared {
    store: Arc<dyn AuditTrail>,
    ids: Arc<dyn Ids>,
    waiting: Mutex<Waiting>,
    /// One writes at a time, so that entries stay in their order.
    turn: tokio::sync::Mutex<()>,
    figures: Figures,
}

#[derive(Default)]
struct Waiting {
    entries: VecDeque<AuditEntry>,
    counted: Option<Counted>,
    /// So many of the first were given to the store together, and it is not known to have them: they are given to it again as they were, so
    /// that it can tell that they are the same.
    tried: usize,
    /// Somebody will write it.
    is_seen_to: bool,
    /// How many were dropped since somebody was told.
    unsaid: u64,
}

impl Waiting {
    /// The first ones need not be written any more.
    fn done(&mut self, count: usize) {
        self.entries.drain(..count);
        self.tried = 0;
    }
}

/// What comes in floods.
struct Counted {
    entry: AuditEntry,
    count: u64,
    due: Instant,
}

impl std::fmt::Debug for Trail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Trail")
    }
}

impl Trail {
    /// Writes to a store.
    pub fn new(store: Arc<dyn AuditTrail>, ids: Arc<dyn Ids>, figures: Figures) -> Self {
        let turn = tokio::sync::Mutex::default();
        let shared = Shared { store, ids, waiting: Mutex::default(), turn, figures };
        Self { shared: Arc::new(shared) }
    }

    /// A name for an entry of that instant, used once. The instant comes first: stores are quicker with names that rise.
    pub fn entry_id(&self, at: Timestamp) -> String {
        format!("{:012x}-{}", at.as_micros() / 1_000, self.shared.ids.event())
    }

    /// Notes an entry, to be written soon.
    pub fn note(&self, entry: AuditEntry) {
        let mut waiting = self.waiting();
        self.push(&mut waiting, entry);
        self.see_to(waiting);
    }

    /// Notes something that may come in floods: at most one entry a second says how often it did. `entry` is given the number so far.
    pub fn count(&self, entry: impl FnOnce(u64) -> AuditEntry) {
        let mut waiting = self.waiting();
        let (count, due) = match &waiting.counted {
            Some(counted) => (counted.count.saturating_add(1), counted.due),
            None => (1, Instant::now() + COUNTED_FOR),
        };
        waiting.counted = Some(Counted { entry: entry(count), count, due });
        self.see_to(waiting);
    }

    /// Writes an entry and waits until it is. One that cannot be written is noted, to be written as soon as the store is back.
    pub async fn write(&self, entry: AuditEntry) -> Result<(), StoreError> {
        let written = self.shared.store.write_audit(vec![entry.clone()]).await;
        if written.as_ref().is_err_and(|error| error.kind.is_retryable()) {
            self.note(entry);
        }
        written
    }

    /// Writes everything that was noted. Good before the process ends; what a store that is away does not take is lost then.
    pub async fn flush(&self) {
        let over = Instant::now() + LAST_PATIENCE;
        loop {
            let Err(error) = self.write_all(true).await else { return };
            if Instant::now() + TRY_AGAIN > over {
                let _turn = self.shared.turn.lock().await;
                let mut waiting = self.waiting();
                let lost = waiting.entries.len();
                waiting.done(lost);
                drop(waiting);
                self.shared.figures.audit_dropped(lost);
                tracing::error!(lost, "entries of the audit trail cannot be written: {error}");
                return;
            }
            tokio::time::sleep(TRY_AGAIN).await;
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        // Nothing in here can be left half done.
        self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an entry, if there is room. Those that came first say most about how it began.
    fn push(&self, waiting: &mut Waiting, entry: AuditEntry) {
        if waiting.entries.len() < MOST {
            waiting.entries.push_back(entry);
        } else {
            self.shared.figures.audit_dropped(1);
            if waiting.unsaid == 0 {
                tracing::error!("the audit trail takes nothing and too much waits: entries are dropped");
            }
            waiting.unsaid = waiting.unsaid.saturating_add(1);
        }
    }

    /// Sees to it that what waits is written.
    fn see_to(&self, mut waiting: MutexGuard<'_, Waiting>) {
        if waiting.is_seen_to {
            return;
        }
        // Without a runtime it waits for whoever flushes: the process is ending.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        waiting.is_seen_to = true;
        drop(waiting);
        runtime.spawn(self.clone().keep_writing());
    }

    /// Writes until nothing waits.
    async fn keep_writing(self) {
        let mut pause = PAUSE;
        loop {
            tokio::time::sleep(pause).await;
            pause = match self.write_all(false).await {
                Ok(()) => PAUSE,
                Err(error) => {
                    tracing::debug!("the audit trail waits: {error}");
                    TRY_AGAIN
                }
            };
            let mut waiting = self.waiting();
            if waiting.entries.is_empty() && waiting.counted.is_none() {
                waiting.is_seen_to = false;
                return;
            }
        }
    }

    /// Writes what waits; what is still being counted too, if this is the last chance. An entry leaves its place when it is written.
    async fn write_all(&self, is_last: bool) -> Result<(), StoreError> {
        let _turn = self.shared.turn.lock().await;
        self.end_count(is_last);
        loop {
            let batch = self.batch();
            if batch.is_empty() {
                return Ok(());
            }
            let count = batch.len();
            match self.shared.store.write_audit(batch).await {
                Ok(()) => self.written(count),
                Err(error) if error.kind.is_retryable() => return Err(error),
                Err(error) => {
                    tracing::error!(lost = count, "entries of the audit trail cannot be written: {error}");
                    self.waiting().done(count);
                    self.shared.figures.audit_dropped(count);
                }
            }
        }
    }

    /// What is written next: what was tried last, if it was in vain.
    fn batch(&self) -> Vec<AuditEntry> {
        let mut waiting = self.waiting();
        let most = if waiting.tried > 0 { waiting.tried } else { BATCH };
        let batch: Vec<AuditEntry> = waiting.entries.iter().take(most).cloned().collect();
        waiting.tried = batch.len();
        batch
    }

    /// What was counted for long enough is an entry like any other.
    fn end_count(&self, is_last: bool) {
        let mut waiting = self.waiting();
        if let Some(counted) = waiting.counted.take_if(|counted| is_last || Instant::now() >= counted.due) {
            self.push(&mut waiting, counted.entry);
        }
    }

    fn written(&self, count: usize) {
        let mut waiting = self.waiting();
        waiting.done(count);
        let dropped = std::mem::take(&mut waiting.unsaid);
        if dropped > 0 {
            tracing::warn!(dropped, "the audit trail is written again; entries of a while are missing");
        }
    }
}
