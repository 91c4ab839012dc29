//! What a shared store shows of executions, and which of them it does not show although they have begun.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pyoco_core::ids::{ExecutionId, Version};
use pyoco_ports::{LogPlace, Unshown};
use serde_json::Value;
use tokio::time::Instant;

/// A first record is looked at when it is so old: whoever stored it has shown it by then, or is lost.
const AGE: Duration = Duration::from_secs(5);

/// What is shown, and how far the records were looked through.
#[derive(Default)]
pub(crate) struct Shown {
    snapshots: BTreeMap<ExecutionId, (Version, Value)>,
    /// Those that somebody has taken out of lists.
    taken_out: BTreeSet<ExecutionId>,
    known: BTreeSet<ExecutionId>,
    /// In the order of their first records.
    begun: Vec<(ExecutionId, Instant)>,
    /// So many of them were looked at.
    looked: usize,
}

impl Shown {
    /// A record was stored. Only the first one of an execution matters here.
    pub(crate) fn begun(&mut self, execution: &ExecutionId) {
        if self.known.insert(execution.clone()) {
            self.begun.push((execution.clone(), Instant::now()));
        }
    }

    /// Shows a snapshot, unless a newer one is there.
    pub(crate) fn publish(&mut self, execution: &ExecutionId, version: Version, snapshot: &[u8]) {
        let is_older = self.snapshots.get(execution).is_some_and(|(shown, _)| *shown > version);
        if !is_older {
            let body = serde_json::from_slice(snapshot).unwrap();
            self.snapshots.insert(execution.clone(), (version, body));
        }
    }

    /// Shows an execution no more.
    pub(crate) fn unpublish(&mut self, execution: &ExecutionId) {
        self.snapshots.remove(execution);
        self.taken_out.insert(execution.clone());
    }

    pub(crate) fn published(&self, execution: &ExecutionId) -> Option<(Version, Value)> {
        self.snapshots.get(execution).cloned()
    }

    /// What a look through the new records finds.
    pub(crate) fn unshown(&self) -> Unshown {
        let new = self.begun.get(self.looked..).unwrap_or_default();
        let old = new.iter().take_while(|(_, at)| at.elapsed() >= AGE);
        let old: Vec<&ExecutionId> = old.map(|(execution, _)| execution).collect();
        let until = self.looked + old.len();
        let is_seen = |execution: &ExecutionId| {
            self.snapshots.contains_key(execution) || self.taken_out.contains(execution)
        };
        Unshown {
            until: (until > self.looked).then_some(LogPlace(until as u64)),
            executions: old.into_iter().filter(|execution| !is_seen(execution)).cloned().collect(),
        }
    }

    /// What such a look has found was seen to.
    pub(crate) fn shown_until(&mut self, place: LogPlace) {
        self.looked = self.looked.max(usize::try_from(place.0).unwrap());
    }
}
