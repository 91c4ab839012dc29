//! The pen: the one connection that writes, in the hand of one thread at a time, and what a transaction with it is. Who waits for it, who
//! is answered when, and the disk are not its business.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use pyoco_ports::{ErrorKind, StoreError};
use rusqlite::Connection;
use tokio::sync::watch;

use crate::command::{Command, Lost, Ran};
use crate::{aside, connection, error};

/// After so many transactions the length of the write-ahead log is looked at.
const LOOK_EVERY: u32 = 16;

/// Something in memory that follows what is committed.
pub(crate) trait Follower: Send + Sync {
    /// A transaction begins; one that began before and was not committed did not happen.
    fn began(&self);
    /// It is committed, and nobody was told yet.
    fn committed(&self);
}

/// Where the pen lies. Clones are the same place.
#[derive(Clone)]
pub(crate) struct Desk(Arc<Place>);

struct Place {
    pen: Mutex<Option<Pen>>,
    /// The writer's thread waits for the pen: whoever only looks leaves it alone, or that thread might wait for ever.
    is_wanted: AtomicBool,
}

impl Desk {
    pub(crate) fn with(pen: Pen) -> Self {
        Self(Arc::new(Place { pen: Mutex::new(Some(pen)), is_wanted: AtomicBool::new(false) }))
    }

    /// The pen, as soon as nobody else has it; none after it was put away. For the writer's thread alone.
    pub(crate) fn wait(&self) -> MutexGuard<'_, Option<Pen>> {
        self.0.is_wanted.store(true, Ordering::SeqCst);
        let pen = self.0.pen.lock().unwrap_or_else(broken);
        self.0.is_wanted.store(false, Ordering::SeqCst);
        pen
    }

    /// The pen, if nobody has it and nobody waits for it.
    pub(crate) fn look(&self) -> Option<MutexGuard<'_, Option<Pen>>> {
        if self.0.is_wanted.load(Ordering::SeqCst) {
            return None;
        }
        match self.0.pen.try_lock() {
            Ok(pen) => Some(pen),
            Err(TryLockError::Poisoned(poisoned)) => Some(broken(poisoned)),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Puts it away and leaves the file without a write-ahead log.
    pub(crate) fn clear(&self) -> Result<(), StoreError> {
        let Some(pen) = self.wait().take() else { return Ok(()) };
        match pen.stopped {
            Some(why) => Err(why.into_error("close")),
            None => truncate(&pen.connection).map_err(|error| error::store("close", error)),
        }
    }
}

/// Somebody broke down with the pen in hand, perhaps in the middle of a transaction.
fn broken<'a>(poisoned: PoisonError<MutexGuard<'a, Option<Pen>>>) -> MutexGuard<'a, Option<Pen>> {
    let mut pen = poisoned.into_inner();
    if let Some(pen) = pen.as_mut().filter(|pen| pen.stopped.is_none()) {
        pen.give_up(&"a command broke down", ErrorKind::Internal);
    }
    pen
}

/// What is needed to write.
pub(crate) struct Pen {
    connection: Connection,
    giving_up: watch::Sender<bool>,
    /// Pages in the write-ahead log that are not yet in the file, before they are moved.
    checkpoint_pages: i64,
    /// Where damage of the file is marked, if anywhere.
    mark: Option<PathBuf>,
    follower: Option<Arc<dyn Follower>>,
    /// Something may be in the write-ahead log.
    dirty: bool,
    /// Transactions since somebody looked how long the write-ahead log is.
    unlooked: u32,
    /// Transactions that were begun.
    begun: u64,
    /// Why nothing is written any more.
    stopped: Option<Lost>,
}

impl Pen {
    pub(crate) fn new(
        connection: Connection,
        giving_up: watch::Sender<bool>,
        checkpoint_pages: i64,
        mark: Option<PathBuf>,
        follower: Option<Arc<dyn Follower>>,
    ) -> Self {
        Self {
            connection,
            giving_up,
            checkpoint_pages,
            mark,
            follower,
            // The file may have been left with a write-ahead log, so the first pause looks after it.
            dirty: true,
            unlooked: 0,
            begun: 0,
            stopped: None,
        }
    }

    /// Runs a batch in one transaction. An error means that none of it was done, or that nobody knows.
    pub(crate) fn commit(&mut self, batch: &mut [Box<dyn Command>]) -> Result<(), Lost> {
        if let Some(why) = &self.stopped {
            return Err(why.clone());
        }
        self.dirty = true;
        self.begun += 1;
        self.unlooked += 1;
        while !self.attempt(batch)? {
            self.statement("ROLLBACK").map_err(|error| self.lose(&error))?;
        }
        // Only an end of the process comes true here: what else could fail says so by itself.
        drop(pyoco_faults::at("sqlite.before_commit", "commit"));
        let end = if pyoco_faults::is_planted("commit-dropped") && self.begun % 8 == 7 {
            "ROLLBACK"
        } else {
            "COMMIT"
        };
        let committed = self.statement(end).map_err(|error| {
            let _ = self.statement("ROLLBACK");
            match error::kind(&error) {
                // Nothing reached the file; the next one may find room again.
                ErrorKind::Full => Lost::new(ErrorKind::Full, &error),
                // The pages may be in the write-ahead log and come back when the file is opened again.
                ErrorKind::Unavailable
                | ErrorKind::Timeout
                | ErrorKind::Closed
                | ErrorKind::Corrupt
                | ErrorKind::TooLarge
                | ErrorKind::Internal => self.stop(&error, ErrorKind::Timeout),
            }
        });
        drop(pyoco_faults::at("sqlite.after_commit", "commit"));
        if let Some(follower) = self.follower.as_ref().filter(|_| committed.is_ok()) {
            follower.committed();
        }
        committed
    }

    /// How many transactions were begun: whoever finds the same number later knows that nothing was written.
    pub(crate) const fn begun(&self) -> u64 {
        self.begun
    }

    /// Whether nothing is to be done when nobody writes.
    pub(crate) const fn is_tidy(&self) -> bool {
        !self.dirty || self.stopped.is_some()
    }

    /// Whether it is time to look how long the write-ahead log is.
    pub(crate) const fn is_look_due(&self) -> bool {
        self.unlooked >= LOOK_EVERY
    }

    /// Moves pages from the write-ahead log into the file, as far as no reader needs them, waiting for nobody. To ask how long the
    /// log is costs as much as a small transaction, so it is asked now and then.
    pub(crate) fn checkpoint_if_large(&mut self) {
        if self.stopped.is_some() || !self.is_look_due() {
            return;
        }
        self.unlooked = 0;
        let moved = checkpoint(&self.connection, "PRAGMA wal_checkpoint(NOOP)").and_then(|state| {
            if state.log - state.moved < self.checkpoint_pages {
                return Ok(state);
            }
            drop(pyoco_faults::at("sqlite.before_checkpoint", "checkpoint"));
            checkpoint(&self.connection, "PRAGMA wal_checkpoint(PASSIVE)")
        });
        if let Err(error) = moved
            && error::is_fatal(&error)
        {
            self.stop(&error, ErrorKind::Unavailable);
        }
    }

    /// Empties the write-ahead log, in a pause. A reader in the way is no harm: close, or the next pause, does it. So nobody waits for
    /// one here.
    pub(crate) fn tidy(&mut self) {
        let _ = connection::patient(&self.connection, false);
        let _ = truncate(&self.connection);
        let _ = connection::patient(&self.connection, true);
        self.dirty = false;
    }

    /// Nothing is written any more.
    pub(crate) fn give_up(&mut self, error: &impl std::fmt::Display, kind: ErrorKind) -> Lost {
        self.stopped = Some(Lost::stopped(error));
        self.giving_up.send_replace(true);
        Lost::new(kind, error)
    }

    /// Runs every command of a batch in a transaction that is left open. Not done when one of them failed by itself: then
    /// everything is to be undone and the others run again, which is rare, and cheaper than a savepoint for each.
    fn attempt(&mut self, batch: &mut [Box<dyn Command>]) -> Result<bool, Lost> {
        self.statement("BEGIN IMMEDIATE").map_err(|error| self.lose(&error))?;
        if let Some(follower) = &self.follower {
            follower.began();
        }
        for command in batch {
            match command.run(&self.connection) {
                Ran::Keep => {}
                Ran::Undo => return Ok(false),
                Ran::Lose(error) => {
                    let _ = self.statement("ROLLBACK");
                    return Err(self.lose(&error));
                }
            }
        }
        Ok(true)
    }

    /// The transaction failed before COMMIT, so it was not done.
    fn lose(&mut self, error: &rusqlite::Error) -> Lost {
        if error::is_fatal(error) {
            return self.stop(error, ErrorKind::Unavailable);
        }
        Lost::new(error::kind(error), error)
    }

    /// After an error of the disk nobody knows what it holds: nothing is written until the file was opened again.
    fn stop(&mut self, error: &rusqlite::Error, kind: ErrorKind) -> Lost {
        if let Some(mark) = &self.mark {
            aside::mark(mark, error);
        }
        self.give_up(error, kind)
    }

    fn statement(&self, sql: &'static str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute(()).map(|_| ())
    }
}

/// What a checkpoint says: pages in the write-ahead log, and how many of them are in the file.
struct Checkpoint {
    log: i64,
    moved: i64,
}

fn checkpoint(connection: &Connection, sql: &'static str) -> rusqlite::Result<Checkpoint> {
    connection
        .prepare_cached(sql)?
        .query_row((), |row| Ok(Checkpoint { log: row.get("log")?, moved: row.get("checkpointed")? }))
}

/// Moves everything into the file and empties the write-ahead log. Somebody else's reader may prevent it; that is no error.
fn truncate(connection: &Connection) -> rusqlite::Result<()> {
    drop(pyoco_faults::at("sqlite.before_checkpoint", "checkpoint"));
    checkpoint(connection, "PRAGMA wal_checkpoint(TRUNCATE)").map(|_| ())
}
