//! Readers: a few connections that only read, each used on a thread that may block.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pyoco_ports::{ErrorKind, StoreError};
use rusqlite::Connection;
use tokio::sync::Semaphore;

use crate::{aside, connection, error};

/// How many may read at the same time.
const MOST: usize = 4;

/// The pool.
pub(crate) struct Readers {
    path: PathBuf,
    /// Where damage of the file is marked, if anywhere.
    mark: Option<PathBuf>,
    idle: Mutex<Vec<Connection>>,
    places: Arc<Semaphore>,
    /// The place of whoever reads for long.
    apart: Arc<Semaphore>,
}

impl Readers {
    pub(crate) fn new(path: PathBuf, mark: Option<PathBuf>) -> Self {
        let [places, apart] = [MOST, 1].map(|places| Arc::new(Semaphore::new(places)));
        Self { path, mark, idle: Mutex::new(Vec::new()), places, apart }
    }

    /// Reads. Every statement sees all that was committed before; a transaction never outlives the call.
    pub(crate) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        operation: &'static str,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.on(&self.places, operation, work).await
    }

    /// Reads something that takes no longer than to ask another thread for it: a few rows that were just written. On the caller's own
    /// thread, if a connection is idle.
    pub(crate) async fn read_briefly<T: Send + 'static>(
        self: &Arc<Self>,
        operation: &'static str,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        if let Ok(_place) = self.places.try_acquire() {
            let idle = self.idle().pop();
            if let Some(connection) = idle {
                return self.with(connection, work).map_err(|error| error::store(operation, error));
            }
        }
        self.read(operation, work).await
    }

    /// Reads for as long as it takes: one at a time, and nobody else waits for it.
    pub(crate) async fn read_apart<T: Send + 'static>(
        self: &Arc<Self>,
        operation: &'static str,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.on(&self.apart, operation, work).await
    }

    async fn on<T: Send + 'static>(
        self: &Arc<Self>,
        places: &Arc<Semaphore>,
        operation: &'static str,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let place = Arc::clone(places).acquire_owned().await;
        let place = place.map_err(|_| StoreError::plain(ErrorKind::Closed, operation))?;
        let pool = Arc::clone(self);
        let task = tokio::task::spawn_blocking(move || {
            let _place = place;
            let idle = pool.idle().pop();
            let connection = match idle {
                Some(connection) => connection,
                None => connection::reader(&pool.path)?,
            };
            pool.with(connection, work)
        });
        let result = task.await.map_err(|error| StoreError::new(ErrorKind::Internal, operation, error))?;
        result.map_err(|error| error::store(operation, error))
    }

    /// Reads with a connection and puts it back.
    fn with<T>(
        &self,
        connection: Connection,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let result = work(&connection);
        // One whose transaction stayed open would hold the write-ahead log; there is none, but a new one is cheap.
        if connection.is_autocommit() {
            self.idle().push(connection);
        }
        if let (Some(mark), Err(error)) = (&self.mark, &result) {
            aside::mark(mark, error);
        }
        result
    }

    /// Waits for those who read, refuses others, and closes the connections.
    pub(crate) async fn close(&self) {
        for (places, all) in [(&self.places, MOST), (&self.apart, 1)] {
            let all = u32::try_from(all).unwrap_or(u32::MAX);
            // An error means that it was closed before.
            if let Ok(held) = places.acquire_many(all).await {
                places.close();
                drop(held);
            }
        }
        self.idle().clear();
    }

    /// Closes the connections that nobody uses, without waiting.
    pub(crate) fn close_idle(&self) {
        self.idle().clear();
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        // A list of connections is whole even if somebody panicked beside it.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
