//! Rows that appends have written and that are not in the index yet. A row stands in a dozen indexes and counters, and a short run has
//! three rows in a moment; so an append only lays its row aside, in the same transaction as its record, and many are put into the index
//! together: when so many have come, before somebody looks at the index, and when the file is opened. With one statement: SQLite keeps a
//! copy of every page that a statement with triggers changes until the statement is over, so with one for each row it copies the same
//! pages again and again.
//!
//! So whoever looks sees everything that was answered before, and after a crash nothing is missing: what was laid aside is in the file.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pyoco_ports::{Durability, ErrorKind, StoreError};
use rusqlite::Connection;

use crate::SqliteStore;
use crate::command::Terms;
use crate::index::{Stored, upsert};

/// So many rows are laid aside at most: whoever looks waits until they are settled, so they must be few.
const MOST: u64 = 128;

/// How many rows were laid aside. Only the writer's thread lays aside and settles, so none of these need agree with another.
#[derive(Debug, Default)]
struct Counts {
    /// Since the file was opened, also those whose transaction was lost.
    laid: AtomicU64,
    /// `laid` when the writer settled last, in a transaction that may have been lost.
    tried: AtomicU64,
    /// `laid` at a settlement that was committed.
    settled: AtomicU64,
}

/// What is known of the rows that are laid aside. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unsettled(Arc<Counts>);

/// Everything that was laid aside up to here is in the index, once the transaction is committed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SettledTo(u64);

impl Unsettled {
    /// Lays a row aside, and settles when there are enough.
    pub(crate) fn lay(
        &self,
        connection: &Connection,
        row: &Stored<'_>,
    ) -> rusqlite::Result<Option<SettledTo>> {
        row.write(connection, upsert!("unsettled"))?;
        let laid = self.0.laid.fetch_add(1, Ordering::SeqCst) + 1;
        let is_enough = laid - self.0.tried.load(Ordering::SeqCst).min(laid) >= MOST;
        is_enough.then(|| self.settle(connection)).transpose()
    }

    /// Puts everything that was laid aside into the index.
    pub(crate) fn settle(&self, connection: &Connection) -> rusqlite::Result<SettledTo> {
        let laid = self.0.laid.load(Ordering::SeqCst);
        self.0.tried.store(laid, Ordering::SeqCst);
        settle(connection)?;
        Ok(SettledTo(laid))
    }

    /// The transaction of a settlement is committed.
    pub(crate) fn committed(&self, to: SettledTo) {
        self.0.settled.fetch_max(to.0, Ordering::SeqCst);
    }

    /// Whether something that was answered may not be in the index.
    fn is_any(&self) -> bool {
        self.0.settled.load(Ordering::SeqCst) < self.0.laid.load(Ordering::SeqCst)
    }
}

impl SqliteStore {
    /// Reads the index, with everything in it that was answered before.
    pub(crate) async fn read_rows<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let unsettled = self.unsettled();
        if unsettled.is_any() {
            let terms = Terms { operation, durability: Durability::Process, wakes: None };
            let shared = unsettled.clone();
            match self.write(terms, move |connection| shared.settle(connection)).await {
                Ok(to) => unsettled.committed(to),
                // On a full disk, or when nothing is written any more, what is in the index can still be seen.
                Err(reason) if reason.kind == ErrorKind::Full || !self.is_open() => {
                    tracing::warn!(%reason, operation, "the newest rows cannot be shown");
                }
                Err(reason) => return Err(reason),
            }
        }
        self.read(operation, work).await
    }
}

macro_rules! settle {
    ($which:literal) => {
        upsert!(
            "runs",
            concat!(
                "SELECT execution, version, tenant, status, flow, tag, workflow_sha256, created_at, updated_at, next_timer, \
                 wants_job, hidden, summary, labelled, waits, started_at, ended_at, cancel_requested_at, kept \
                 FROM unsettled WHERE ",
                $which
            )
        )
    };
}

/// Puts everything that was laid aside into the index, unless newer rows are there.
pub(crate) fn settle(connection: &Connection) -> rusqlite::Result<()> {
    match connection.prepare_cached(settle!("TRUE"))?.execute(()) {
        Ok(_) => connection.prepare_cached("DELETE FROM unsettled")?.execute(()).map(|_| ()),
        // Nothing of the statement was done. One row that does not fit must not keep the others out.
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation) => {
            one_by_one(connection)
        }
        Err(error) => Err(error),
    }
}

/// The same for those that fit. The others stay, and are named each time.
fn one_by_one(connection: &Connection) -> rusqlite::Result<()> {
    let mut names = connection.prepare_cached("SELECT execution FROM unsettled")?;
    let names: Vec<String> = names.query_map((), |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    for name in names {
        match connection.prepare_cached(settle!("execution = ?1"))?.execute([&name]) {
            Ok(_) => {
                connection.prepare_cached("DELETE FROM unsettled WHERE execution = ?1")?.execute([&name])?;
            }
            Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation) => {
                tracing::error!(run_id = name, %error, "the row of this run cannot be put into the index: check the file (pyoco-server doctor)");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use pyoco_core::ids::{ExecutionId, Tag, Version};
    use pyoco_core::time::Timestamp;
    use pyoco_core::view::{RunStatus, RunSummary};
    use pyoco_ports::IndexRow;

    use super::*;
    use crate::list::tests::empty;

    fn row(name: &str, version: u64) -> Stored<'static> {
        let tag = Tag::new("t").unwrap();
        let summary = RunSummary {
            run_id: name.to_owned(),
            flow_name: "flow".to_owned(),
            tags: vec![tag.to_string()],
            tag: Some(tag),
            tenant_id: None,
            api_key_id: None,
            status: RunStatus::Pending,
            updated_at: None,
            heartbeat_at: None,
            worker_id: None,
            error: None,
        };
        let at = Timestamp::from_micros(7);
        Stored::of(Cow::Owned(IndexRow {
            execution: ExecutionId::new(name).unwrap(),
            version: Version(version),
            summary,
            created_at: at,
            updated_at: at,
            started_at: None,
            ended_at: None,
            cancel_requested_at: None,
            workflow_sha256: None,
            hidden: false,
            next_timer: None,
            wants_job: true,
            waits: Vec::new(),
            has_waited: false,
            is_archived: false,
            is_foreign: false,
        }))
        .unwrap()
    }

    /// Rows laid aside, rows in the index, and their versions together.
    fn rows(connection: &Connection) -> (u64, u64, u64) {
        let sql = "SELECT (SELECT count(*) FROM unsettled), count(*), coalesce(sum(version), 0) FROM runs";
        connection.query_row(sql, (), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap()
    }

    #[test]
    fn rows_are_laid_aside_until_there_are_enough_and_an_execution_has_one() {
        let (connection, unsettled) = (empty(), Unsettled::default());
        for version in 1..MOST {
            assert!(unsettled.lay(&connection, &row("e", version)).unwrap().is_none());
        }
        assert_eq!(rows(&connection), (1, 0, 0));
        let settled = unsettled.lay(&connection, &row("other", 1)).unwrap();
        assert_eq!(rows(&connection), (0, 2, MOST));
        assert!(unsettled.is_any(), "as long as nobody has said that it is committed");
        unsettled.committed(settled.unwrap());
        assert!(!unsettled.is_any());
        assert!(unsettled.lay(&connection, &row("e", MOST)).unwrap().is_none() && unsettled.is_any());
    }

    #[test]
    fn a_settlement_that_is_lost_is_made_again() {
        let (connection, unsettled) = (empty(), Unsettled::default());
        unsettled.lay(&connection, &row("e", 1)).unwrap();
        let step = connection.unchecked_transaction().unwrap();
        unsettled.settle(&step).unwrap();
        step.rollback().unwrap();
        assert!(unsettled.is_any() && rows(&connection) == (1, 0, 0));
        let settled = unsettled.settle(&connection).unwrap();
        unsettled.committed(settled);
        assert!(!unsettled.is_any() && rows(&connection) == (0, 1, 1));
    }

    #[test]
    fn a_row_that_does_not_fit_keeps_no_other_out() {
        let (connection, unsettled) = (empty(), Unsettled::default());
        unsettled.lay(&connection, &row("a", 1)).unwrap();
        unsettled.lay(&connection, &row("b", 1)).unwrap();
        connection.execute("UPDATE unsettled SET wants_job = 7 WHERE execution = 'a'", ()).unwrap();
        unsettled.settle(&connection).unwrap();
        assert_eq!(rows(&connection), (1, 1, 1));
        // Its next row fits.
        unsettled.lay(&connection, &row("a", 2)).unwrap();
        unsettled.settle(&connection).unwrap();
        assert_eq!(rows(&connection), (0, 2, 3));
    }

    #[test]
    fn an_older_row_replaces_nothing() {
        let (connection, unsettled) = (empty(), Unsettled::default());
        row("e", 5).write(&connection, upsert!("runs")).unwrap();
        unsettled.lay(&connection, &row("e", 3)).unwrap();
        unsettled.lay(&connection, &row("e", 2)).unwrap();
        unsettled.settle(&connection).unwrap();
        assert_eq!(rows(&connection), (0, 1, 5));
    }
}
