//! The work queue: rows, and in memory who has which of them in hand. Waiting for work is told by the writer after its commit, never
//! asked for again and again.

mod hand;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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

use hand::Hand;

/// Shared with what runs on other threads. Never held while somebody reads or writes.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedHand(Arc<Mutex<Hand>>);

impl SharedHand {
    fn get(&self) -> MutexGuard<'_, Hand> {
        // Each change is one step; a panic leaves nothing half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
        let wakes = Some(job.tag.clone());
        let terms = Terms { operation: "enqueue", durability: Durability::Full, wakes };
        self.write(terms, move |connection| enqueue(connection, &job)).await
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
        if tags.is_empty() || most == 0 {
            return Ok(Vec::new());
        }
        let (tags, hand) = (tags.to_vec(), self.hand().clone());
        self.main()
            .read_briefly("take", move |connection| take(connection, &hand, &tags, most, lease, now))
            .await
    }

    async fn wait(&self, tags: &[Tag], patience: Duration) -> Result<(), StoreError> {
        // Listen first, then look: what comes in between is seen or heard.
        let mut wakes = self.wakes();
        let (wanted, hand, now) =
            (tags.to_vec(), self.hand().clone(), self.last_now().load(Ordering::Relaxed));
        let first =
            self.main().read_briefly("wait", move |connection| earliest(connection, &hand, &wanted)).await?;
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
            self.hand().get().extend(id, delivery.number, now.after(lease));
        }
        Ok(())
    }

    async fn ack(&self, delivery: &Delivery) -> Result<(), StoreError> {
        let Some(id) = number(&delivery.id) else { return Ok(()) };
        if self.hand().get().was_done(id) {
            return Ok(());
        }
        let deleted = self.write(terms("ack"), move |connection| delete(connection, id)).await;
        // Only now: before, whoever takes would find it.
        if deleted.is_ok() {
            self.hand().get().forget(id);
        }
        deleted
    }

    async fn nak(&self, delivery: &Delivery, delay: Millis, now: Timestamp) -> Result<(), StoreError> {
        self.hear(now);
        let Some(id) = number(&delivery.id) else { return Ok(()) };
        let (hand, delivered) = (self.hand().clone(), delivery.number);
        let at = if delay.0 == 0 { 0 } else { now.after(delay).as_micros().max(1) };
        // Also when it is delayed: those who wait have to learn until when.
        let terms = Terms { wakes: Some(delivery.tag.clone()), ..terms("nak") };
        self.write(terms, move |connection| {
            // Before the commit wakes anybody. Whoever looks earlier finds the time here.
            if hand.get().give_back(id, delivered, at) {
                let sql = "UPDATE jobs SET available_at = ?2, delivered = max(delivered, ?3) WHERE id = ?1";
                if connection.prepare_cached(sql)?.execute((id, at, delivered))? == 0 {
                    hand.get().forget(id);
                }
            }
            Ok(())
        })
        .await
    }

    async fn drop_waiting(&self, execution: &ExecutionId) -> Result<(), StoreError> {
        let (execution, hand) = (execution.clone(), self.hand().clone());
        self.write(terms("drop jobs"), move |connection| drop_waiting(connection, &hand, &execution)).await
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

// A job stands in one of two indexes: in the order of arrival when it may be taken at once, or by its time when it is delayed. So
// each of these looks at no more than it gives.
const QUEUED: &str = "SELECT execution FROM jobs WHERE tag = ?1 AND available_at = 0 \
    UNION ALL SELECT execution FROM jobs WHERE tag = ?1 AND available_at > 0";
const READY: &str = "SELECT id, delivered FROM jobs WHERE tag = ?1 AND available_at = 0 ORDER BY id LIMIT ?2";
const DUE: &str = "SELECT id, delivered FROM jobs WHERE tag = ?1 AND available_at > 0 AND available_at <= ?3 \
    ORDER BY available_at LIMIT ?2";
const FIRST_READY: &str =
    "SELECT id, available_at FROM jobs WHERE tag = ?1 AND available_at = 0 ORDER BY id LIMIT ?2";
const FIRST_DELAYED: &str =
    "SELECT id, available_at FROM jobs WHERE tag = ?1 AND available_at > 0 ORDER BY available_at LIMIT ?2";
const DEPTH: &str = "SELECT (SELECT count(*) FROM jobs WHERE tag = ?1 AND available_at = 0) \
    + (SELECT count(*) FROM jobs WHERE tag = ?1 AND available_at > 0)";

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

/// Removes the jobs of an execution that nobody has in hand.
pub(crate) fn drop_waiting(
    connection: &Connection,
    hand: &SharedHand,
    execution: &ExecutionId,
) -> rusqlite::Result<()> {
    for id in jobs_of(connection, execution)? {
        if !hand.get().holds(id) {
            delete(connection, id)?;
            hand.get().forget(id);
        }
    }
    Ok(())
}

/// Removes every job of an execution that has ended. Whoever has one in hand need not do it again.
pub(crate) fn drop_all(
    connection: &Connection,
    hand: &SharedHand,
    execution: &ExecutionId,
) -> rusqlite::Result<()> {
    for id in jobs_of(connection, execution)? {
        delete(connection, id)?;
        hand.get().done(id);
    }
    Ok(())
}

fn jobs_of(connection: &Connection, execution: &ExecutionId) -> rusqlite::Result<Vec<i64>> {
    let mut statement = connection.prepare_cached("SELECT id FROM jobs WHERE execution = ?1")?;
    statement.query_map([execution.as_str()], |row| row.get(0))?.collect()
}

fn delete(connection: &Connection, id: i64) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM jobs WHERE id = ?1")?.execute([id]).map(|_| ())
}

/// Takes the oldest jobs of any of the tags that nobody has.
fn take(
    connection: &Connection,
    hand: &SharedHand,
    tags: &[Tag],
    most: usize,
    lease: Millis,
    now: Timestamp,
) -> rusqlite::Result<Vec<Delivery>> {
    let mut taken = Vec::new();
    hand.get().tidy(now);
    loop {
        // Those in hand stand among the others.
        let looked_at = most.saturating_sub(taken.len()).saturating_add(hand.get().len());
        let found = available(connection, tags, looked_at, now)?;
        let mut lent = Vec::new();
        {
            let mut hand = hand.get();
            for (id, delivered) in &found {
                if taken.len() + lent.len() == most {
                    break;
                }
                lent.extend(hand.lend(*id, *delivered, now.after(lease), now).map(|number| (*id, number)));
            }
        }
        let is_enough = lent.is_empty() || found.len() < looked_at;
        for (id, number) in lent {
            match delivery(connection, id, number)? {
                Some(delivery) => taken.push(delivery),
                // Somebody was done with it after it was found and before it was lent: it is gone.
                None => hand.get().forget(id),
            }
        }
        if is_enough || taken.len() == most {
            return Ok(taken);
        }
    }
}

/// The oldest jobs of any of the tags, whoever has them, with how often each was given back.
fn available(
    connection: &Connection,
    tags: &[Tag],
    most: usize,
    now: Timestamp,
) -> rusqlite::Result<Vec<(i64, u32)>> {
    // 0 means at once, also before 1970.
    let now = now.as_micros().max(0);
    let limit = i64::try_from(most).unwrap_or(i64::MAX);
    let mut found: Vec<(i64, u32)> = Vec::new();
    // One look at the write-ahead log for all of them.
    let state = connection.unchecked_transaction()?;
    for tag in tags {
        let mut ready = state.prepare_cached(READY)?;
        for job in ready.query_map((tag.as_str(), limit), |row| Ok((row.get(0)?, row.get(1)?)))? {
            found.push(job?);
        }
        let mut due = state.prepare_cached(DUE)?;
        for job in due.query_map((tag.as_str(), limit, now), |row| Ok((row.get(0)?, row.get(1)?)))? {
            found.push(job?);
        }
    }
    state.finish()?;
    // The oldest of all tags, and none twice if a tag was named twice.
    found.sort_unstable();
    found.dedup_by_key(|(id, _)| *id);
    found.truncate(most);
    Ok(found)
}

/// A job as it is given to whoever has it; nothing if its row is gone.
fn delivery(connection: &Connection, id: i64, number: u32) -> rusqlite::Result<Option<Delivery>> {
    let mut statement = connection.prepare_cached("SELECT tag, body FROM jobs WHERE id = ?1")?;
    let found = statement.query_row([id], |row| {
        let tag: String = row.get(0)?;
        Ok(Delivery {
            id: JobId::new(&id.to_string()).map_err(|why| error::unreadable(0, why))?,
            tag: Tag::new(&tag).map_err(|why| error::unreadable(0, why))?,
            number,
            body: row.get(1)?,
            receipt: String::new(),
        })
    });
    found.optional()
}

/// When the first job of any of the tags may be taken.
fn earliest(connection: &Connection, hand: &SharedHand, tags: &[Tag]) -> rusqlite::Result<Option<i64>> {
    loop {
        // One more than those in hand is one that nobody has, unless somebody took one in between.
        let in_hand = hand.get().len();
        let first = earliest_of(connection, hand, tags, in_hand.saturating_add(1))?;
        if hand.get().len() <= in_hand {
            return Ok(first);
        }
    }
}

fn earliest_of(
    connection: &Connection,
    hand: &SharedHand,
    tags: &[Tag],
    looked_at: usize,
) -> rusqlite::Result<Option<i64>> {
    let limit = i64::try_from(looked_at).unwrap_or(i64::MAX);
    let mut first: Option<i64> = None;
    for (tag, sql) in tags.iter().flat_map(|tag| [(tag, FIRST_READY), (tag, FIRST_DELAYED)]) {
        let mut statement = connection.prepare_cached(sql)?;
        for job in statement.query_map((tag.as_str(), limit), |row| Ok((row.get(0)?, row.get(1)?)))? {
            let (id, at): (i64, i64) = job?;
            let at = hand.get().until(id).unwrap_or(at);
            first = Some(first.map_or(at, |first| first.min(at)));
        }
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
        for sql in [FIRST_READY, FIRST_DELAYED] {
            let plan = crate::list::tests::plan(&crate::list::tests::empty(), sql);
            assert!(plan.starts_with("SEARCH jobs USING COVERING INDEX"), "{plan}");
            assert!(!plan.contains("TEMP B-TREE"), "{plan}");
        }
    }

    #[test]
    fn the_depth_is_counted_in_indexes_without_looking_at_jobs() {
        let plan = crate::list::tests::plan(&crate::list::tests::empty(), DEPTH);
        assert_eq!(plan.matches("SEARCH jobs USING COVERING INDEX").count(), 2, "{plan}");
        assert!(!plan.contains("SCAN jobs"), "{plan}");
    }
}
