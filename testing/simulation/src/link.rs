//! How one process reaches the store: the log, the queue, the index and whatever else decides something, in bad weather.
//!
//! A request is a message. Once it is on its way nothing calls it back, neither the impatience of its sender nor its death; and a
//! process that is dead sends nothing and hears nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use pyoco_core::ids::{ExecutionId, Tag, Version, WorkerId};
use pyoco_core::time::{Millis, Timestamp};
use pyoco_ports::{
    Append, AppendError, Appended, DeadLetterRecord, Delivery, ErrorKind, EventLog, Heard, IndexRow, Job,
    Listening, LogPlace, News, Peers, StoreError, StoredRecord, Unshown, WorkQueue, WorkerRecord,
    WorkerRegistry,
};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::weather::{Fate, Lie, SILENCE};
use crate::world::World;

/// The connection of one process. Whoever is started again has a new one.
pub(crate) struct Link {
    pub(crate) world: Arc<World>,
    pub(crate) process: Arc<str>,
    is_cut: AtomicBool,
}

impl Link {
    pub(crate) fn new(world: &Arc<World>, process: &Arc<str>) -> Arc<Self> {
        Arc::new(Self { world: world.clone(), process: process.clone(), is_cut: AtomicBool::new(false) })
    }

    /// The process is dead.
    pub(crate) fn cut(&self) {
        self.is_cut.store(true, Ordering::Relaxed);
    }

    /// Never returns to a process that is dead.
    pub(crate) async fn alive(&self) {
        if self.is_cut.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    }

    /// Sends a request, with whatever becomes of it.
    pub(crate) async fn send<T, E>(
        &self,
        what: &'static str,
        of: &str,
        work: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + std::fmt::Display + 'static,
    {
        self.alive().await;
        let fate = self.world.fate(false);
        let answer = self.meet(fate, false, what, work).await;
        self.heard(what, of, fate, answer).await
    }

    /// Notes what a process hears, if it still hears anything.
    async fn heard<T, E>(&self, what: &str, of: &str, fate: Fate, answer: Result<T, E>) -> Result<T, E>
    where
        E: std::fmt::Display,
    {
        self.alive().await;
        match &answer {
            Ok(_) => self.world.note(format_args!("{} {what} {of}: {fate:?}", self.process)),
            Err(error) => self.world.note(format_args!("{} {what} {of}: {fate:?}: {error}", self.process)),
        }
        answer
    }

    async fn meet<T, E>(
        &self,
        fate: Fate,
        is_append: bool,
        what: &'static str,
        work: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let silence = || E::from(StoreError::plain(ErrorKind::Timeout, what));
        match fate {
            Fate::Answered { there, back } => {
                let answer = match there.is_zero() {
                    true => work.await,
                    false => arriving_after(there, work).await.map_err(|_| silence())?,
                };
                pause(back).await;
                answer
            }
            // A neighbour in flight is an append's business alone.
            Fate::Refused | Fate::InFlight => Err(StoreError::plain(ErrorKind::Unavailable, what).into()),
            Fate::Lost => {
                pause(SILENCE).await;
                Err(silence())
            }
            Fate::Unanswered { there } => {
                let is_done = arriving_after(there, work).await.is_ok_and(|answer| answer.is_ok());
                self.world.witness().seen.applied_but_unanswered += u64::from(is_append && is_done);
                pause(SILENCE).await;
                Err(silence())
            }
            Fate::Late { there } => {
                let arriving = arriving_after(SILENCE + there, work);
                let world = self.world.clone();
                tokio::spawn(async move {
                    let is_done = arriving.await.is_ok_and(|answer| answer.is_ok());
                    world.witness().seen.applied_late += u64::from(is_append && is_done);
                });
                pause(SILENCE).await;
                Err(silence())
            }
        }
    }
}

/// Does something after a while, whether or not anybody still waits for it.
fn arriving_after<T: Send + 'static>(
    there: Duration,
    work: impl Future<Output = T> + Send + 'static,
) -> oneshot::Receiver<T> {
    let (sender, receiver) = oneshot::channel();
    tokio::spawn(async move {
        pause(there).await;
        // Nobody may be waiting any more.
        let _ = sender.send(work.await);
    });
    receiver
}

async fn pause(time: Duration) {
    if !time.is_zero() {
        tokio::time::sleep(time).await;
    }
}

impl World {
    /// Stores a record, and lets the witness see it.
    async fn store_record(&self, process: &Arc<str>, append: Append) -> Result<Appended, AppendError> {
        let (execution, bytes) = (append.execution.clone(), append.bytes.clone());
        if self.lies(Lie::ForgetsRecords) {
            return Ok(Appended::default());
        }
        // A shared store leaves to the engine what follows from a record.
        let (mut append, left) = if self.is_shared {
            let left = Box::new(append.clone());
            (Append { row: None, enqueue: None, drop_job: false, dead_letter: None, ..append }, Some(left))
        } else {
            (append, None)
        };
        if self.lies(Lie::IgnoresTheVersion) {
            append.expected = Version(self.store.read(&execution, Version(0)).await?.len() as u64);
        }
        let again = self.lies(Lie::StoresTwice).then(|| append.clone());
        if let Err(error) = self.store.append(append).await {
            self.witness().seen.conflicts += 1;
            return Err(error);
        }
        self.witness().stored(process, &execution, &bytes);
        self.shown().begun(&execution);
        if let Some(mut again) = again {
            again.expected = again.expected.next();
            self.store.append(again).await?;
            self.witness().stored(process, &execution, &bytes);
        }
        Ok(Appended { left, promise: None })
    }
}

#[async_trait]
impl EventLog for Link {
    async fn append(&self, append: Append) -> Result<Appended, AppendError> {
        let of = format!("{}@{}", append.execution, append.expected.next());
        let (execution, expected) = (append.execution.clone(), append.expected);
        let (world, process) = (self.world.clone(), self.process.clone());
        self.alive().await;
        let fate = self.world.fate(true);
        let answer = if fate == Fate::InFlight {
            let actual = Version(self.world.store.read(&execution, Version(0)).await?.len() as u64);
            Err(AppendError::Conflict { expected, actual })
        } else {
            let work = async move { world.store_record(&process, append).await };
            self.meet(fate, true, "append", work).await
        };
        self.heard("append", &of, fate, answer).await
    }

    async fn read(&self, execution: &ExecutionId, after: Version) -> Result<Vec<StoredRecord>, StoreError> {
        let (store, id) = (self.world.store.clone(), execution.clone());
        let mut records: Vec<StoredRecord> =
            self.send("read", execution.as_str(), async move { store.read(&id, after).await }).await?;
        if records.len() > 1 && self.world.lies(Lie::ReadsOldLogs) {
            records.pop();
        }
        Ok(records)
    }

    async fn read_some(
        &self,
        execution: &ExecutionId,
        after: Version,
        limit: usize,
    ) -> Result<Vec<StoredRecord>, StoreError> {
        let (store, id) = (self.world.store.clone(), execution.clone());
        self.send("read some", execution.as_str(), async move { store.read_some(&id, after, limit).await })
            .await
    }

    /// Where there is nothing to find no dice are thrown, so that a seed stays the history that it was.
    async fn unshown(&self) -> Result<Unshown, StoreError> {
        self.alive().await;
        let found = if self.world.is_shared { self.world.shown().unshown() } else { Unshown::default() };
        match found.executions.is_empty() {
            true => Ok(found),
            false => self.send("unshown", "", async move { Ok::<_, StoreError>(found) }).await,
        }
    }

    async fn shown_until(&self, place: LogPlace) -> Result<(), StoreError> {
        self.alive().await;
        self.world.shown().shown_until(place);
        Ok(())
    }
}

#[async_trait]
impl WorkQueue for Link {
    async fn enqueue(&self, job: Job, now: Timestamp) -> Result<(), StoreError> {
        let (world, of) = (self.world.clone(), job.execution.to_string());
        let doubled = self.world.strikes(|weather| weather.doubled).then(|| job.clone());
        self.send("enqueue", &of, async move {
            if let Some(job) = doubled {
                world.witness().seen.jobs_doubled += 1;
                world.store.enqueue(job, now).await?;
            }
            world.store.enqueue(job, now).await
        })
        .await
    }

    async fn take(
        &self,
        tags: &[Tag],
        worker: &WorkerId,
        most: usize,
        lease: Millis,
        now: Timestamp,
    ) -> Result<Vec<Delivery>, StoreError> {
        let (world, tags, worker) = (self.world.clone(), tags.to_vec(), worker.clone());
        let process = self.process.clone();
        let taken = self.send("take", "", async move {
            let mut taken = world.store.take(&tags, &worker, most, lease, now).await?;
            if world.lie == Some(Lie::SwallowsJobs) {
                taken.retain(|delivery| delivery.number == 1);
            }
            for delivery in &taken {
                world.taken(delivery);
                world.witness().given(&process, delivery);
                if world.strikes(|weather| weather.unleased) {
                    world.witness().unleased(&delivery.id);
                    let (world, delivery, after) = (world.clone(), delivery.clone(), world.millis(5_000));
                    tokio::spawn(async move {
                        pause(after).await;
                        world.note(format_args!("the lease of job {} is lost", delivery.id));
                        world.store.nak(&delivery, Millis(0), now).await
                    });
                }
            }
            Ok::<_, StoreError>(taken)
        });
        let taken = taken.await?;
        for delivery in &taken {
            let (id, number) = (&delivery.id, delivery.number);
            self.world.note(format_args!("{} has job {id}, delivery {number}", self.process));
        }
        Ok(taken)
    }

    async fn wait(&self, tags: &[Tag], patience: Duration) -> Result<(), StoreError> {
        self.alive().await;
        self.world.store.wait(tags, patience).await
    }

    async fn extend(&self, delivery: &Delivery, lease: Millis, now: Timestamp) -> Result<(), StoreError> {
        let (store, of) = (self.world.store.clone(), delivery.clone());
        let of_job = delivery.id.to_string();
        self.send("extend", &of_job, async move { store.extend(&of, lease, now).await }).await
    }

    async fn ack(&self, delivery: &Delivery) -> Result<(), StoreError> {
        self.alive().await;
        self.world.witness().answers(&self.process, delivery, true);
        self.world.is_seen(&self.process, delivery);
        let (world, of, of_job) = (self.world.clone(), delivery.clone(), delivery.id.to_string());
        self.send("ack", &of_job, async move {
            world.answered(&of);
            world.store.ack(&of).await
        })
        .await
    }

    async fn nak(&self, delivery: &Delivery, delay: Millis, now: Timestamp) -> Result<(), StoreError> {
        self.alive().await;
        self.world.witness().answers(&self.process, delivery, false);
        let (world, of, of_job) = (self.world.clone(), delivery.clone(), delivery.id.to_string());
        self.send("nak", &of_job, async move {
            world.answered(&of);
            world.store.nak(&of, delay, now).await
        })
        .await
    }

    async fn drop_waiting(&self, execution: &ExecutionId) -> Result<(), StoreError> {
        let (store, id) = (self.world.store.clone(), execution.clone());
        self.send("drop waiting", execution.as_str(), async move { store.drop_waiting(&id).await }).await
    }

    async fn depth(&self, tag: &Tag) -> Result<u64, StoreError> {
        let (store, tag) = (self.world.store.clone(), tag.clone());
        self.send("depth", "", async move { store.depth(&tag).await }).await
    }

    async fn queued(&self, tag: &Tag) -> Result<Vec<ExecutionId>, StoreError> {
        let (store, tag) = (self.world.store.clone(), tag.clone());
        self.send("queued", "", async move { store.queued(&tag).await }).await
    }
}

#[async_trait]
impl WorkerRegistry for Link {
    async fn report(&self, record: WorkerRecord) -> Result<(), StoreError> {
        let store = self.world.store.clone();
        self.send("report", "", async move { store.report(record).await }).await
    }

    async fn worker(&self, worker: &WorkerId) -> Result<Option<WorkerRecord>, StoreError> {
        let (store, worker) = (self.world.store.clone(), worker.clone());
        self.send("worker", "", async move { store.worker(&worker).await }).await
    }

    async fn workers(&self) -> Result<Vec<WorkerRecord>, StoreError> {
        self.world.store.workers().await
    }

    async fn hide(&self, worker: &WorkerId, hidden: bool) -> Result<Option<WorkerRecord>, StoreError> {
        self.world.store.hide(worker, hidden).await
    }
}

#[async_trait]
impl Peers for Link {
    async fn listen(
        &self,
        execution: &ExecutionId,
        _now: Timestamp,
    ) -> Result<Option<Box<dyn Listening>>, StoreError> {
        if !self.world.is_shared {
            return Ok(None);
        }
        let (world, id) = (self.world.clone(), execution.clone());
        let hearing = self.send("listen", execution.as_str(), async move {
            Ok::<_, StoreError>(Hearing(world.listen(&id)))
        });
        Ok(Some(Box::new(hearing.await?)))
    }

    async fn snapshot(&self, execution: &ExecutionId) -> Result<Option<News>, StoreError> {
        let (world, id) = (self.world.clone(), execution.clone());
        let published = self
            .send("snapshot", execution.as_str(), async move { Ok::<_, StoreError>(world.published(&id)) });
        Ok(published.await?.map(|(version, _)| News::Ours(version)))
    }

    async fn snapshot_body(&self, execution: &ExecutionId) -> Result<Option<Value>, StoreError> {
        let (world, id) = (self.world.clone(), execution.clone());
        let published = self
            .send("snapshot", execution.as_str(), async move { Ok::<_, StoreError>(world.published(&id)) });
        Ok(published.await?.map(|(_, body)| body))
    }
}

impl Link {
    /// Puts a row, and in a shared store the snapshot beside it.
    pub(crate) async fn show(&self, row: IndexRow, snapshot: Option<Vec<u8>>) -> Result<(), StoreError> {
        use pyoco_ports::RunIndex as _;
        let (world, of) = (self.world.clone(), format!("{}@{}", row.execution, row.version));
        self.send("show", &of, async move {
            let (execution, version) = (row.execution.clone(), row.version);
            world.store.put(row).await?;
            if let Some(snapshot) = snapshot {
                world.shown().publish(&execution, version, &snapshot);
                world.tell(&Heard { execution, news: News::Ours(version) });
            }
            Ok::<_, StoreError>(())
        })
        .await
    }

    /// Keeps a dead letter.
    pub(crate) async fn bury(&self, letter: DeadLetterRecord) -> Result<(), StoreError> {
        use pyoco_ports::DeadLetters as _;
        let store = self.world.store.clone();
        self.send("bury", "", async move { store.publish(letter).await }).await
    }
}

struct Hearing(mpsc::UnboundedReceiver<Heard>);

#[async_trait]
impl Listening for Hearing {
    async fn next(&mut self) -> Option<Heard> {
        self.0.recv().await
    }
}
