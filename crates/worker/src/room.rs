//! How many executions a worker drives at once. An execution whose end is decided has only to be written down: it gives up its place
//! before that, so that the next one need not wait for the disk.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The places of a worker.
pub(crate) struct Room(Arc<Semaphore>);

impl Room {
    pub(crate) fn new(places: usize) -> Self {
        Self(Arc::new(Semaphore::new(places.min(Semaphore::MAX_PERMITS))))
    }

    /// How many more may be driven.
    pub(crate) fn free(&self) -> usize {
        self.0.available_permits()
    }

    /// Takes a place, if there is one.
    pub(crate) fn place(&self) -> Place {
        Place(Mutex::new(self.0.clone().try_acquire_owned().ok()))
    }

    /// Returns when there is a free place.
    pub(crate) async fn freed(&self) {
        // It is never closed.
        drop(self.0.acquire().await);
    }
}

/// One place, until it is given up or dropped.
pub(crate) struct Place(Mutex<Option<OwnedSemaphorePermit>>);

impl Place {
    /// For an execution that nobody counts.
    pub(crate) const fn none() -> Self {
        Self(Mutex::new(None))
    }

    /// Makes room for the next.
    pub(crate) fn give_up(&self) {
        drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}
