//! The writer: one thread with the only connection that writes. It gathers what is waiting into one transaction, answers
//! after COMMIT has returned, and takes care of the write-ahead log. What a command writes is not its business.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use pyoco_core::ids::Tag;
use pyoco_figures::{Figures, Stopwatch};
use pyoco_ports::{Durability, ErrorKind, StoreError};
use rusqlite::Connection;
use tokio::sync::{broadcast, watch};

use crate::command::{Command, Lost, Ran};
use crate::database::Settings;
use crate::{aside, connection, error};

/// So many commands share one transaction at most.
const MOST: usize = 256;
/// Nothing was written for so long: time to empty the write-ahead log.
const IDLE: Duration = Duration::from_secs(2);

/// What those who wait for work are told.
#[derive(Debug, Clone)]
pub(crate) enum Wake {
    /// There may be something for this tag.
    Tag(Tag),
    /// The store is closing.
    Everybody,
}

/// Something in memory that follows what is committed.
pub(crate) trait Follower: Send + Sync {
    /// A transaction begins; one that began before and was not committed did not happen.
    fn began(&self);
    /// It is committed, and nobody was told yet.
    fn committed(&self);
}

/// Who has to do with a file beside its writer.
pub(crate) struct Around {
    /// Where damage of the file is marked, if anywhere.
    pub(crate) mark: Option<PathBuf>,
    /// Who counts the transactions.
    pub(crate) figures: Figures,
    /// What follows them, if anything.
    pub(crate) follower: Option<Arc<dyn Follower>>,
}

/// After so many transactions the length of the write-ahead log is looked at.
const LOOK_EVERY: u32 = 16;

/// The state of the writer's thread.
pub(crate) struct Writer {
    connection: Connection,
    inbox: Receiver<Box<dyn Command>>,
    wake: broadcast::Sender<Wake>,
    giving_up: watch::Sender<bool>,
    /// Pages in the write-ahead log that are not yet in the file, before they are moved.
    checkpoint_pages: i64,
    /// Where damage of the file is marked, if anywhere.
    mark: Option<PathBuf>,
    /// What `PRAGMA synchronous` is set to; none if it is off and stays so.
    synchronous: Option<Durability>,
    /// Something may be in the write-ahead log.
    dirty: bool,
    /// Transactions since somebody looked how long the write-ahead log is.
    unlooked: u32,
    /// Why nothing is written any more.
    stopped: Option<Lost>,
    /// What the file is called in the figures, and who counts.
    counted: (&'static str, Figures),
    follower: Option<Arc<dyn Follower>>,
}

impl Writer {
    pub(crate) fn new(
        connection: Connection,
        inbox: Receiver<Box<dyn Command>>,
        wake: broadcast::Sender<Wake>,
        giving_up: watch::Sender<bool>,
        settings: &Settings,
        around: Around,
    ) -> Self {
        let synchronous = settings.syncs.then_some(Durability::Full);
        // The file may have been left with a write-ahead log, so the first pause looks after it.
        Self {
            connection,
            inbox,
            wake,
            giving_up,
            checkpoint_pages: settings.checkpoint_pages,
            mark: around.mark,
            synchronous,
            dirty: true,
            unlooked: 0,
            stopped: None,
            counted: (settings.file, around.figures),
            follower: around.follower,
        }
    }

    /// Works until every sender is gone and the inbox is empty, then leaves the file without a write-ahead log.
    pub(crate) fn run(mut self) -> Result<(), StoreError> {
        while let Some(first) = self.next() {
            let mut batch = vec![first];
            batch.extend(self.inbox.try_iter().take(MOST - 1));
            let lost = match &self.stopped {
                Some(why) => Err(why.clone()),
                None => self.commit(&mut batch),
            };
            for command in batch {
                if let Some(tag) = command.answer(lost.as_ref().err()) {
                    // Nobody may be waiting.
                    let _ = self.wake.send(Wake::Tag(tag));
                }
            }
            self.checkpoint_if_large();
        }
        match self.stopped {
            Some(why) => Err(why.into_error("close")),
            None => truncate(&self.connection).map_err(|error| error::store("close", error)),
        }
    }

    fn next(&mut self) -> Option<Box<dyn Command>> {
        if !self.dirty || self.stopped.is_some() {
            return self.inbox.recv().ok();
        }
        match self.inbox.recv_timeout(IDLE) {
            Ok(command) => Some(command),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => {
                // A reader in the way is no harm: close, or the next pause, does it. So nobody waits for one here.
                let _ = connection::patient(&self.connection, false);
                let _ = truncate(&self.connection);
                let _ = connection::patient(&self.connection, true);
                self.dirty = false;
                self.inbox.recv().ok()
            }
        }
    }

    /// Runs a batch in one transaction. An error means that none of it was done, or that nobody knows.
    fn commit(&mut self, batch: &mut [Box<dyn Command>]) -> Result<(), Lost> {
        self.dirty = true;
        let watch = Stopwatch::start();
        let wanted = if batch.iter().all(|command| command.durability() == Durability::Process) {
            Durability::Process
        } else {
            Durability::Full
        };
        self.synchronise(wanted).map_err(|error| self.stop(&error, ErrorKind::Unavailable))?;
        while !self.attempt(batch)? {
            self.statement("ROLLBACK").map_err(|error| self.lose(&error))?;
        }
        // Only an end of the process comes true here: what else could fail says so by itself.
        drop(pyoco_faults::at("sqlite.before_commit", "commit"));
        let end = if pyoco_faults::is_planted("commit-dropped") && self.unlooked % 8 == 7 {
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
        if committed.is_ok() {
            if let Some(follower) = &self.follower {
                follower.committed();
            }
            let (file, figures) = &self.counted;
            figures.committed(file, watch.seconds(), batch.len());
        }
        committed
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
        self.stopped = Some(Lost::stopped(error));
        self.giving_up.send_replace(true);
        Lost::new(kind, error)
    }

    fn synchronise(&mut self, wanted: Durability) -> rusqlite::Result<()> {
        if self.synchronous.is_some_and(|synchronous| synchronous != wanted) {
            let value = match wanted {
                Durability::Full => "FULL",
                Durability::Process => "NORMAL",
            };
            self.connection.pragma_update(None, "synchronous", value)?;
            self.synchronous = Some(wanted);
        }
        Ok(())
    }

    fn statement(&self, sql: &'static str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute(()).map(|_| ())
    }

    /// Moves pages from the write-ahead log into the file, as far as no reader needs them, waiting for nobody. To ask how long the
    /// log is costs as much as a small transaction, so it is asked now and then.
    fn checkpoint_if_large(&mut self) {
        self.unlooked += 1;
        if self.stopped.is_some() || self.unlooked < LOOK_EVERY {
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
