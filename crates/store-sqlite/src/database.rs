//! One file at work: its writer's thread with a bounded inbox, its readers, and how both are let go.
//! Which files there are, and what is written to which, is not known here.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use pyoco_figures::{Figures, Stopwatch};
use pyoco_ports::{Durability, ErrorKind, StoreError};
use rusqlite::Connection;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, broadcast, oneshot, watch};

use crate::command::{Command, Kept, Task, Terms};
use crate::inbox::{Inbox, Refused, inbox};
use crate::pen::{Desk, Follower, Pen};
use crate::readers::Readers;
use crate::writer::{Counted, Log, Wake, Writer, wake};

/// Wakes that one who waits may be behind before it is simply woken.
const WAKES: usize = 256;

/// How a file is worked on.
pub(crate) struct Settings {
    /// What its figures are called.
    pub(crate) file: &'static str,
    /// What its writer's thread is called.
    pub(crate) thread: &'static str,
    /// How many places there are for commands that wait for the writer.
    pub(crate) places: u32,
    /// How long a caller waits for a place; none: until there is one.
    pub(crate) patience: Option<Duration>,
    /// Pages in the write-ahead log that are not yet in the file, before they are moved.
    pub(crate) checkpoint_pages: i64,
    /// Whether what was written must survive more than this process.
    pub(crate) syncs: bool,
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

/// A file with its writer and its readers.
pub(crate) struct Database {
    settings: Settings,
    /// The way to the writer; closed once the file is.
    inbox: Inbox<Box<dyn Command>>,
    desk: Desk,
    counted: Counted,
    places: Arc<Semaphore>,
    thread: Mutex<Option<Thread>>,
    readers: Arc<Readers>,
    wake: broadcast::Sender<Wake>,
    /// Whether the writer had to give up.
    gave_up: watch::Receiver<bool>,
}

/// The writer, until it has ended.
pub(crate) type Thread = JoinHandle<Result<(), StoreError>>;

impl Database {
    /// Starts the writer on a file that was found good. Damage that is met later is marked, if it is said where.
    pub(crate) fn start(
        path: PathBuf,
        connection: Connection,
        settings: Settings,
        around: Around,
    ) -> std::io::Result<Self> {
        let (inbox, outlet) = inbox();
        let (wake, _) = broadcast::channel(WAKES);
        let (giving_up, gave_up) = watch::channel(false);
        let Around { mark, figures, follower } = around;
        let log = settings.syncs.then(|| Log::of(&path));
        let pen = Pen::new(connection, giving_up, settings.checkpoint_pages, mark.clone(), follower);
        let (desk, counted) = (Desk::with(pen), (settings.file, figures));
        let writer = Writer { desk: desk.clone(), outlet, wake: wake.clone(), log, counted: counted.clone() };
        let thread = std::thread::Builder::new().name(settings.thread.to_owned()).spawn(|| writer.run())?;
        let places = usize::try_from(settings.places).unwrap_or(Semaphore::MAX_PERMITS);
        Ok(Self {
            settings,
            inbox,
            desk,
            counted,
            places: Arc::new(Semaphore::new(places)),
            thread: Mutex::new(Some(thread)),
            readers: Arc::new(Readers::new(path, mark)),
            wake,
            gave_up,
        })
    }

    /// Whether it was neither closed nor given up.
    pub(crate) fn is_open(&self) -> bool {
        self.inbox.is_open() && !*self.gave_up.borrow()
    }

    /// Returns when the writer has given up; not at all if it never does.
    pub(crate) async fn gave_up(&self) {
        let mut gave_up = self.gave_up.clone();
        if gave_up.wait_for(|gave_up| *gave_up).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Hands work to the writer and waits until it is committed. A heavy command takes several places of the inbox.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        terms: Terms,
        weight: u32,
        work: impl FnMut(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        Ok(self.hand_over(terms, weight, work, Some).await?.0)
    }

    /// Writes something small, and waits until it is committed. On the caller's own thread if it need not wait for the disk, nobody writes
    /// and there is no crowd: to wake the writer and be woken by it takes longer than a small transaction. What is still to come if it was
    /// only promised that it will be on the disk is given with the answer.
    pub(crate) async fn write_briefly<T: Send + 'static>(
        &self,
        terms: Terms,
        work: impl FnMut(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<(T, Option<Kept>), StoreError> {
        self.hand_over(terms, 1, work, |command| self.write_at_once(command)).await
    }

    /// Has a command carried out and waits for its answer: by the writer, unless somebody else takes it first.
    async fn hand_over<T: Send + 'static>(
        &self,
        terms: Terms,
        weight: u32,
        work: impl FnMut(&Connection) -> rusqlite::Result<T> + Send + 'static,
        first: impl FnOnce(Box<dyn Command>) -> Option<Box<dyn Command>>,
    ) -> Result<(T, Option<Kept>), StoreError> {
        let operation = terms.operation;
        let Ok(place) = self.place(weight).await else {
            return Err(StoreError::new(ErrorKind::Unavailable, operation, "too many are waiting to write"));
        };
        let (reply, answer) = oneshot::channel();
        let task = Task { terms, work, result: None, reply: Some(reply), promise: None, _place: place };
        if let Some(command) = first(Box::new(task)) {
            self.inbox.put([command]).map_err(|refused| match refused {
                Refused::Closed => StoreError::plain(ErrorKind::Closed, operation),
                Refused::Deserted => gone(operation),
            })?;
        }
        // Whoever takes a command answers it, unless it breaks; then the command may have been done.
        answer
            .await
            .unwrap_or_else(|_| Err(StoreError::new(ErrorKind::Timeout, operation, "the writer broke down")))
    }

    /// Gives the command back if it has to wait.
    fn write_at_once(&self, command: Box<dyn Command>) -> Option<Box<dyn Command>> {
        if command.durability() != Durability::Process || !self.inbox.is_quiet() {
            return Some(command);
        }
        let Some(mut pen) = self.desk.look() else {
            self.inbox.disturb();
            return Some(command);
        };
        let Some(in_hand) = pen.as_mut() else { return Some(command) };
        let (watch, was_tidy) = (Stopwatch::start(), in_hand.is_tidy());
        let mut batch = [command];
        let done = in_hand.commit(&mut batch);
        let is_care_due = was_tidy || in_hand.is_look_due();
        drop(pen);
        if is_care_due {
            self.inbox.ring();
        }
        let (file, figures) = &self.counted;
        figures.committed(file, watch.seconds(), batch.len());
        for command in batch {
            if done.is_ok() {
                wake(&self.wake, &*command);
            }
            command.answer(done.as_ref().err());
        }
        None
    }

    /// A place in the inbox; none if it stayed full for too long.
    async fn place(&self, weight: u32) -> Result<OwnedSemaphorePermit, NoPlace> {
        // The heaviest waits until it is alone.
        let weight = weight.clamp(1, self.settings.places);
        let place = Arc::clone(&self.places).acquire_many_owned(weight);
        match self.settings.patience {
            Some(patience) => Ok(tokio::time::timeout(patience, place).await.map_err(|_| NoPlace)??),
            None => Ok(place.await?),
        }
    }

    /// Reads on a connection of its own.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.readers.read(operation, work).await
    }

    /// Reads a few rows that were just written.
    pub(crate) async fn read_briefly<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.readers.read_briefly(operation, work).await
    }

    /// Reads for as long as it takes: one at a time, and nobody else waits for it.
    pub(crate) async fn read_apart<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.readers.read_apart(operation, work).await
    }

    pub(crate) fn wakes(&self) -> broadcast::Receiver<Wake> {
        self.wake.subscribe()
    }

    /// Takes nothing more, waits for the readers, and gives the writer that is finishing what was sent before; none if
    /// that was done before.
    pub(crate) async fn shut(&self) -> Option<Thread> {
        self.inbox.close();
        let _ = self.wake.send(Wake::Everybody);
        // First the readers, so that nothing keeps the writer from emptying the write-ahead log.
        self.readers.close().await;
        guard(&self.thread).take()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.inbox.close();
        self.readers.close_idle();
        if let Some(thread) = guard(&self.thread).take() {
            let _ = thread.join();
        }
    }
}

/// The inbox stayed full.
struct NoPlace;

impl From<AcquireError> for NoPlace {
    fn from(_: AcquireError) -> Self {
        Self
    }
}

/// How a writer ended.
pub(crate) fn ended(thread: Thread) -> Result<(), StoreError> {
    thread.join().unwrap_or_else(|_| Err(gone("close")))
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
