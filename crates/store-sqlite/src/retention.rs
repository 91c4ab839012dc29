//! Removing executions for good, in short writes: first the tombstones, then lines, records and blobs, and the row last. Whatever is
//! left when the process dies is found by its row and removed the next time.

use async_trait::async_trait;
use pyoco_core::digest::Digest;
use pyoco_core::ids::{ExecutionId, Version};
use pyoco_core::time::Timestamp;
use pyoco_ports::{Durability, EndedFilter, EndedPlace, Removal, Retention, StoreError, Tombstone};
use rusqlite::{Connection, OptionalExtension as _, Row};

use crate::command::Terms;
use crate::{SqliteStore, error, log, task_logs};

const OPERATION: &str = "remove executions";
/// One write removes so many records or lines, and so many blobs, which may be large.
const ROWS: u64 = 1_000;
const BLOBS: u64 = 8;

#[async_trait]
impl Retention for SqliteStore {
    async fn remove(&self, removals: Vec<Removal>) -> Result<Vec<ExecutionId>, StoreError> {
        if removals.is_empty() {
            return Ok(Vec::new());
        }
        let buried = self.write(terms(), move |connection| bury_all(connection, &removals)).await?;
        let mut left = buried.clone();
        while !left.is_empty() {
            let some = left;
            left = self
                .logs()
                .write(terms(), 1, move |connection| some_at_a_time(connection, &some, task_logs::remove))
                .await?;
        }
        left.clone_from(&buried);
        while !left.is_empty() {
            let some = left;
            left = self.write(terms(), move |connection| some_at_a_time(connection, &some, remove)).await?;
        }
        Ok(buried)
    }

    async fn tombstone(&self, execution: &ExecutionId) -> Result<Option<Tombstone>, StoreError> {
        let execution = execution.clone();
        self.read("look for a tombstone", move |connection| tombstone(connection, &execution)).await
    }

    async fn drop_tombstones(&self, before: Timestamp, most: usize) -> Result<usize, StoreError> {
        let terms = Terms { operation: "drop tombstones", durability: Durability::Process, wakes: None };
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.write(terms, move |connection| {
            connection.prepare_cached(DROP)?.execute((before.as_micros(), most))
        })
        .await
    }
}

/// What is gone must not come back after a loss of power: its lines would be found by nobody.
const fn terms() -> Terms {
    Terms { operation: OPERATION, durability: Durability::Full, wakes: None }
}

const TOMBSTONE: &str = "SELECT execution, at, digest FROM tombstones WHERE execution = ?1";

const DROP: &str = "DELETE FROM tombstones WHERE execution IN \
                    (SELECT execution FROM tombstones WHERE at < ?1 ORDER BY at, execution LIMIT ?2)";

/// What is left of an execution that was removed, or is being removed.
pub(crate) fn tombstone(
    connection: &Connection,
    execution: &ExecutionId,
) -> rusqlite::Result<Option<Tombstone>> {
    let found = |row: &Row<'_>| {
        let digest: Option<String> = row.get(2)?;
        let digest = digest.map(|text| serde_json::from_value::<Digest>(text.into())).transpose();
        Ok(Tombstone {
            execution: execution.clone(),
            at: Timestamp::from_micros(row.get(1)?),
            digest: digest.map_err(|why| error::unreadable(2, why))?,
        })
    };
    connection.prepare_cached(TOMBSTONE)?.query_row([execution.as_str()], found).optional()
}

/// Leaves the tombstones of those that nobody has written to since, and says which they are.
fn bury_all(connection: &Connection, removals: &[Removal]) -> rusqlite::Result<Vec<ExecutionId>> {
    let mut buried = Vec::with_capacity(removals.len());
    for Removal { tombstone, version } in removals {
        let execution = &tombstone.execution;
        if !is_as_it_was(connection, execution, *version)? {
            continue;
        }
        let sql = "INSERT INTO tombstones (execution, at, digest) VALUES (?1, ?2, ?3) ON CONFLICT (execution) DO NOTHING";
        let digest = tombstone.digest.map(|digest| digest.to_string());
        connection.prepare_cached(sql)?.execute((execution.as_str(), tombstone.at.as_micros(), digest))?;
        buried.push(execution.clone());
    }
    Ok(buried)
}

/// Whether a log has this version. One that was left half-way has none: its beginning is gone.
fn is_as_it_was(
    connection: &Connection,
    execution: &ExecutionId,
    version: Version,
) -> rusqlite::Result<bool> {
    let head = log::head(connection, execution)?;
    let is_rest = || {
        Ok::<bool, rusqlite::Error>(
            first(connection, execution)? > Some(1) && tombstone(connection, execution)?.is_some(),
        )
    };
    Ok(head == version || (version == Version(0) && is_rest()?))
}

/// The first record that a log still has.
fn first(connection: &Connection, execution: &ExecutionId) -> rusqlite::Result<Option<u64>> {
    let sql = "SELECT version FROM records WHERE execution = ?1 ORDER BY version LIMIT 1";
    connection.prepare_cached(sql)?.query_row([execution.as_str()], |row| row.get(0)).optional()
}

/// Removes from one execution after the other until enough was removed, and says which are not done.
fn some_at_a_time(
    connection: &Connection,
    executions: &[ExecutionId],
    remove: fn(&Connection, &ExecutionId, u64) -> rusqlite::Result<Progress>,
) -> rusqlite::Result<Vec<ExecutionId>> {
    let mut room = ROWS;
    for (done, execution) in executions.iter().enumerate() {
        match remove(connection, execution, room)? {
            Progress::Done(rows) if rows < room => room -= rows,
            Progress::Done(_) => return Ok(executions.get(done + 1..).unwrap_or_default().to_vec()),
            Progress::More => return Ok(executions.get(done..).unwrap_or_default().to_vec()),
        }
    }
    Ok(Vec::new())
}

/// How far the removal of an execution came.
pub(crate) enum Progress {
    /// Nothing is left; so many rows were removed.
    Done(u64),
    /// There was no room for everything.
    More,
}

/// Removes records from the beginning on, then blobs, and when none are left everything else.
fn remove(connection: &Connection, execution: &ExecutionId, room: u64) -> rusqlite::Result<Progress> {
    let mut rows = 1;
    if let Some(first) = first(connection, execution)? {
        let end = first.saturating_add(room);
        let sql = "DELETE FROM records WHERE execution = ?1 AND version < ?2";
        rows += connection.prepare_cached(sql)?.execute((execution.as_str(), end))? as u64;
        if log::head(connection, execution)? > Version(0) {
            return Ok(Progress::More);
        }
    }
    if release_blobs(connection, execution)? == BLOBS {
        return Ok(Progress::More);
    }
    for sql in [
        "DELETE FROM jobs WHERE execution = ?1",
        "DELETE FROM unsettled WHERE execution = ?1",
        "DELETE FROM runs WHERE execution = ?1",
    ] {
        connection.prepare_cached(sql)?.execute([execution.as_str()])?;
    }
    Ok(Progress::Done(rows))
}

/// An execution uses some of its blobs no longer; those that nobody uses go. Says how many.
fn release_blobs(connection: &Connection, execution: &ExecutionId) -> rusqlite::Result<u64> {
    let used = "SELECT digest FROM blob_uses WHERE execution = ?1 LIMIT ?2";
    let mut statement = connection.prepare_cached(used)?;
    let digests = statement.query_map((execution.as_str(), BLOBS), |row| row.get(0))?;
    let digests = digests.collect::<rusqlite::Result<Vec<String>>>()?;
    for digest in &digests {
        let release = "DELETE FROM blob_uses WHERE execution = ?1 AND digest = ?2";
        connection.prepare_cached(release)?.execute((execution.as_str(), digest))?;
        let drop_unused = "DELETE FROM blobs WHERE digest = ?1 \
                           AND NOT EXISTS (SELECT 1 FROM blob_uses WHERE blob_uses.digest = ?1)";
        connection.prepare_cached(drop_unused)?.execute([digest])?;
    }
    Ok(digests.len() as u64)
}

/// Executions that may go, the longest ended first.
pub(crate) fn ended_before(
    connection: &Connection,
    filter: &EndedFilter,
    limit: usize,
) -> rusqlite::Result<Vec<EndedPlace>> {
    let wanted = i64::try_from(limit).unwrap_or(i64::MAX);
    let (after, behind) = match &filter.after {
        Some(place) => (place.ended_at.as_micros(), place.execution.as_str()),
        None => (i64::MIN, ""),
    };
    let kinds: &[i64] = if filter.is_foreign_too { &[0, 1] } else { &[0] };
    let mut places = Vec::new();
    for kept in kinds {
        let mut statement = connection.prepare_cached(ENDED)?;
        let found = statement.query_map((kept, after, behind, filter.before.as_micros(), wanted), |row| {
            let execution: String = row.get(1)?;
            let execution = ExecutionId::new(&execution).map_err(|why| error::unreadable(1, why))?;
            Ok(EndedPlace { ended_at: Timestamp::from_micros(row.get(0)?), execution })
        })?;
        for place in found {
            places.push(place?);
        }
    }
    places.sort();
    places.truncate(limit);
    Ok(places)
}

// From a place on along the index; what is behind the end is met once and ends it.
const ENDED: &str = "SELECT ended_at, execution FROM runs INDEXED BY runs_to_remove \
                     WHERE kept = ?1 AND kept < 2 AND ended_at IS NOT NULL \
                         AND (ended_at, execution) > (?2, ?3) AND ended_at < ?4 \
                     ORDER BY ended_at, execution LIMIT ?5";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list::tests::{empty, plan};

    #[test]
    fn what_may_go_is_found_along_an_index_and_nothing_is_sorted() {
        let connection = empty();
        let plan = plan(&connection, ENDED);
        assert!(plan.contains("COVERING INDEX runs_to_remove (kept=? AND "), "{plan}");
        assert!(!plan.contains("TEMP B-TREE"), "{plan}");
        let plan = crate::list::tests::plan(&connection, DROP);
        assert!(plan.contains("COVERING INDEX tombstones_in_order (at<?)"), "{plan}");
    }

    #[test]
    fn a_long_log_goes_in_several_short_writes_from_its_beginning_on() {
        let connection = empty();
        let execution = ExecutionId::new("e").unwrap();
        for version in 1..=2_500_u64 {
            let sql = "INSERT INTO records (execution, version, bytes) VALUES ('e', ?1, x'00')";
            connection.execute(sql, [version]).unwrap();
        }
        let removal = Removal {
            tombstone: Tombstone {
                execution: execution.clone(),
                at: Timestamp::from_micros(1),
                digest: None,
            },
            version: Version(2_500),
        };
        let rest = Removal { version: Version(0), ..removal.clone() };
        assert_eq!(bury_all(&connection, std::slice::from_ref(&rest)).unwrap(), [], "it is there");
        let removals = [removal];
        assert_eq!(bury_all(&connection, &removals).unwrap(), std::slice::from_ref(&execution));
        let mut left = vec![execution.clone()];
        for first_left in [1_001, 2_001] {
            left = some_at_a_time(&connection, &left, remove).unwrap();
            assert_eq!((left.len(), first(&connection, &execution).unwrap()), (1, Some(first_left)));
            // Whoever looks meanwhile finds no log, and whoever was killed meanwhile can go on.
            let records = log::records(&connection, &execution, Version(0), usize::MAX).unwrap();
            assert_eq!(records, []);
            assert_eq!(bury_all(&connection, std::slice::from_ref(&rest)).unwrap(), left);
        }
        assert_eq!(some_at_a_time(&connection, &left, remove).unwrap(), []);
        assert_eq!(first(&connection, &execution).unwrap(), None);
    }
}
