//! Pruning: what ended long ago is removed, a few executions at a time, so that those who submit meanwhile hardly notice.
//!
//! Any number of processes may prune. What one of them leaves half-way, because it dies or the store is away, still has its row: the
//! next one finds it, and its tombstone, and removes the rest.

use std::time::Duration;

use pyoco_core::digest::Digest;
use pyoco_core::ids::{ExecutionId, Version};
use pyoco_core::state::{Remembered, State};
use pyoco_core::time::Timestamp;
use pyoco_ports::{EndedFilter, EndedPlace, Removal, StoreError, Tombstone};
use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;

use crate::{Engine, EngineError};

/// So many executions go with one write.
const AT_ONCE: usize = 8;
/// After each write others have the store for this many times as long as it took, and for a moment at least.
const REST: u32 = 3;
const LEAST_REST: Duration = Duration::from_millis(2);
/// What ended in the last so many microseconds stays, whatever is asked: whoever submits the same again and has found no log is done
/// by then.
const JUST_NOW: i64 = 5_000_000;

/// What is to be removed.
#[derive(Debug, Clone)]
pub struct Prune {
    /// What ended before this instant.
    pub before: Timestamp,
    /// Also what no process of ours has created.
    pub is_foreign_too: bool,
    /// At most so many are looked at.
    pub most: usize,
    /// From behind this one on.
    pub after: Option<EndedPlace>,
}

/// What pruning did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pruned {
    /// So many executions are gone.
    pub removed: usize,
    /// So many stay: their logs cannot be read, or their rows were older than that.
    pub left: usize,
    /// Where to go on, if there may be more.
    pub next: Option<EndedPlace>,
}

/// What becomes of an execution that its row says may go.
enum Fate {
    Goes(Removal),
    /// It is put into the lists again as it is.
    Stays,
    /// Nobody can say what it is.
    Unknown,
}

impl Engine {
    /// Removes executions that ended before an instant, the longest ended first. Each leaves a tombstone.
    pub async fn prune(&self, prune: &Prune) -> Result<Pruned, EngineError> {
        let prune = &self.not_just_now(prune);
        // Two at once would wait for each other's executions.
        let _alone = self.pruning.lock().await;
        let mut pruned = Pruned::default();
        let mut looked_at = 0;
        let mut filter = filter(prune);
        while looked_at < prune.most {
            let wanted = AT_ONCE.min(prune.most - looked_at);
            let began = Instant::now();
            let places = self.store.ended_before(&filter, wanted).await?;
            looked_at += places.len();
            let is_last = places.len() < wanted;
            filter.after = places.last().cloned().or(filter.after);
            let before = pruned.removed;
            self.prune_some(prune, places, &mut pruned).await?;
            self.figures().pruned(pruned.removed.saturating_sub(before));
            pruned.next = filter.after.clone().filter(|_| !is_last);
            if is_last {
                break;
            }
            tokio::time::sleep((began.elapsed() * REST).max(LEAST_REST)).await;
        }
        Ok(pruned)
    }

    /// How many executions `prune` would look at, and where to go on. Nothing is removed.
    pub async fn count_prunable(&self, prune: &Prune) -> Result<Pruned, EngineError> {
        let places = self.store.ended_before(&filter(&self.not_just_now(prune)), prune.most).await?;
        let next = places.last().cloned().filter(|_| places.len() == prune.most);
        Ok(Pruned { removed: places.len(), left: 0, next })
    }

    /// Whether an execution was there once and was removed.
    pub async fn was_removed(&self, execution: &ExecutionId) -> Result<bool, StoreError> {
        Ok(self.store.tombstone(execution).await?.is_some())
    }

    fn not_just_now(&self, prune: &Prune) -> Prune {
        let just_now = Timestamp::from_micros(self.clock.now().as_micros().saturating_sub(JUST_NOW));
        Prune { before: prune.before.min(just_now), ..prune.clone() }
    }

    async fn prune_some(
        &self,
        prune: &Prune,
        places: Vec<EndedPlace>,
        pruned: &mut Pruned,
    ) -> Result<(), EngineError> {
        let mut removals = Vec::with_capacity(places.len());
        // In a store of this process alone nobody writes to them until they are gone. In a shared one others may, and the store finds
        // out; there nobody here is kept waiting for servers.
        let mut held: Vec<OwnedMutexGuard<Option<Box<State>>>> = Vec::new();
        for EndedPlace { execution, .. } in places {
            let mut slot = self.cache.entry(&execution).lock_owned().await;
            let state = match self.bring_up(&execution, slot.take()).await {
                Err(error) if error.is_hopeless() => None,
                state => Some(state?),
            };
            match self.fate(prune, &execution, state.as_deref()).await {
                Ok(Fate::Goes(removal)) => removals.push(removal),
                Ok(Fate::Stays) => {
                    // Its row says less than its log.
                    if let Some(state) = &state {
                        self.show_state(state).await?;
                    }
                    pruned.left += 1;
                }
                Ok(Fate::Unknown) => pruned.left += 1,
                // One that nobody can remove is named, and keeps nobody from the others.
                Err(error) if error.is_hopeless() => {
                    tracing::warn!(run_id = %execution, reason = %error, "a run that ended long ago cannot be removed");
                    pruned.left += 1;
                }
                Err(error) => return Err(error),
            }
            if self.store.is_exclusive() {
                held.push(slot);
            }
        }
        // Those that are not among them others have removed, or written to: next time it shows.
        let removed = self.remove_all(removals, pruned).await?;
        pruned.removed += removed.len();
        drop(held);
        for execution in &removed {
            self.forget(execution);
        }
        Ok(())
    }

    /// Removes them together, or one by one where one of them cannot be removed at all.
    async fn remove_all(
        &self,
        removals: Vec<Removal>,
        pruned: &mut Pruned,
    ) -> Result<Vec<ExecutionId>, StoreError> {
        match self.store.remove(removals.clone()).await {
            Err(error) if !error.kind.is_retryable() => {}
            removed => return removed,
        }
        let mut gone = Vec::new();
        for removal in removals {
            let execution = removal.tombstone.execution.clone();
            match self.store.remove(vec![removal]).await {
                Ok(removed) => gone.extend(removed),
                Err(error) if error.kind.is_retryable() => return Err(error),
                Err(error) => {
                    tracing::warn!(run_id = %execution, reason = %error, "a run that ended long ago cannot be removed");
                    pruned.left += 1;
                }
            }
        }
        Ok(gone)
    }

    /// The log decides; the row is only how it was found.
    async fn fate(
        &self,
        prune: &Prune,
        execution: &ExecutionId,
        state: Option<&State>,
    ) -> Result<Fate, EngineError> {
        let state = match state {
            Some(state) if state.origin.is_some() => state,
            // Somebody has removed its log and died; or it never had one; or something is wrong, and the auditor says what.
            state => {
                let tombstone = self.store.tombstone(execution).await?;
                let is_rest = tombstone.is_some();
                let row = self.store.get(execution).await?;
                let is_foreign =
                    prune.is_foreign_too && state.is_some() && row.as_ref().is_some_and(|row| row.is_foreign);
                // A log that is there and cannot be read ends where its row says.
                let end = row.filter(|_| state.is_none()).map_or(Version(0), |row| row.version);
                let tombstone = tombstone.or_else(|| is_foreign.then(|| self.tombstone(execution, None)));
                return Ok(match tombstone {
                    Some(tombstone) if is_rest || is_foreign => {
                        Fate::Goes(Removal { tombstone, version: end })
                    }
                    Some(_) | None => Fate::Unknown,
                });
            }
        };
        let creation = creation(state);
        let may_go = state.phase.is_terminal()
            && state.archived_at.is_none()
            && state.ended_at.is_some_and(|at| at < prune.before)
            && (creation.is_some() || prune.is_foreign_too);
        if !may_go {
            return Ok(Fate::Stays);
        }
        // Where nobody else knows the name there is nothing to compare.
        let digest = creation.map(|creation| creation.digest).filter(|digest| *digest != Digest::default());
        let tombstone = self.tombstone(execution, digest);
        Ok(Fate::Goes(Removal { tombstone, version: state.version }))
    }

    fn tombstone(&self, execution: &ExecutionId, digest: Option<Digest>) -> Tombstone {
        Tombstone { execution: execution.clone(), at: self.clock.now(), digest }
    }

    /// An execution is not there any more: what this process knew of it is worth nothing, and whoever watches it is told to look.
    pub(crate) fn forget(&self, execution: &ExecutionId) {
        self.cache.forget(execution);
        self.doubts.remove(execution);
        self.waiting.remove(execution);
        self.lines.forget(execution);
        self.hub.gone(execution);
    }
}

fn filter(prune: &Prune) -> EndedFilter {
    EndedFilter { before: prune.before, is_foreign_too: prune.is_foreign_too, after: prune.after.clone() }
}

/// How an execution was submitted; `None` if another implementation did, and this log only begins with what that one said.
pub(crate) fn creation(state: &State) -> Option<Remembered> {
    state.commands.values().find(|command| command.record == Version(1)).copied()
}
