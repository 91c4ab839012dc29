//! The store's handle: its two files, its lock, and how they are let go.
//! The roles of the store are in the files named after them.

use std::fs::File;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pyoco_ports::{ErrorKind, StoreError};
use rusqlite::Connection;
use tokio::sync::broadcast;

use crate::command::Terms;
use crate::database::{self, Database, Settings};
use crate::queue::SharedLines;
use crate::scratch::OwnFolder;
use crate::unsettled::Unsettled;
use crate::wheels::Shelf;
use crate::workers::Written;
use crate::writer::Wake;

/// So many commands may wait for the writer, and a caller so long for a place among them: then it is told, and may come
/// again. The write-ahead log is moved at 16 MiB, so that moving it is rare
/// beside the commands that fill it.
pub(crate) const MAIN: Settings = Settings {
    file: "main",
    thread: "pyoco-writer",
    places: 1024,
    patience: Some(Duration::from_secs(1)),
    checkpoint_pages: 4 * 1024,
    syncs: true,
};

/// The same for a folder that nobody opens again: many rows come at once and wait as long as it takes, and nobody waits for
/// the disk.
pub(crate) const SCRATCH: Settings =
    Settings { thread: "pyoco-index-writer", patience: None, syncs: false, ..MAIN };

/// So many KiB of lines may wait for their writer: 16 MiB. Whoever has more waits: a task that floods is slowed down, and
/// nothing of what it wrote is refused. The write-ahead log is moved at 16 MiB, so that a flood seldom keeps the disk busy.
pub(crate) const LOGS: Settings = Settings {
    file: "lines",
    thread: "pyoco-log-writer",
    places: 16 * 1024,
    patience: None,
    checkpoint_pages: 4 * 1024,
    syncs: true,
};

/// The embedded store. Clones share one folder, its files with their writers, and its lock.
///
/// The folder is free again once [`close`](Self::close) has returned, or the last clone is gone; dropping the last clone
/// blocks until what was sent to the writers is written.
#[derive(Clone)]
pub struct SqliteStore {
    inner: Arc<Inner>,
}

// The fields are dropped in this order: whoever gets the lock next finds nobody writing.
struct Inner {
    main: Database,
    logs: Database,
    /// The time that a caller gave last, for `wait`, which is given none. Before the first everything is due.
    last_now: AtomicI64,
    workers: Written,
    lines: SharedLines,
    unsettled: Unsettled,
    wheels: Shelf,
    /// Only one closes; others wait until it is done.
    closing: tokio::sync::Mutex<()>,
    lock: Mutex<Option<File>>,
    /// Goes with the store, if it is its own.
    _folder: Option<OwnFolder>,
}

impl SqliteStore {
    pub(crate) fn new(
        main: Database,
        lines: SharedLines,
        logs: Database,
        lock: File,
        wheels: Shelf,
        folder: Option<OwnFolder>,
    ) -> Self {
        let inner = Inner {
            main,
            logs,
            last_now: AtomicI64::new(i64::MAX),
            workers: Written::default(),
            lines,
            unsettled: Unsettled::default(),
            wheels,
            closing: tokio::sync::Mutex::new(()),
            lock: Mutex::new(Some(lock)),
            _folder: folder,
        };
        Self { inner: Arc::new(inner) }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.inner.main.is_open()
    }

    /// Returns when nothing can be written any more because the disk failed: only opening the file again helps, so the
    /// process should end and be started anew. Not at all if that never happens.
    pub async fn gave_up(&self) {
        self.inner.main.gave_up().await;
    }

    /// Closes the store: what was sent before is written and answered, the write-ahead logs are emptied, the folder is
    /// free. Whoever uses the store afterwards gets `Closed`. Closing again does nothing.
    pub async fn close(&self) -> Result<(), StoreError> {
        let _alone = self.inner.closing.lock().await;
        self.inner.wheels.close();
        // Whoever looks at the file alone finds everything in its place. What cannot be put there is when it is opened again.
        let _ = self.read_rows("close", |_| Ok(())).await;
        let (main, logs) = tokio::join!(self.inner.main.shut(), self.inner.logs.shut());
        let lock = self.inner.lock.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The lock goes with the threads, so that the folder is not free before they have ended, even if nobody waits
        // for this.
        let ended = tokio::task::spawn_blocking(move || {
            // Both, whatever the first says.
            let [main, logs] = [main, logs].map(|thread| thread.map_or(Ok(()), database::ended));
            drop(lock);
            main.and(logs)
        });
        ended.await.unwrap_or_else(|error| Err(StoreError::new(ErrorKind::Internal, "close", error)))
    }

    /// Hands work to the writer and waits until it is committed.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        terms: Terms,
        work: impl FnMut(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.inner.main.write(terms, 1, work).await
    }

    /// Reads on a connection of its own.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.inner.main.read(operation, work).await
    }

    /// The file of everything else than what tasks wrote.
    pub(crate) fn main(&self) -> &Database {
        &self.inner.main
    }

    /// The file of what tasks wrote.
    pub(crate) fn logs(&self) -> &Database {
        &self.inner.logs
    }

    pub(crate) fn wakes(&self) -> broadcast::Receiver<Wake> {
        self.inner.main.wakes()
    }

    pub(crate) fn written_workers(&self) -> &Written {
        &self.inner.workers
    }

    /// The files of wheels.
    pub(crate) fn shelf(&self) -> &Shelf {
        &self.inner.wheels
    }

    /// Which jobs wait, and who has which.
    pub(crate) fn lines(&self) -> &SharedLines {
        &self.inner.lines
    }

    /// The rows that are not in the index yet.
    pub(crate) fn unsettled(&self) -> &Unsettled {
        &self.inner.unsettled
    }

    pub(crate) fn last_now(&self) -> &AtomicI64 {
        &self.inner.last_now
    }
}

/// The folder is locked: nobody else can write.
impl pyoco_ports::Peers for SqliteStore {}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteStore").finish_non_exhaustive()
    }
}
