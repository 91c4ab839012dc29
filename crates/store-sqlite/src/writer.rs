//! The writer: one thread with the only connection that writes. It gathers what is waiting into one transaction, answers when that is as
//! safe as was asked for, and takes care of the write-ahead log. What a command writes is not its business.
//!
//! SQLite syncs that log only before pages of it go to the file (`synchronous = NORMAL`): the order in which pages reach the disk stays
//! its business, and when a transaction is on the disk is seen to here. So whoever waits for work, and whoever need not wait for the
//! disk, hears of a transaction as soon as it is committed.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pyoco_core::ids::Tag;
use pyoco_figures::{Figures, Stopwatch};
use pyoco_ports::{Durability, ErrorKind, StoreError};
use rusqlite::Connection;
use tokio::sync::{broadcast, watch};

use crate::command::{Command, Lost, Ran};
use crate::database::Settings;
use crate::inbox::{Outlet, Taken};
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
    outlet: Outlet<Box<dyn Command>>,
    wake: broadcast::Sender<Wake>,
    giving_up: watch::Sender<bool>,
    /// Pages in the write-ahead log that are not yet in the file, before they are moved.
    checkpoint_pages: i64,
    /// Where damage of the file is marked, if anywhere.
    mark: Option<PathBuf>,
    /// What is put on the disk; none if nothing has to be there.
    log: Option<Log>,
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
        outlet: Outlet<Box<dyn Command>>,
        wake: broadcast::Sender<Wake>,
        giving_up: watch::Sender<bool>,
        log: Option<Log>,
        settings: &Settings,
        around: Around,
    ) -> Self {
        // The file may have been left with a write-ahead log, so the first pause looks after it.
        Self {
            connection,
            outlet,
            wake,
            checkpoint_pages: settings.checkpoint_pages,
            mark: around.mark,
            log,
            giving_up,
            dirty: true,
            unlooked: 0,
            stopped: None,
            counted: (settings.file, around.figures),
            follower: around.follower,
        }
    }

    /// Works until every sender is gone and the inbox is empty, then leaves the file without a write-ahead log.
    pub(crate) fn run(mut self) -> Result<(), StoreError> {
        while let Some(mut batch) = self.next() {
            let watch = Stopwatch::start();
            let done = match &self.stopped {
                Some(why) => Err(why.clone()),
                None => self.commit(&mut batch),
            };
            match done {
                Ok(()) => self.committed(batch, &watch),
                Err(lost) => batch.into_iter().for_each(|command| command.answer(Some(&lost))),
            }
            self.checkpoint_if_large();
        }
        match self.stopped {
            Some(why) => Err(why.into_error("close")),
            None => truncate(&self.connection).map_err(|error| error::store("close", error)),
        }
    }

    /// Wakes who waits for work, and answers: first whoever need not wait for the disk.
    fn committed(&mut self, batch: Vec<Box<dyn Command>>, watch: &Stopwatch) {
        let count = batch.len();
        for tag in batch.iter().filter_map(|command| command.wakes()) {
            // Nobody may be waiting.
            let _ = self.wake.send(Wake::Tag(tag.clone()));
        }
        let (promised, progress): (Vec<_>, Vec<_>) =
            batch.into_iter().partition(|command| command.durability() == Durability::Full);
        progress.into_iter().for_each(|command| command.answer(None));
        let synced = match &mut self.log {
            Some(log) if !promised.is_empty() => log.sync(),
            Some(_) | None => Ok(()),
        };
        let (file, figures) = &self.counted;
        figures.committed(file, watch.seconds(), count);
        // It is in the write-ahead log and may come back when the file is opened again.
        let lost = synced.err().map(|error| self.give_up(&error, ErrorKind::Timeout));
        promised.into_iter().for_each(|command| command.answer(lost.as_ref()));
    }

    /// What is to be written together; nothing when nothing more will come.
    fn next(&mut self) -> Option<Vec<Box<dyn Command>>> {
        let is_tidy = !self.dirty || self.stopped.is_some();
        match self.outlet.take(MOST, (!is_tidy).then_some(IDLE)) {
            Taken::Some(batch) => return Some(batch),
            Taken::Over => return None,
            Taken::Late => {}
        }
        // A reader in the way is no harm: close, or the next pause, does it. So nobody waits for one here.
        let _ = connection::patient(&self.connection, false);
        let _ = truncate(&self.connection);
        let _ = connection::patient(&self.connection, true);
        self.dirty = false;
        self.next()
    }

    /// Runs a batch in one transaction. An error means that none of it was done, or that nobody knows.
    fn commit(&mut self, batch: &mut [Box<dyn Command>]) -> Result<(), Lost> {
        self.dirty = true;
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
        if let Some(follower) = self.follower.as_ref().filter(|_| committed.is_ok()) {
            follower.committed();
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
        self.give_up(error, kind)
    }

    fn give_up(&mut self, error: &impl std::fmt::Display, kind: ErrorKind) -> Lost {
        self.stopped = Some(Lost::stopped(error));
        self.giving_up.send_replace(true);
        Lost::new(kind, error)
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

/// The write-ahead log of a file, as something to be put on the disk.
pub(crate) struct Log {
    path: PathBuf,
    file: Option<File>,
}

impl Log {
    pub(crate) fn of(file: &Path) -> Self {
        let mut path = file.as_os_str().to_owned();
        path.push("-wal");
        Self { path: path.into(), file: None }
    }

    /// It is there as soon as something was committed, and stays the same file as long as the writer has its connection.
    fn sync(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(File::open(&self.path)?),
        };
        file.sync_data()
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
