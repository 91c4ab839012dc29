//! The log of an execution that people read: what its tasks write, and what the engine says about them.
//!
//! Here is who writes it. `said` makes lines of events, `read` reads pages and text, `follow` tells what is written as it is
//! written. The log of events is something else: it decides, this one only tells.

mod follow;
mod followed;
mod read;
mod said;

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use pyoco_core::ids::ExecutionId;
use pyoco_core::record::Record;
use pyoco_core::state::State;
use pyoco_figures::Figures;
use pyoco_ports::{LogEnd, LogLine, LogTerms, StoreError, TaskLogs};

pub use follow::LogFollower;
pub use followed::NumberedLine;
pub use read::{LineFilter, LogPage};

use followed::Followed;

/// What the engine says is stored so long after it was said at the latest, together with what was said since: most tasks are over
/// by then, and cost one message. Whoever follows the log is not kept waiting.
const PAUSE: Duration = Duration::from_millis(20);
/// So many logs are written side by side.
const SIDE_BY_SIDE: usize = 32;
/// Those who write to the same log wait for each other; so do those of few others.
const TURNS: usize = 256;
/// A store that is away is asked again for so long, and so often. Whoever writes waits meanwhile, and a worker that hears nothing of the
/// store for longer gives up its run anyway.
const PATIENCE: Duration = Duration::from_secs(60);
const TRY_AGAIN: Duration = Duration::from_millis(100);

/// Writes the logs of one process. Clones share it.
#[derive(Clone)]
pub struct Lines {
    shared: Arc<Shared>,
}

struct Shared {
    store: Arc<dyn TaskLogs>,
    max_bytes: u64,
    figures: Figures,
    said: Mutex<Said>,
    turns: Vec<tokio::sync::Mutex<()>>,
    turn_of: RandomState,
    /// Logs that somebody follows, and how many do.
    followed: Mutex<HashMap<ExecutionId, (Arc<Followed>, usize)>>,
}

/// What was said and is not stored yet.
#[derive(Default)]
struct Said {
    waiting: HashMap<ExecutionId, Waiting>,
    /// How many lines of a log could not be stored: the next one that can be says so.
    lost: HashMap<ExecutionId, usize>,
    /// Somebody will store it.
    is_seen_to: bool,
}

#[derive(Default)]
struct Waiting {
    lines: Vec<LogLine>,
    closes: bool,
}

impl std::fmt::Debug for Lines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Lines")
    }
}

impl Lines {
    /// Writes to a store, at most so many bytes of text for each execution.
    pub fn new(store: Arc<dyn TaskLogs>, max_bytes: u64) -> Self {
        Self::counted(store, max_bytes, Figures::default())
    }

    /// The same, and what is written is counted.
    pub(crate) fn counted(store: Arc<dyn TaskLogs>, max_bytes: u64, figures: Figures) -> Self {
        let shared = Shared {
            store,
            max_bytes,
            figures,
            said: Mutex::default(),
            turns: std::iter::repeat_with(tokio::sync::Mutex::default).take(TURNS).collect(),
            turn_of: RandomState::new(),
            followed: Mutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Stores lines of a task behind everything that was said about its execution before. When this returns they are stored, or
    /// the log takes no more: its end says so. Whoever writes faster than the store waits here.
    pub async fn write(&self, execution: &ExecutionId, lines: Vec<LogLine>) -> Result<LogEnd, StoreError> {
        let turn = self.turn(execution).await;
        let waiting = self.take(execution);
        if waiting.closes {
            self.store_lines(execution, waiting).await?;
            // Whoever still speaks is not heard; the store says where the log ends.
            let late = Waiting { lines, closes: false };
            return self.store_lines(execution, late).await;
        }
        let mut all = waiting.lines;
        all.extend(lines);
        let end = self.store_lines(execution, Waiting { lines: all, closes: false }).await;
        drop(turn);
        end
    }

    /// Stores everything that was said, also what somebody is storing now. Good before the process ends.
    pub async fn flush(&self) {
        self.store_said().await;
        // Those who took something before are waited for.
        for turn in &self.shared.turns {
            drop(turn.lock().await);
        }
    }

    async fn store_said(&self) {
        let executions: Vec<ExecutionId> = self.said().waiting.keys().cloned().collect();
        let writes = executions.iter().map(|execution| self.write_said(execution));
        futures_util::stream::iter(writes).for_each_concurrent(SIDE_BY_SIDE, |write| write).await;
    }

    /// What an appended record says about its execution is told to those who read logs. It is not waited for: when the process dies
    /// before it is stored, the log of events has it.
    pub(crate) fn appended(&self, state: &State, record: &Record) {
        let (lines, closes) = said::about(state, record);
        if !lines.is_empty() || closes {
            self.say(&state.id, lines, closes);
        }
    }

    /// An execution has ended, and nobody may have said so.
    pub(crate) fn ended(&self, state: &State) {
        self.say(&state.id, said::end(state).into_iter().collect(), true);
    }

    fn say(&self, execution: &ExecutionId, lines: Vec<LogLine>, closes: bool) {
        let mut said = self.said();
        let waiting = said.waiting.entry(execution.clone()).or_default();
        if !waiting.closes {
            waiting.lines.extend(lines);
            waiting.closes = closes;
        }
        let is_followed = self.is_followed(execution);
        if is_followed || !std::mem::replace(&mut said.is_seen_to, true) {
            let (this, execution) = (self.clone(), is_followed.then(|| execution.clone()));
            tokio::spawn(async move {
                match execution {
                    Some(execution) => this.write_said(&execution).await,
                    None => {
                        tokio::time::sleep(PAUSE).await;
                        this.said().is_seen_to = false;
                        this.store_said().await;
                    }
                }
            });
        }
    }

    async fn write_said(&self, execution: &ExecutionId) {
        let _turn = self.turn(execution).await;
        let waiting = self.take(execution);
        if !waiting.lines.is_empty() || waiting.closes {
            // The store was asked often enough, and the operator was told.
            let _ = self.store_lines(execution, waiting).await;
        }
    }

    async fn store_lines(&self, execution: &ExecutionId, waiting: Waiting) -> Result<LogEnd, StoreError> {
        let Waiting { mut lines, closes } = waiting;
        let count = lines.len();
        let lost = self.said().lost.remove(execution).unwrap_or(0);
        if lost > 0 {
            lines.splice(..0, lines.first().map(|first| said::lost(lost, first.at)));
        }
        let terms = LogTerms { max_bytes: self.shared.max_bytes, closes };
        let over = tokio::time::Instant::now() + PATIENCE;
        loop {
            match self.shared.store.write_lines(execution, lines.clone(), terms).await {
                Ok(written) => {
                    let end = written.end;
                    let kept = written.lines.len();
                    self.shared.figures.lines_written(kept);
                    self.shared.figures.lines_dropped(lines.len().saturating_sub(kept));
                    if let Some(followed) = self.followed(execution) {
                        followed.written(written);
                    }
                    return Ok(end);
                }
                Err(error) if error.kind.is_retryable() && tokio::time::Instant::now() < over => {
                    tokio::time::sleep(TRY_AGAIN).await;
                }
                Err(error) => {
                    // What runs is worth more than what is said about it.
                    self.shared.figures.lines_dropped(count);
                    let lost = lost + count;
                    tracing::error!(run_id = %execution, lost, "lines of a log cannot be stored: {error}");
                    self.said().lost.insert(execution.clone(), lost);
                    return Err(error);
                }
            }
        }
    }

    /// An execution is not there any more, and neither is its log.
    pub(crate) fn forget(&self, execution: &ExecutionId) {
        let mut said = self.said();
        said.waiting.remove(execution);
        said.lost.remove(execution);
    }

    fn take(&self, execution: &ExecutionId) -> Waiting {
        self.said().waiting.remove(execution).unwrap_or_default()
    }

    fn said(&self) -> std::sync::MutexGuard<'_, Said> {
        self.shared.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn turn(&self, execution: &ExecutionId) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        let place = self.shared.turn_of.hash_one(execution) % TURNS as u64;
        match self.shared.turns.get(usize::try_from(place).unwrap_or(0)) {
            Some(turn) => Some(turn.lock().await),
            None => None,
        }
    }

    fn is_followed(&self, execution: &ExecutionId) -> bool {
        self.followed(execution).is_some()
    }

    /// The log as it is followed in this process, if somebody follows it.
    fn followed(&self, execution: &ExecutionId) -> Option<Arc<Followed>> {
        let followed = self.shared.followed.lock().unwrap_or_else(PoisonError::into_inner);
        followed.get(execution).map(|(followed, _)| followed.clone())
    }
}

impl crate::Engine {
    /// Who writes the logs of this process.
    pub const fn lines(&self) -> &Lines {
        &self.lines
    }
}
