//! Who wants to know when an execution changes: told at once, never by asking again and again.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use pyoco_core::ids::{ExecutionId, Version};
use tokio::sync::watch;

/// Tells the newest version of watched executions. Nobody is ever blocked by a slow watcher: it sees the newest version when
/// it looks, and reads what it missed from the log.
#[derive(Default)]
pub(crate) struct Hub {
    watched: Mutex<HashMap<ExecutionId, watch::Sender<Version>>>,
}

/// Waits for changes of one execution.
#[derive(Debug)]
pub struct Watcher {
    receiver: watch::Receiver<Version>,
}

impl Hub {
    pub(crate) fn changed(&self, execution: &ExecutionId, version: Version) {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(sender) = watched.get(execution) else { return };
        if sender.is_closed() {
            watched.remove(execution);
            return;
        }
        sender.send_if_modified(|known| {
            let is_newer = version > *known;
            *known = version.max(*known);
            is_newer
        });
    }

    pub(crate) fn watch(&self, execution: &ExecutionId) -> Watcher {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        let sender = watched.entry(execution.clone()).or_insert_with(|| watch::Sender::new(Version(0)));
        Watcher { receiver: sender.subscribe() }
    }
}

impl Watcher {
    /// Returns at the next change, with the newest version. Changes in between are one.
    pub async fn changed(&mut self) -> Version {
        // The hub keeps the sender for as long as somebody listens.
        let _ = self.receiver.changed().await;
        *self.receiver.borrow_and_update()
    }
}

impl crate::Engine {
    /// Watches an execution. Look at its state after this call, then wait: no change is missed in between.
    pub fn watch(&self, execution: &ExecutionId) -> Watcher {
        self.hub.watch(execution)
    }
}
