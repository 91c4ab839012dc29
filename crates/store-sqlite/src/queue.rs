//! The work queue: rows with a lease. Waiting for work is told by the writer after its commit, never asked for again and again.

use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use pyoco_core::ids::{ExecutionId, JobId, Tag, WorkerId};
use pyoco_core::time::{Millis, Timestamp};
use pyoco_ports::{Delivery, Durability, Job, StoreError, WorkQueue};
use rusqlite::{Connection, OptionalExtension as _};
use tokio::sync::broadcast::error::RecvError;

use crate::command::Terms;
use crate::writer::Wake;
use crate::{SqliteStore, error};

/// Leases and acknowledgements that are lost with the power are only a delivery more, so nobody waits for the disk.
const fn terms(operation: &'static str) -> Terms {
    Terms { operation, durability: Durability::Process, wakes: None }
}

// None of these is fenced by the number of the delivery: the claim in the log is what fences, the queue is a hint.
#[async_trait]
impl WorkQueue for SqliteStore {
    async fn enqueue(&self, job: Job, now: Timestamp) -> Result<(), StoreError> {
        self.hear(now);
        let wakes = Some(job.tag.clone());
        let terms = Terms { operation: "enqueue", durability: Durability::Full, wakes };
        self.write(terms, move |connection| enqueue(connection, &job)).await
    }

    async fn take(
        &self,
        tags: &[Tag],
        worker: &WorkerId,
        most: usize,
        lease: Millis,
        now: Timestamp,
    ) -> Result<Vec<Delivery>, StoreError> {
        self.hear(now);
        if tags.is_empty() || most == 0 {
            return Ok(Vec::new());
        }
        let (tags, worker) = (tags.to_vec(), worker.clone());
        self.write(terms("take"), move |connection| {
            let mut found = Vec::new();
            for tag in &tags {
                found.extend(available(connection, tag, most, now)?);
            }
            // The oldest of all tags, and none twice if a tag was named twice.
            found.sort_unstable();
            found.dedup();
            found.truncate(most);
            found.into_iter().map(|id| lend(connection, id, &worker, now.after(lease))).collect()
        })
        .await
    }

    async fn wait(&self, tags: &[Tag], patience: Duration) -> Result<(), StoreError> {
        // Listen first, then look: what comes in between is seen or heard.
        let mut wakes = self.wakes();
        let wanted = tags.to_vec();
        let first = self.read("wait", move |connection| earliest(connection, &wanted)).await?;
        let patience = match first {
            None => patience,
            Some(at) => patience.min(until(at, self.last_now().load(Ordering::Relaxed))),
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
        let Some(id) = number(&delivery.id) else { return Ok(()) };
        let until = now.after(lease).as_micros();
        self.write(terms("extend"), move |connection| {
            // One that was given back meanwhile is put off, but does not come back into the hand.
            let sql = "UPDATE jobs SET available_at = ?2, leased_until = iif(leased_until IS NULL, NULL, ?2) WHERE id = ?1";
            connection.prepare_cached(sql)?.execute((id, until)).map(|_| ())
        })
        .await
    }

    async fn ack(&self, delivery: &Delivery) -> Result<(), StoreError> {
        let Some(id) = number(&delivery.id) else { return Ok(()) };
        self.write(terms("ack"), move |connection| {
            connection.prepare_cached("DELETE FROM jobs WHERE id = ?1")?.execute([id]).map(|_| ())
        })
        .await
    }

    async fn nak(&self, delivery: &Delivery, delay: Millis, now: Timestamp) -> Result<(), StoreError> {
        self.hear(now);
        let Some(id) = number(&delivery.id) else { return Ok(()) };
        let at = now.after(delay).as_micros();
        // Also when it is delayed: those who wait have to learn until when.
        let terms = Terms { wakes: Some(delivery.tag.clone()), ..terms("nak") };
        self.write(terms, move |connection| {
            let sql =
                "UPDATE jobs SET available_at = ?2, leased_until = NULL, leased_by = NULL WHERE id = ?1";
            connection.prepare_cached(sql)?.execute((id, at)).map(|_| ())
        })
        .await
    }

    async fn drop_waiting(&self, execution: &ExecutionId) -> Result<(), StoreError> {
        let execution = execution.clone();
        self.write(terms("drop jobs"), move |connection| drop_waiting(connection, &execution)).await
    }

    async fn queued(&self, tag: &Tag) -> Result<Vec<ExecutionId>, StoreError> {
        let tag = tag.clone();
        self.read("queued", move |connection| {
            let mut statement = connection.prepare_cached(QUEUED)?;
            let found = statement.query_map([tag.as_str()], |row| row.get::<_, String>(0))?;
            found.map(|id| ExecutionId::new(&id?).map_err(|why| error::unreadable(0, why))).collect()
        })
        .await
    }

    async fn depth(&self, tag: &Tag) -> Result<u64, StoreError> {
        let tag = tag.clone();
        self.read("depth", move |connection| {
            connection.prepare_cached(DEPTH)?.query_row([tag.as_str()], |row| row.get(0))
        })
        .await
    }
}

const QUEUED: &str = "SELECT execution FROM jobs WHERE tag = ?1 ORDER BY id";
/// Along the order of the jobs: by their time SQLite would sort all that wait to find the first.
const AVAILABLE: &str = "SELECT id FROM jobs INDEXED BY jobs_in_order \
    WHERE tag = ?1 AND available_at <= ?2 ORDER BY id LIMIT ?3";
const EARLIEST: &str = "SELECT available_at FROM jobs WHERE tag = ?1 ORDER BY available_at LIMIT 1";
const DEPTH: &str = "SELECT count(*) FROM jobs WHERE tag = ?1";

impl SqliteStore {
    fn hear(&self, now: Timestamp) {
        self.last_now().store(now.as_micros(), Ordering::Relaxed);
    }
}

/// Puts a job at the end of its queue, to be taken at once.
pub(crate) fn enqueue(connection: &Connection, job: &Job) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT INTO jobs (execution, tag, body) VALUES (?1, ?2, ?3)")?
        .execute((job.execution.as_str(), job.tag.as_str(), &job.body))
        .map(|_| ())
}

/// Makes every job available that is in somebody's hand. What waits for the end of a delay goes on waiting, and each job
/// keeps the number of its deliveries.
pub(crate) fn free_leases(connection: &Connection) -> rusqlite::Result<()> {
    let sql = "UPDATE jobs SET available_at = 0, leased_until = NULL, leased_by = NULL \
               WHERE leased_until IS NOT NULL";
    connection.execute(sql, ()).map(|_| ())
}

/// Removes the jobs of an execution that nobody has in hand.
pub(crate) fn drop_waiting(connection: &Connection, execution: &ExecutionId) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM jobs WHERE execution = ?1 AND leased_until IS NULL")?
        .execute([execution.as_str()])
        .map(|_| ())
}

/// The oldest jobs of a tag that may be taken.
fn available(connection: &Connection, tag: &Tag, most: usize, now: Timestamp) -> rusqlite::Result<Vec<i64>> {
    // 0 means at once, also before 1970.
    let now = now.as_micros().max(0);
    // A queue with nothing but leased and delayed jobs is not walked.
    if earliest(connection, std::slice::from_ref(tag))?.is_none_or(|at| at > now) {
        return Ok(Vec::new());
    }
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(AVAILABLE)?;
    statement.query_map((tag.as_str(), now, most), |row| row.get(0))?.collect()
}

/// Puts a job into a worker's hand.
fn lend(connection: &Connection, id: i64, worker: &WorkerId, until: Timestamp) -> rusqlite::Result<Delivery> {
    let sql = "UPDATE jobs SET available_at = ?2, leased_until = ?2, leased_by = ?3, delivered = delivered + 1 \
               WHERE id = ?1 RETURNING tag, delivered, body";
    connection.prepare_cached(sql)?.query_row((id, until.as_micros(), worker.as_str()), |row| {
        let tag: String = row.get(0)?;
        Ok(Delivery {
            id: JobId::new(&id.to_string()).map_err(|why| error::unreadable(0, why))?,
            tag: Tag::new(&tag).map_err(|why| error::unreadable(0, why))?,
            number: row.get(1)?,
            body: row.get(2)?,
            receipt: String::new(),
        })
    })
}

/// When the first job of any of the tags may be taken.
fn earliest(connection: &Connection, tags: &[Tag]) -> rusqlite::Result<Option<i64>> {
    let mut statement = connection.prepare_cached(EARLIEST)?;
    let mut first: Option<i64> = None;
    for tag in tags {
        let at: Option<i64> = statement.query_row([tag.as_str()], |row| row.get(0)).optional()?;
        first = [first, at].into_iter().flatten().min();
    }
    Ok(first)
}

/// How long it is until then; nothing if it has come.
fn until(at: i64, now: i64) -> Duration {
    Duration::from_micros(u64::try_from(at.saturating_sub(now.max(0))).unwrap_or(0))
}

/// The row that a delivery names; none if it is not one of ours.
fn number(id: &JobId) -> Option<i64> {
    id.as_str().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_jobs_are_found_without_looking_at_those_behind_them() {
        for sql in [AVAILABLE, EARLIEST] {
            let plan = crate::list::tests::plan(&crate::list::tests::empty(), sql);
            assert!(plan.starts_with("SEARCH jobs USING COVERING INDEX"), "{plan}");
            assert!(!plan.contains("TEMP B-TREE"), "{plan}");
        }
    }

    #[test]
    fn the_depth_is_counted_in_an_index_without_looking_at_jobs() {
        let plan = crate::list::tests::plan(&crate::list::tests::empty(), DEPTH);
        assert!(plan.starts_with("SEARCH jobs USING COVERING INDEX"), "{plan}");
    }
}
