//! The work queue: a row for each job, and in memory which of them wait and who has which in hand. Waiting for work is told by the
//! writer after its commit, never asked for again and again.

mod lines;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use pyoco_core::ids::{ExecutionId, JobId, Tag, WorkerId};
use pyoco_core::time::{Millis, Timestamp};
use pyoco_ports::{Delivery, Durability, ErrorKind, Job, StoreError, WorkQueue};
use rusqlite::{Connection, OptionalExtension as _};
use tokio::sync::broadcast::error::RecvError;

use crate::command::Terms;
use crate::pen::Follower;
use crate::writer::Wake;
use crate::{SqliteStore, error};

use lines::{Change, Lent, Lines, Row, Waiting};

/// Shared with what runs on other threads. Never held while somebody reads or writes.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedLines(Arc<Mutex<Lines>>);

impl SharedLines {
    /// The jobs of a file that is opened.
    pub(crate) fn load(connection: &Connection) -> rusqlite::Result<Self> {
        let lines = Self::default();
        let sql = "SELECT id, tag, available_at, execution, delivered FROM jobs";
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query(())?;
        while let Some(found) = rows.next()? {
            let execution: String = found.get(3)?;
            let execution = ExecutionId::new(&execution).map_err(|why| error::unreadable(3, why))?;
            lines.get().load(&row(found)?, Waiting { execution, delivered: found.get(4)? });
        }
        Ok(lines)
    }

    fn get(&self) -> MutexGuard<'_, Lines> {
        // Each change is one step; a panic leaves nothing half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Follower for SharedLines {
    fn began(&self) {
        self.get().begin();
    }

    fn committed(&self) {
        self.get().commit();
    }
}

/// Acknowledgements that are lost with the power are only a delivery more, so nobody waits for the disk.
const fn terms(operation: &'static str) -> Terms {
    Terms { operation, durability: Durability::Process, wakes: None }
}

// None of these is fenced by the number of the delivery: the claim in the log is what fences, the queue is a hint.
#[async_trait]
impl WorkQueue for SqliteStore {
    async fn enqueue(&self, job: Job, now: Timestamp) -> Result<(), StoreError> {
        self.hear(now);
        let (wakes, lines) = (Some(job.tag.clone()), self.lines().clone());
        let terms = Terms { operation: "enqueue", durability: Durability::Full, wakes };
        self.write(terms, move |connection| enqueue(connection, &lines, &job, Some(now))).await
    }

    async fn take(
        &self,
        tags: &[Tag],
        _worker: &WorkerId,
        most: usize,
        lease: Millis,
        now: Timestamp,
    ) -> Result<Vec<Delivery>, StoreError> {
        self.hear(now);
        self.when_open("take")?;
        let lent = self.lines().get().lend(tags, most, now.after(lease), now);
        if lent.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<i64> = lent.iter().map(|lent| lent.id).collect();
        let lines = self.lines().clone();
        let taken = self.main().read_briefly("take", move |connection| {
            let mut taken = Vec::with_capacity(lent.len());
            for lent in lent {
                let id = lent.id;
                match delivery(connection, lent)? {
                    Some(delivery) => taken.push(delivery),
                    // Somebody was done with it, or it was removed with its execution.
                    None => lines.get().forget(id),
                }
            }
            Ok(taken)
        });
        let taken = taken.await;
        if taken.is_err() {
            // Nobody got them.
            ids.into_iter().for_each(|id| self.lines().get().take_back(id));
        }
        taken
    }

    async fn wait(&self, tags: &[Tag], patience: Duration) -> Result<(), StoreError> {
        self.when_open("wait")?;
        // Listen first, then look: what comes in between is seen or heard.
        let mut wakes = self.wakes();
        let now = self.last_now().load(Ordering::Relaxed);
        let first = self.lines().get().earliest(tags);
        let patience = match first {
            None => patience,
            Some(at) => patience.min(until(at, now)),
        };
        let called = async {
            loop {
                match wakes.recv().await {
                    Ok(Wake::Tag(tag)) if !tags.contains(&tag) => {}
                    // One who missed some calls cannot know whether it was meant.
                    Ok(Wake::Tag(_) | Wake::Everybody) | Err(RecvError::Lagged(_) | RecvError::Closed) => {
                        return;
                    }
                }
            }
        };
        // Called or out of patience: the caller looks either way.
        let _ = tokio::time::timeout(patience, called).await;
        Ok(())
    }

    async fn extend(&self, delivery: &Delivery, lease: Millis, now: Timestamp) -> Result<(), StoreError> {
        self.hear(now);
        if let Some(id) = number(&delivery.id) {
            self.lines().get().extend(id, delivery.number, now.after(lease));
        }
        Ok(())
    }

    async fn ack(&self, delivery: &Delivery) -> Result<(), StoreError> {
        let Some(id) = number(&delivery.id) else { return Ok(()) };
        if self.lines().get().was_done(id) {
            return Ok(());
        }
        let Some(execution) = self.lines().get().execution_of(id, &delivery.tag) else { return Ok(()) };
        let lines = self.lines().clone();
        let work = move |connection: &Connection| delete(connection, &lines, &execution, id);
        self.main().write_briefly(terms("ack"), work).await?;
        Ok(())
    }

    async fn nak(&self, delivery: &Delivery, delay: Millis, now: Timestamp) -> Result<(), StoreError> {
        self.hear(now);
        let Some(id) = number(&delivery.id) else { return Ok(()) };
        let (lines, number) = (self.lines().clone(), delivery.number);
        let Some(execution) = lines.get().execution_of(id, &delivery.tag) else { return Ok(()) };
        let at = if delay.0 == 0 { 0 } else { now.after(delay).as_micros().max(1) };
        // Also when it is delayed: those who wait have to learn until when.
        let terms = Terms { wakes: Some(delivery.tag.clone()), ..terms("nak") };
        self.write(terms, move |connection| {
            if lines.get().holds(id, number) {
                let sql = "UPDATE jobs SET available_at = ?3, delivered = max(delivered, ?4) \
                           WHERE execution = ?1 AND id = ?2";
                let found = connection.prepare_cached(sql)?.execute((execution.as_str(), id, at, number))?;
                if found > 0 {
                    lines.get().note(Change::GivenBack { id, number, at });
                }
            }
            Ok(())
        })
        .await
    }

    async fn drop_waiting(&self, execution: &ExecutionId) -> Result<(), StoreError> {
        let (execution, lines) = (execution.clone(), self.lines().clone());
        self.write(terms("drop jobs"), move |connection| drop_waiting(connection, &lines, &execution)).await
    }

    async fn queued(&self, tag: &Tag) -> Result<Vec<ExecutionId>, StoreError> {
        self.when_open("queued")?;
        Ok(self.lines().get().executions(tag))
    }

    async fn depth(&self, tag: &Tag) -> Result<u64, StoreError> {
        self.when_open("depth")?;
        Ok(self.lines().get().depth(tag) as u64)
    }
}

impl SqliteStore {
    fn hear(&self, now: Timestamp) {
        self.last_now().store(now.as_micros(), Ordering::Relaxed);
    }

    fn when_open(&self, operation: &'static str) -> Result<(), StoreError> {
        if self.is_open() { Ok(()) } else { Err(StoreError::plain(ErrorKind::Closed, operation)) }
    }
}

/// Puts a job at the end of its queue, to be taken at once.
pub(crate) fn enqueue(
    connection: &Connection,
    lines: &SharedLines,
    job: &Job,
    now: Option<Timestamp>,
) -> rusqlite::Result<()> {
    let id = lines.get().next_id(now);
    connection
        .prepare_cached("INSERT INTO jobs (execution, id, tag, body) VALUES (?1, ?2, ?3, ?4)")?
        .execute((job.execution.as_str(), id, job.tag.as_str(), &job.body))?;
    lines.get().note(Change::Added(id, job.tag.clone(), job.execution.clone()));
    Ok(())
}

/// Removes the jobs of an execution that nobody has in hand.
pub(crate) fn drop_waiting(
    connection: &Connection,
    lines: &SharedLines,
    execution: &ExecutionId,
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached("SELECT id FROM jobs WHERE execution = ?1")?;
    let ids: Vec<i64> =
        statement.query_map([execution.as_str()], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    for id in ids {
        if !lines.get().is_held(id) {
            delete(connection, lines, execution, id)?;
        }
    }
    Ok(())
}

/// Removes every job of an execution that has ended. Whoever has one in hand need not do it again.
pub(crate) fn drop_all(
    connection: &Connection,
    lines: &SharedLines,
    execution: &ExecutionId,
) -> rusqlite::Result<()> {
    let sql = "DELETE FROM jobs WHERE execution = ?1 RETURNING id, tag, available_at";
    let mut statement = connection.prepare_cached(sql)?;
    for row in statement.query_map([execution.as_str()], row)? {
        lines.get().note(Change::Ended(row?));
    }
    Ok(())
}

fn delete(
    connection: &Connection,
    lines: &SharedLines,
    execution: &ExecutionId,
    id: i64,
) -> rusqlite::Result<()> {
    let sql = "DELETE FROM jobs WHERE execution = ?1 AND id = ?2 RETURNING id, tag, available_at";
    let mut statement = connection.prepare_cached(sql)?;
    if let Some(row) = statement.query_row((execution.as_str(), id), row).optional()? {
        lines.get().note(Change::Removed(row));
    }
    Ok(())
}

/// Where a row stands: its number, its tag, and from when on it may be taken.
fn row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Row> {
    let tag: String = row.get(1)?;
    let tag = Tag::new(&tag).map_err(|why| error::unreadable(1, why))?;
    Ok(Row { id: row.get(0)?, tag, available_at: row.get(2)? })
}

/// A job as it is given to whoever has it; nothing if its row is gone.
fn delivery(connection: &Connection, lent: Lent) -> rusqlite::Result<Option<Delivery>> {
    let sql = "SELECT body FROM jobs WHERE execution = ?1 AND id = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let body = statement.query_row((lent.job.execution.as_str(), lent.id), |row| row.get(0)).optional()?;
    let id = JobId::new(&lent.id.to_string()).map_err(|why| error::unreadable(0, why))?;
    let Lent { tag, job, .. } = lent;
    Ok(body.map(|body| Delivery { id, tag, number: job.delivered, body, receipt: String::new() }))
}

/// How long it is until then; nothing if it has come.
fn until(at: i64, now: i64) -> Duration {
    Duration::from_micros(u64::try_from(at.saturating_sub(now.max(0))).unwrap_or(0))
}

/// The row that a delivery names; none if it is not one of ours.
fn number(id: &JobId) -> Option<i64> {
    id.as_str().parse().ok()
}
