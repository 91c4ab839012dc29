//! The store's handle: the way to the writer and to the readers, and how both are let go.
//! The roles of the store are in the files named after them.

use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::AtomicI64;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use pyoco_ports::{ErrorKind, StoreError};
use rusqlite::Connection;
use tokio::sync::{Semaphore, broadcast, oneshot};

use crate::command::{Command, Task, Terms};
use crate::readers::Readers;
use crate::writer::{Wake, Writer};

/// So many commands may wait for the writer.
const INBOX: usize = 1024;
/// How long a caller waits for a place among them.
const PATIENCE: Duration = Duration::from_secs(1);
/// Wakes that one who waits may be behind before it is simply woken.
const WAKES: usize = 256;

/// The embedded store. Clones share one file, one writer and one lock.
///
/// The folder is free again once [`close`](Self::close) has returned, or the last clone is gone; dropping the last clone
/// blocks until what was sent to the writer is written.
#[derive(Clone)]
pub struct SqliteStore {
    inner: Arc<Inner>,
}

struct Inner {
    /// The way to the writer; none once the store is closed.
    outbox: Mutex<Option<Sender<Box<dyn Command>>>>,
    places: Arc<Semaphore>,
    thread: Mutex<Option<JoinHandle<Result<(), StoreError>>>>,
    readers: Arc<Readers>,
    wake: broadcast::Sender<Wake>,
    /// The time that a caller gave last, for `wait`, which is given none. Before the first everything is due.
    last_now: AtomicI64,
    /// Only one closes; others wait until it is done.
    closing: tokio::sync::Mutex<()>,
    lock: Mutex<Option<File>>,
}

impl SqliteStore {
    /// Starts the writer on a file that was found good.
    pub(crate) fn start(path: PathBuf, connection: Connection, lock: File) -> std::io::Result<Self> {
        let (outbox, inbox) = std::sync::mpsc::channel();
        let (wake, _) = broadcast::channel(WAKES);
        let writer = Writer::new(connection, inbox, wake.clone());
        let thread = std::thread::Builder::new().name("pyoco-writer".to_owned()).spawn(|| writer.run())?;
        let inner = Inner {
            outbox: Mutex::new(Some(outbox)),
            places: Arc::new(Semaphore::new(INBOX)),
            thread: Mutex::new(Some(thread)),
            readers: Arc::new(Readers::new(path)),
            wake,
            last_now: AtomicI64::new(i64::MAX),
            closing: tokio::sync::Mutex::new(()),
            lock: Mutex::new(Some(lock)),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Closes the store: what was sent before is written and answered, the write-ahead log is emptied, the folder is free.
    /// Whoever uses the store afterwards gets `Closed`. Closing again does nothing.
    pub async fn close(&self) -> Result<(), StoreError> {
        let _alone = self.inner.closing.lock().await;
        drop(guard(&self.inner.outbox).take());
        let _ = self.inner.wake.send(Wake::Everybody);
        // First the readers, so that nothing keeps the writer from emptying the write-ahead log.
        self.inner.readers.close().await;
        let thread = guard(&self.inner.thread).take();
        let lock = guard(&self.inner.lock).take();
        let Some(thread) = thread else { return Ok(()) };
        // The lock goes with the thread, so that the folder is not free before it has ended, even if nobody waits for this.
        let ended = tokio::task::spawn_blocking(move || {
            let ended = thread.join();
            drop(lock);
            ended
        });
        match ended.await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(gone("close")),
            Err(error) => Err(StoreError::new(ErrorKind::Internal, "close", error)),
        }
    }

    /// Hands work to the writer and waits until it is committed.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        terms: Terms,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let operation = terms.operation;
        let place = tokio::time::timeout(PATIENCE, Arc::clone(&self.inner.places).acquire_owned()).await;
        let Ok(Ok(place)) = place else {
            return Err(StoreError::new(ErrorKind::Unavailable, operation, "too many are waiting to write"));
        };
        let (reply, answer) = oneshot::channel();
        let task = Task { terms, work: Some(work), result: None, reply, _place: place };
        match &*guard(&self.inner.outbox) {
            None => return Err(StoreError::plain(ErrorKind::Closed, operation)),
            Some(outbox) => outbox.send(Box::new(task)).map_err(|_| gone(operation))?,
        }
        // The writer answers everything that it takes, unless it breaks; then the command may have been done.
        answer
            .await
            .unwrap_or_else(|_| Err(StoreError::new(ErrorKind::Timeout, operation, "the writer broke down")))
    }

    /// Reads on a connection of its own.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.inner.readers.read(operation, work).await
    }

    pub(crate) fn wakes(&self) -> broadcast::Receiver<Wake> {
        self.inner.wake.subscribe()
    }

    pub(crate) fn last_now(&self) -> &AtomicI64 {
        &self.inner.last_now
    }
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteStore").finish_non_exhaustive()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        drop(guard(&self.outbox).take());
        self.readers.close_idle();
        // The lock is released after this, so whoever gets it next finds nobody writing.
        if let Some(thread) = guard(&self.thread).take() {
            let _ = thread.join();
        }
    }
}

fn gone(operation: &'static str) -> StoreError {
    StoreError::new(
        ErrorKind::Unavailable,
        operation,
        "the writer broke down; restart to open the file again",
    )
}

fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each holds an option that is taken or looked at, nothing that a panic could leave half done.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
