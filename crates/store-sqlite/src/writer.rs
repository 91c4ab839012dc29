//! The writer: a thread that gathers what is waiting into one transaction, answers when that is as safe as was asked for, and takes care of
//! the write-ahead log. What a command writes is not its business, nor what a transaction is (`pen`).
//!
//! SQLite syncs that log only before pages of it go to the file (`synchronous = NORMAL`): the order in which pages reach the disk stays
//! its business, and when a transaction is on the disk is seen to here. So whoever waits for work, and whoever need not wait for the
//! disk, hears of a transaction as soon as it is committed. Nor has anybody the pen while the disk is waited for: what is small and need
//! not wait for the disk is written meanwhile by whoever wants it written, unless somebody is waiting already (`Database::write_briefly`).

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pyoco_core::ids::Tag;
use pyoco_figures::{Figures, Stopwatch};
use pyoco_ports::{Durability, ErrorKind, StoreError};
use tokio::sync::broadcast;

use crate::command::{Command, Lost};
use crate::inbox::{Outlet, Taken};
use crate::pen::{Desk, Pen};

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

/// Tells those who wait for work what a command that is committed has for them.
pub(crate) fn wake(waiting: &broadcast::Sender<Wake>, command: &dyn Command) {
    if let Some(tag) = command.wakes() {
        // Nobody may be waiting.
        let _ = waiting.send(Wake::Tag(tag.clone()));
    }
}

/// What the file is called in the figures, and who counts.
pub(crate) type Counted = (&'static str, Figures);

/// The state of the writer's thread.
pub(crate) struct Writer {
    pub(crate) desk: Desk,
    pub(crate) outlet: Outlet<Box<dyn Command>>,
    pub(crate) wake: broadcast::Sender<Wake>,
    /// What is put on the disk; none if nothing has to be there.
    pub(crate) log: Option<Log>,
    pub(crate) counted: Counted,
}

impl Writer {
    /// Works until every sender is gone and the inbox is empty, then leaves the file without a write-ahead log.
    pub(crate) fn run(mut self) -> Result<(), StoreError> {
        while let Some(mut batch) = self.next() {
            let watch = Stopwatch::start();
            let done = match &mut *self.desk.wait() {
                Some(pen) => pen.commit(&mut batch),
                None => Err(Lost::stopped(&"it was put away")),
            };
            match done {
                Ok(()) => self.committed(batch, &watch),
                Err(lost) => batch.into_iter().for_each(|command| command.answer(Some(&lost))),
            }
            self.desk.wait().iter_mut().for_each(Pen::checkpoint_if_large);
        }
        self.desk.clear()
    }

    /// Wakes who waits for work, and answers: first whoever need not wait for the disk.
    fn committed(&mut self, mut batch: Vec<Box<dyn Command>>, watch: &Stopwatch) {
        let count = batch.len();
        for command in &mut batch {
            wake(&self.wake, &**command);
            command.committed();
        }
        let (promised, progress): (Vec<_>, Vec<_>) =
            batch.into_iter().partition(|command| command.durability() != Durability::Process);
        progress.into_iter().for_each(|command| command.answer(None));
        let synced = match &mut self.log {
            Some(log) if !promised.is_empty() => log.sync(),
            Some(_) | None => Ok(()),
        };
        let (file, figures) = &self.counted;
        figures.committed(file, watch.seconds(), count);
        // It is in the write-ahead log and may come back when the file is opened again.
        let lost = synced.err().map(|error| match &mut *self.desk.wait() {
            Some(pen) => pen.give_up(&error, ErrorKind::Timeout),
            None => Lost::new(ErrorKind::Timeout, &error),
        });
        promised.into_iter().for_each(|command| command.answer(lost.as_ref()));
    }

    /// What is to be written together; nothing when nothing more will come.
    fn next(&mut self) -> Option<Vec<Box<dyn Command>>> {
        loop {
            let (is_tidy, begun) =
                self.desk.wait().as_ref().map_or((true, 0), |pen| (pen.is_tidy(), pen.begun()));
            match self.outlet.take(MOST, (!is_tidy).then_some(IDLE)) {
                Taken::Some(batch) => return Some(batch),
                Taken::Over => return None,
                // Others may have written, or something is left to be tidied.
                Taken::Rung => self.desk.wait().iter_mut().for_each(Pen::checkpoint_if_large),
                Taken::Late => {
                    if let Some(pen) = self.desk.wait().as_mut().filter(|pen| pen.begun() == begun) {
                        pen.tidy();
                    }
                }
            }
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

    /// It is there as soon as something was committed, and stays the same file as long as there is a connection that writes.
    fn sync(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(File::open(&self.path)?),
        };
        file.sync_data()
    }
}
