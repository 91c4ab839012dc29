//! Executions that are marked for something that is still to be done in this process.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyoco_core::ids::ExecutionId;

/// In the order of their names, so that what is done for all of them is done in the same order each time.
#[derive(Default)]
pub(crate) struct Marks(Mutex<BTreeSet<ExecutionId>>);

impl Marks {
    fn marked(&self) -> MutexGuard<'_, BTreeSet<ExecutionId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks one; whether it was not marked before.
    pub(crate) fn add(&self, execution: &ExecutionId) -> bool {
        self.marked().insert(execution.clone())
    }

    /// Whether one is marked.
    pub(crate) fn has(&self, execution: &ExecutionId) -> bool {
        self.marked().contains(execution)
    }

    /// Takes the mark away; whether there was one.
    pub(crate) fn remove(&self, execution: &ExecutionId) -> bool {
        self.marked().remove(execution)
    }

    /// Takes all marks away, and says whose they were.
    pub(crate) fn take(&self) -> Vec<ExecutionId> {
        std::mem::take(&mut *self.marked()).into_iter().collect()
    }
}
