//! Folded states, so that a command on a known execution costs one append and no read.
//!
//! The commands of one execution queue up behind its entry. A state that has seen a decision whose append did not succeed
//! is worth nothing any more and is dropped.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use pyoco_core::ids::ExecutionId;
use pyoco_core::state::State;

/// Most executions that are kept folded.
const MOST: usize = 10_000;

/// One execution: locked while a command on it is decided and appended.
pub(crate) type Entry = Arc<tokio::sync::Mutex<Option<Box<State>>>>;

#[derive(Default)]
pub(crate) struct Cache {
    entries: Mutex<HashMap<ExecutionId, (Entry, u64)>>,
    clock: std::sync::atomic::AtomicU64,
}

impl Cache {
    /// The entry of an execution. Old ones make room, unless somebody is using them.
    pub(crate) fn entry(&self, execution: &ExecutionId) -> Entry {
        let now = self.clock.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((entry, used)) = entries.get_mut(execution) {
            *used = now;
            return entry.clone();
        }
        if entries.len() >= MOST {
            make_room(&mut entries);
        }
        let entry = Entry::default();
        entries.insert(execution.clone(), (entry.clone(), now));
        entry
    }

    /// Forgets an execution, unless somebody but the caller has its entry in hand.
    pub(crate) fn let_go(&self, execution: &ExecutionId, entry: &Entry) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        // The map's and the caller's. Nobody gets another one while the map is locked.
        if Arc::strong_count(entry) <= 2 {
            entries.remove(execution);
        }
    }

    /// Forgets an execution. Whoever has its entry in hand keeps that one; those who come later get another.
    pub(crate) fn forget(&self, execution: &ExecutionId) {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).remove(execution);
    }
}

/// Drops the older half of what nobody is using; rarely, so that it costs little a command.
fn make_room(entries: &mut HashMap<ExecutionId, (Entry, u64)>) {
    let mut ages: Vec<u64> = entries.values().map(|(_, used)| *used).collect();
    ages.sort_unstable();
    let half = ages.get(ages.len() / 2).copied().unwrap_or_default();
    entries.retain(|_, (entry, used)| *used > half || Arc::strong_count(entry) > 1);
}
