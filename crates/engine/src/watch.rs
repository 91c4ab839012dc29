//! Who wants to know when an execution changes: told at once, never by asking again and again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use pyoco_core::ids::{ExecutionId, Version};
use pyoco_core::record::Record;
use tokio::sync::watch;

use crate::history::Recent;

/// More than so many who watch one execution are a crowd.
const CROWD: usize = 32;
/// What is told of an execution that is not there any more. No log is that long.
pub(crate) const GONE: Version = Version(u64::MAX);
/// So many watched executions are never too many.
const FEW: usize = 64;

/// Tells the newest version of watched executions. Nobody is ever blocked by a slow watcher: it sees the newest version when
/// it looks, and reads what it missed from the log.
#[derive(Default)]
pub(crate) struct Hub {
    watched: Mutex<HashMap<ExecutionId, Watched>>,
    /// Counts the changes of all executions.
    changes: watch::Sender<u64>,
}

/// An execution that somebody watches.
struct Watched {
    newest: watch::Sender<Version>,
    recent: Arc<Recent>,
}

/// Waits for changes of one execution.
#[derive(Debug)]
pub struct Watcher {
    receiver: watch::Receiver<Version>,
    recent: Arc<Recent>,
}

impl Hub {
    /// Tells that some execution has changed, here or elsewhere, and that lists show it.
    pub(crate) fn tick(&self) {
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Tells that a record was appended here.
    pub(crate) fn appended(&self, execution: &ExecutionId, record: Record) {
        self.tick();
        let version = record.seq;
        self.tell(execution, version, |recent| recent.add(&Arc::new(record)));
    }

    /// Tells that an execution has this version by now.
    pub(crate) fn changed(&self, execution: &ExecutionId, version: Version) {
        self.tell(execution, version, |_| {});
    }

    fn tell(&self, execution: &ExecutionId, version: Version, bring: impl FnOnce(&Recent)) {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Watched { newest, recent }) = watched.get(execution) else { return };
        if newest.is_closed() {
            watched.remove(execution);
            return;
        }
        bring(recent);
        newest.send_if_modified(|known| {
            let is_newer = version > *known;
            *known = version.max(*known);
            is_newer
        });
    }

    /// Tells that an execution is not there any more: whoever watches it looks, and finds nothing.
    pub(crate) fn gone(&self, execution: &ExecutionId) {
        self.changed(execution, GONE);
    }

    /// Whether somebody watches it who has not been told of this version.
    pub(crate) fn is_watched(&self, execution: &ExecutionId, version: Version) -> bool {
        let watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        let watched = watched.get(execution).map(|watched| &watched.newest);
        watched.is_some_and(|newest| !newest.is_closed() && *newest.borrow() < version)
    }

    pub(crate) fn watch(&self, execution: &ExecutionId) -> Watcher {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        // An execution that has ended never changes again: who watched it is forgotten here. Looking at all of them each time
        // their number has doubled costs little a watch.
        let count = watched.len();
        if count >= FEW && count.is_power_of_two() && !watched.contains_key(execution) {
            watched.retain(|_, watched| !watched.newest.is_closed());
        }
        let watched = watched
            .entry(execution.clone())
            .or_insert_with(|| Watched { newest: watch::Sender::new(Version(0)), recent: Arc::default() });
        Watcher { receiver: watched.newest.subscribe(), recent: watched.recent.clone() }
    }
}

impl Watcher {
    /// The newest records of the execution, shared by all who watch it.
    pub(crate) fn recent(&self) -> &Recent {
        &self.recent
    }

    /// Returns once there is something newer than a version that was seen, at once if there is already.
    pub async fn beyond(&mut self, seen: Version) {
        // The hub keeps the sender for as long as somebody listens.
        let _ = self.receiver.wait_for(|version| *version > seen).await;
    }

    /// Whether many watch the same execution.
    pub(crate) fn is_in_a_crowd(&self) -> bool {
        // One is the hub's.
        Arc::strong_count(&self.recent) > CROWD + 1
    }

    /// Whether the execution is not there any more.
    pub(crate) fn is_gone(&self) -> bool {
        self.newest() == GONE
    }

    /// The newest version that was told.
    pub(crate) fn newest(&self) -> Version {
        *self.receiver.borrow()
    }

    /// Returns at the next change, with the newest version. Changes in between are one.
    pub async fn changed(&mut self) -> Version {
        // The hub keeps the sender for as long as somebody listens.
        let _ = self.receiver.changed().await;
        *self.receiver.borrow_and_update()
    }
}

/// Waits for changes of any execution.
#[derive(Debug)]
pub struct Changes(watch::Receiver<u64>);

impl Changes {
    /// Returns at the next change since the last call. Changes in between are one.
    pub async fn next(&mut self) {
        // The hub keeps the sender for as long as the engine is there.
        let _ = self.0.changed().await;
    }
}

impl crate::Engine {
    /// Watches all executions. Look at a list after this call, then wait: no change is missed in between.
    pub fn changes(&self) -> Changes {
        Changes(self.hub.changes.subscribe())
    }

    /// Watches an execution. Look at its state after this call, then wait: no change is missed in between.
    pub fn watch(&self, execution: &ExecutionId) -> Watcher {
        self.hub.watch(execution)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_nobody_watches_any_more_are_forgotten() {
        let hub = Hub::default();
        let name = |number: usize| ExecutionId::new(&format!("e-{number}")).unwrap();
        let kept: Vec<Watcher> = (0..10).map(|number| hub.watch(&name(number))).collect();
        for number in 0..10_000 {
            drop(hub.watch(&name(number)));
        }
        let watched = hub.watched.lock().unwrap();
        assert!(watched.len() <= 2 * FEW, "{}", watched.len());
        assert!((0..kept.len()).all(|number| watched.contains_key(&name(number))));
    }
}
