//! The log: append with an expected version, with everything that follows from it in the same step; and reading.

use std::borrow::Cow;

use async_trait::async_trait;
use pyoco_core::ids::{ExecutionId, Version};
use pyoco_ports::{Append, AppendError, Appended, ErrorKind, EventLog, Promise, StoreError, StoredRecord};
use rusqlite::{Connection, OptionalExtension as _};

use crate::command::{Kept, Terms};
use crate::queue::SharedLines;
use crate::unsettled::{SettledTo, Unsettled};
use crate::{SqliteStore, dead_letters, error, index, queue, retention};

#[async_trait]
impl EventLog for SqliteStore {
    async fn append(&self, mut append: Append) -> Result<Appended, AppendError> {
        let terms = Terms {
            operation: "append",
            durability: append.durability,
            wakes: append.enqueue.as_ref().map(|job| job.tag.clone()),
        };
        let expected = append.expected;
        let row = append.row.take().map(|row| index::Stored::of(Cow::Owned(row))).transpose();
        let row = row.map_err(|error| error::store("append", error))?;
        let (lines, unsettled) = (self.lines().clone(), self.unsettled().clone());
        let work =
            move |connection: &Connection| write(connection, &lines, &unsettled, &append, row.as_ref());
        let (written, kept) = self.main().write_briefly(terms, work).await?;
        match written {
            Written::Yes(settled) => {
                settled.into_iter().for_each(|to| self.unsettled().committed(to));
                Ok(Appended { left: None, promise: kept.map(promise) })
            }
            Written::Conflict(actual) => Err(AppendError::Conflict { expected, actual }),
        }
    }

    async fn read(&self, execution: &ExecutionId, after: Version) -> Result<Vec<StoredRecord>, StoreError> {
        let execution = execution.clone();
        self.read("read", move |connection| records(connection, &execution, after, usize::MAX)).await
    }

    async fn read_some(
        &self,
        execution: &ExecutionId,
        after: Version,
        limit: usize,
    ) -> Result<Vec<StoredRecord>, StoreError> {
        let execution = execution.clone();
        self.read("read", move |connection| records(connection, &execution, after, limit)).await
    }

    /// The folder is locked: a second process is refused. A store that can write no more is to be asked, and says so.
    fn is_exclusive(&self) -> bool {
        self.is_open()
    }
}

/// That a record will be on the disk.
fn promise(kept: Kept) -> Promise {
    Promise::new(async move {
        // The writer tells everybody, unless it breaks.
        let unknown = |_| Err(StoreError::new(ErrorKind::Timeout, "append", "the writer broke down"));
        kept.await.unwrap_or_else(unknown)
    })
}

/// What became of an append.
enum Written {
    /// It is in the log, and perhaps all rows up to its own are in the index.
    Yes(Option<SettledTo>),
    /// The log has another version; nothing was written.
    Conflict(Version),
}

/// Appends and carries out the consequences.
fn write(
    connection: &Connection,
    lines: &SharedLines,
    unsettled: &Unsettled,
    append: &Append,
    row: Option<&index::Stored<'_>>,
) -> rusqlite::Result<Written> {
    let actual = head(connection, &append.execution)?;
    if actual != append.expected && !pyoco_faults::is_planted("append-anywhere") {
        return Ok(Written::Conflict(actual));
    }
    connection
        .prepare_cached("INSERT INTO records (execution, version, bytes) VALUES (?1, ?2, ?3)")?
        .execute((append.execution.as_str(), actual.next().0, &bytes(append)))?;
    let settled = row.map(|row| unsettled.lay(connection, row)).transpose()?.flatten();
    // First out, then in: a record that wants both wants one job afterwards.
    if append.is_end {
        queue::drop_all(connection, lines, &append.execution)?;
    } else if append.drop_job {
        queue::drop_waiting(connection, lines, &append.execution)?;
    }
    if let Some(job) = &append.enqueue {
        queue::enqueue(connection, lines, job, row.map(index::Stored::updated_at))?;
    }
    if let Some(letter) = &append.dead_letter {
        dead_letters::publish(connection, letter)?;
    }
    Ok(Written::Yes(settled))
}

/// What is stored of a record: all of it.
fn bytes(append: &Append) -> Cow<'_, [u8]> {
    let mut bytes = Cow::Borrowed(append.bytes.as_slice());
    if pyoco_faults::is_planted("record-flipped")
        && let Some(place) = append.bytes.windows(4).position(|four| four == b"\"at\"")
        && let Some(digit) = bytes.to_mut().get_mut(place + 8)
    {
        *digit ^= 1;
    }
    bytes
}

/// The version of a log: one look at the end of its stretch of the primary key.
pub(crate) fn head(connection: &Connection, execution: &ExecutionId) -> rusqlite::Result<Version> {
    let sql = "SELECT version FROM records WHERE execution = ?1 ORDER BY version DESC LIMIT 1";
    let found: Option<u64> =
        connection.prepare_cached(sql)?.query_row([execution.as_str()], |row| row.get(0)).optional()?;
    Ok(Version(found.unwrap_or(0)))
}

pub(crate) fn records(
    connection: &Connection,
    execution: &ExecutionId,
    after: Version,
    limit: usize,
) -> rusqlite::Result<Vec<StoredRecord>> {
    let sql =
        "SELECT version, bytes FROM records WHERE execution = ?1 AND version > ?2 ORDER BY version LIMIT ?3";
    let mut statement = connection.prepare_cached(sql)?;
    // No log is that long, so beyond it there is nothing.
    let after_number = i64::try_from(after.0).unwrap_or(i64::MAX);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = statement.query_map((execution.as_str(), after_number, limit), |row| {
        Ok(StoredRecord { version: Version(row.get(0)?), bytes: row.get(1)? })
    })?;
    let mut next = after.next();
    let mut records = Vec::new();
    for record in rows {
        let record = record?;
        if record.version != next {
            // It is being removed, from its beginning on: as good as gone.
            if retention::tombstone(connection, execution)?.is_some() {
                return Ok(Vec::new());
            }
            let why = format!("record {next} of execution {execution} is missing");
            return Err(error::unreadable(0, why));
        }
        next = next.next();
        records.push(record);
    }
    Ok(records)
}
