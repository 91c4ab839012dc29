//! The index of runs: one row for each execution, with a column for everything that it is looked up by.
//! The list and its statement are in `list`, that of waits in `waits`, those of jobs and of their labels in `jobs` and `labels`.

use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;
use pyoco_core::ids::{ExecutionId, NodeId, Tag, TenantId, Version};
use pyoco_core::time::Timestamp;
use pyoco_core::view::{RunStatus, RunSummary};
use pyoco_ports::{
    Durability, EndedFilter, EndedPlace, Filter, IndexRow, JobFilter, JobPage, LabelFilter, LabelPage, Page,
    Queue, RunIndex, StoreError, Wait, WaitFilter, WaitPage,
};
use rusqlite::{Connection, OptionalExtension as _, Row, Statement, params};

use crate::command::Terms;
use crate::{SqliteStore, error, jobs, labels, list, retention, waits};

/// The columns that make a row, in the order in which `decode` reads them; those that more tables have, of the one that is named.
macro_rules! columns {
    ($walked:literal) => {
        concat!(
            $walked,
            "execution, version, created_at, ",
            $walked,
            "updated_at, workflow_sha256, hidden, next_timer, ",
            "wants_job, summary, waits, started_at, ended_at, cancel_requested_at, kept"
        )
    };
}
pub(crate) use columns;

#[async_trait]
impl RunIndex for SqliteStore {
    async fn put(&self, row: IndexRow) -> Result<(), StoreError> {
        self.put_all(Arc::new([row])).await
    }

    async fn put_all(&self, rows: Arc<[IndexRow]>) -> Result<(), StoreError> {
        // Derived from the log, so it can be made again.
        let terms = Terms { operation: "put a row", durability: Durability::Process, wakes: None };
        let unsettled = self.unsettled().clone();
        self.write(terms, move |connection| {
            // With those that are laid aside already, or an older one of them would replace one of these.
            let mut lay = connection.prepare_cached(upsert!("unsettled"))?;
            rows.iter().try_for_each(|row| Stored::of(Cow::Borrowed(row))?.execute(&mut lay))?;
            unsettled.settle(connection).map(|_| ())
        })
        .await
    }

    async fn forget(&self, execution: &ExecutionId) -> Result<(), StoreError> {
        let execution = execution.clone();
        let terms = Terms { operation: "forget a row", durability: Durability::Process, wakes: None };
        let unsettled = self.unsettled().clone();
        self.write(terms, move |connection| {
            unsettled.settle(connection)?;
            connection
                .prepare_cached("DELETE FROM runs WHERE execution = ?1")?
                .execute([execution.as_str()])
                .map(|_| ())
        })
        .await
    }

    async fn get(&self, execution: &ExecutionId) -> Result<Option<IndexRow>, StoreError> {
        let execution = execution.clone();
        self.read_rows("get a row", move |connection| {
            connection
                .prepare_cached(concat!("SELECT ", columns!(""), " FROM runs WHERE execution = ?1"))?
                .query_row([execution.as_str()], decode)
                .optional()
        })
        .await
    }

    async fn list(&self, filter: &Filter, limit: usize) -> Result<Page, StoreError> {
        let filter = filter.clone();
        self.read_rows("list", move |connection| list::page(connection, &filter, limit)).await
    }

    async fn waits(&self, filter: &WaitFilter, limit: usize) -> Result<WaitPage, StoreError> {
        let filter = filter.clone();
        self.read_rows("list waits", move |connection| waits::page(connection, &filter, limit)).await
    }

    async fn jobs(&self, filter: &JobFilter, limit: usize) -> Result<JobPage, StoreError> {
        let filter = filter.clone();
        self.read_rows("list jobs", move |connection| jobs::page(connection, &filter, limit)).await
    }

    async fn labels(&self, filter: &LabelFilter, limit: usize) -> Result<LabelPage, StoreError> {
        let filter = filter.clone();
        self.read_rows("list labels", move |connection| labels::page(connection, &filter, limit)).await
    }

    async fn counts(&self, tenant: Option<&TenantId>) -> Result<Vec<(RunStatus, u64)>, StoreError> {
        let tenant = tenant.cloned();
        self.read_rows("count", move |connection| {
            let sql = match tenant {
                Some(_) => "SELECT status, runs FROM run_counts WHERE tenant = ?1 AND runs > 0",
                None => {
                    "SELECT status, sum(runs) FROM run_counts WHERE ?1 IS NULL AND runs > 0 GROUP BY status"
                }
            };
            counted(connection, sql, [tenant.as_ref().map(TenantId::as_str)])
        })
        .await
    }

    async fn counts_since(
        &self,
        tenant: Option<&TenantId>,
        since: Timestamp,
    ) -> Result<Vec<(RunStatus, u64)>, StoreError> {
        let tenant = tenant.cloned();
        self.read_rows("count since", move |connection| match tenant {
            Some(tenant) => counted(connection, TENANT_COUNTS_SINCE, (since.as_micros(), tenant.as_str())),
            // The figures ask for a day.
            None if since.as_micros() % DAY == 0 => {
                counted(connection, COUNTS_OF_DAYS, [since.as_micros() / DAY])
            }
            None => counted(connection, COUNTS_SINCE, [since.as_micros()]),
        })
        .await
    }

    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<ExecutionId>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.read_rows("due", move |connection| {
            let mut statement = connection.prepare_cached(DUE)?;
            statement.query_map((now.as_micros(), limit), execution)?.collect()
        })
        .await
    }

    async fn ended_before(&self, filter: &EndedFilter, limit: usize) -> Result<Vec<EndedPlace>, StoreError> {
        let filter = filter.clone();
        self.read_rows("find what has ended", move |connection| {
            retention::ended_before(connection, &filter, limit)
        })
        .await
    }

    async fn runnable(&self, tag: &Tag, limit: usize) -> Result<Vec<ExecutionId>, StoreError> {
        let tag = tag.clone();
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.read_rows("runnable", move |connection| {
            let mut statement = connection.prepare_cached(RUNNABLE)?;
            statement.query_map((tag.as_str(), limit), execution)?.collect()
        })
        .await
    }

    async fn runnable_tags(&self) -> Result<Vec<Tag>, StoreError> {
        self.read_rows("runnable tags", |connection| {
            let mut statement = connection.prepare_cached(RUNNABLE_TAGS)?;
            let tags = statement.query_map((), |row| {
                Tag::new(&row.get::<_, String>(0)?).map_err(|why| error::unreadable(0, why))
            })?;
            tags.collect()
        })
        .await
    }

    async fn queues(&self) -> Result<Vec<Queue>, StoreError> {
        self.read_rows("queues", |connection| {
            let mut statement = connection.prepare_cached(QUEUES)?;
            let queues = statement.query_map((), |row| {
                let tag = Tag::new(&row.get::<_, String>(0)?).map_err(|why| error::unreadable(0, why))?;
                Ok(Queue { tag, depth: row.get(1)?, oldest: Timestamp::from_micros(row.get(2)?) })
            })?;
            queues.collect()
        })
        .await
    }
}

/// In microseconds.
const DAY: i64 = 86_400_000_000;

const COUNTS_OF_DAYS: &str =
    "SELECT status, sum(runs) FROM day_counts WHERE day >= ?1 GROUP BY status HAVING sum(runs) > 0";

// Each status is a stretch of an index from that instant on. Which there are is known from the counters.
const COUNTS_SINCE: &str = "\
    WITH known (status) AS (SELECT DISTINCT status FROM run_counts WHERE runs > 0), \
         counted (status, runs) AS (SELECT status, (SELECT count(*) FROM runs INDEXED BY runs_by_status \
             WHERE runs.status = known.status AND updated_at >= ?1) FROM known) \
    SELECT status, runs FROM counted WHERE runs > 0";

const TENANT_COUNTS_SINCE: &str = "\
    WITH counted (status, runs) AS (SELECT status, (SELECT count(*) FROM runs INDEXED BY runs_by_tenant_status \
             WHERE runs.tenant = ?2 AND runs.status = run_counts.status AND updated_at >= ?1) \
         FROM run_counts WHERE run_counts.tenant = ?2 AND run_counts.runs > 0) \
    SELECT status, runs FROM counted WHERE runs > 0";

const DUE: &str = "SELECT execution FROM runs WHERE next_timer IS NOT NULL AND next_timer <= ?1 \
                   ORDER BY next_timer, execution LIMIT ?2";

const RUNNABLE: &str = "SELECT execution FROM runs WHERE wants_job = 1 AND tag = ?1 \
                        ORDER BY updated_at, execution LIMIT ?2";

// From one tag to the next along the index, however many executions each has.
const RUNNABLE_TAGS: &str = "\
    WITH RECURSIVE tags (tag) AS (SELECT min(tag) FROM runs WHERE wants_job = 1 \
        UNION ALL SELECT (SELECT min(tag) FROM runs WHERE wants_job = 1 AND tag > tags.tag) FROM tags WHERE tag IS NOT NULL) \
    SELECT tag FROM tags WHERE tag IS NOT NULL";

// How many is known from the counters; the oldest is the first of a stretch of the index.
const QUEUES: &str = "\
    SELECT tag, runs, (SELECT min(updated_at) FROM runs WHERE wants_job = 1 AND runs.tag = queue_counts.tag) \
    FROM queue_counts ORDER BY tag";

/// The statement that writes rows of a table that has the columns of `runs`, unless newer ones are there: a row that is given, or those of
/// a query.
macro_rules! upsert {
    ($table:literal) => {
        upsert!(
            $table,
            "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)"
        )
    };
    ($table:literal, $rows:expr) => {
        concat!(
            "INSERT INTO ",
            $table,
            " (execution, version, tenant, status, flow, tag, workflow_sha256, created_at, updated_at, next_timer, \
               wants_job, hidden, summary, labelled, waits, started_at, ended_at, cancel_requested_at, kept) ",
            $rows,
            " ON CONFLICT (execution) DO UPDATE SET version = excluded.version, tenant = excluded.tenant, \
               status = excluded.status, flow = excluded.flow, tag = excluded.tag, \
               workflow_sha256 = excluded.workflow_sha256, created_at = excluded.created_at, \
               updated_at = excluded.updated_at, next_timer = excluded.next_timer, wants_job = excluded.wants_job, \
               hidden = excluded.hidden, summary = excluded.summary, labelled = excluded.labelled, \
               waits = excluded.waits, started_at = excluded.started_at, ended_at = excluded.ended_at, \
               cancel_requested_at = excluded.cancel_requested_at, kept = excluded.kept \
             WHERE excluded.version >= ",
            $table,
            ".version"
        )
    };
}
pub(crate) use upsert;

/// A row ready to be stored.
pub(crate) struct Stored<'a> {
    row: Cow<'a, IndexRow>,
    status: String,
    summary: String,
    /// Its labels are something else than its tag.
    labelled: bool,
    /// None if no node of it ever waited.
    waits: Option<String>,
}

impl<'a> Stored<'a> {
    /// When the execution changed.
    pub(crate) fn updated_at(&self) -> Timestamp {
        self.row.updated_at
    }

    pub(crate) fn of(row: Cow<'a, IndexRow>) -> rusqlite::Result<Self> {
        let refused = |error: serde_json::Error| rusqlite::Error::ToSqlConversionFailure(error.into());
        let summary = serde_json::to_string(&row.summary).map_err(refused)?;
        let is_tag = |label: &String| row.summary.tag.as_ref().is_some_and(|tag| tag.as_str() == label);
        let labelled = !matches!(row.summary.tags.as_slice(), [only] if is_tag(only));
        let waits: Vec<(&NodeId, i64)> =
            row.waits.iter().map(|wait| (&wait.node, wait.since.as_micros())).collect();
        let waits = if row.has_waited || !waits.is_empty() {
            Some(serde_json::to_string(&waits).map_err(refused)?)
        } else {
            None
        };
        Ok(Self { status: row.summary.status.to_string(), row, summary, labelled, waits })
    }

    /// Writes the row unless a newer one is there. `sql` is an `upsert!`.
    pub(crate) fn write(&self, connection: &Connection, sql: &'static str) -> rusqlite::Result<()> {
        self.execute(&mut *connection.prepare_cached(sql)?)
    }

    /// The same with a statement that is prepared.
    fn execute(&self, upsert: &mut Statement<'_>) -> rusqlite::Result<()> {
        let summary = &self.row.summary;
        // By number: to look for names costs as much as to bind values.
        let values = params![
            self.row.execution.as_str(),
            self.row.version.0,
            summary.tenant_id.as_ref().map(TenantId::as_str),
            self.status,
            summary.flow_name,
            summary.tag.as_ref().map(Tag::as_str),
            self.row.workflow_sha256,
            self.row.created_at.as_micros(),
            self.row.updated_at.as_micros(),
            self.row.next_timer.map(Timestamp::as_micros),
            self.row.wants_job,
            self.row.hidden,
            self.summary,
            self.labelled,
            self.waits,
            self.row.started_at.map(Timestamp::as_micros),
            self.row.ended_at.map(Timestamp::as_micros),
            self.row.cancel_requested_at.map(Timestamp::as_micros),
            u8::from(self.row.is_foreign) + 2 * u8::from(self.row.is_archived),
        ];
        upsert.execute(values).map(|_| ())
    }
}

/// Reads a row of `columns!`.
pub(crate) fn decode(row: &Row<'_>) -> rusqlite::Result<IndexRow> {
    let summary: String = row.get(8)?;
    let summary: RunSummary = serde_json::from_str(&summary).map_err(|why| error::unreadable(8, why))?;
    let waits: Option<String> = row.get(9)?;
    let has_waited = waits.is_some();
    let kept: u8 = row.get(13)?;
    let time =
        |column: usize| row.get::<_, Option<i64>>(column).map(|micros| micros.map(Timestamp::from_micros));
    Ok(IndexRow {
        execution: execution(row)?,
        version: Version(row.get(1)?),
        summary,
        created_at: Timestamp::from_micros(row.get(2)?),
        updated_at: Timestamp::from_micros(row.get(3)?),
        started_at: time(10)?,
        ended_at: time(11)?,
        cancel_requested_at: time(12)?,
        workflow_sha256: row.get(4)?,
        hidden: row.get(5)?,
        next_timer: time(6)?,
        wants_job: row.get(7)?,
        waits: waits.map_or(Ok(Vec::new()), |waits| decode_waits(&waits))?,
        has_waited,
        is_archived: kept & 2 != 0,
        is_foreign: kept & 1 != 0,
    })
}

fn decode_waits(text: &str) -> rusqlite::Result<Vec<Wait>> {
    let waits: Vec<(NodeId, i64)> = serde_json::from_str(text).map_err(|why| error::unreadable(9, why))?;
    let wait = |(node, since)| Wait { node, since: Timestamp::from_micros(since) };
    Ok(waits.into_iter().map(wait).collect())
}

/// Statuses with how many there are, in the order of the statuses.
fn counted(
    connection: &Connection,
    sql: &str,
    values: impl rusqlite::Params,
) -> rusqlite::Result<Vec<(RunStatus, u64)>> {
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(values, |row| {
        let status: String = row.get(0)?;
        Ok((serde_json::from_value(status.into()).map_err(|why| error::unreadable(0, why))?, row.get(1)?))
    })?;
    let mut counts = rows.collect::<rusqlite::Result<Vec<(RunStatus, u64)>>>()?;
    counts.sort_unstable();
    Ok(counts)
}

fn execution(row: &Row<'_>) -> rusqlite::Result<ExecutionId> {
    let id: String = row.get(0)?;
    ExecutionId::new(&id).map_err(|why| error::unreadable(0, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_since_is_counted_along_an_index_alone() {
        let connection = list::tests::empty();
        for (sql, index) in [
            (COUNTS_SINCE, "runs USING COVERING INDEX runs_by_status (status=? AND updated_at>?)"),
            (
                TENANT_COUNTS_SINCE,
                "runs USING COVERING INDEX runs_by_tenant_status (tenant=? AND status=? AND updated_at>?)",
            ),
        ] {
            let plan = list::tests::plan(&connection, sql);
            assert!(plan.contains(index) && !plan.contains("SCAN runs"), "{sql}: {plan}");
        }
    }

    /// Row by row: how many rows of any table the writing of it changed.
    fn changes(connection: &Connection, rows: &[IndexRow]) -> Vec<u64> {
        let mut before = connection.total_changes();
        let put = |row: &IndexRow| {
            Stored::of(Cow::Borrowed(row)).unwrap().write(connection, upsert!("runs")).unwrap();
            let after = connection.total_changes();
            after - std::mem::replace(&mut before, after)
        };
        rows.iter().map(put).collect()
    }

    #[test]
    fn an_ordinary_run_is_written_in_one_row_and_labels_and_waits_cost_those_who_have_them() {
        let connection = list::tests::empty();
        let row = |execution: &str, version: i64, labels: &[&str], waits: Option<&[&str]>| {
            let at = Timestamp::from_micros(version);
            let id = ExecutionId::new(execution).unwrap();
            let summary = serde_json::json!({
                "run_id": execution, "flow_name": "f", "tag": "cpu", "tags": labels, "status": "RUNNING",
                "tenant_id": null, "api_key_id": null, "updated_at": null, "heartbeat_at": null, "error": null,
            });
            let wait = |node: &&str| Wait { node: NodeId::new(node).unwrap(), since: at };
            IndexRow {
                execution: id,
                version: Version(u64::try_from(version).unwrap()),
                summary: serde_json::from_value(summary).unwrap(),
                created_at: Timestamp::from_micros(0),
                updated_at: at,
                started_at: None,
                ended_at: None,
                cancel_requested_at: None,
                workflow_sha256: None,
                hidden: false,
                next_timer: None,
                wants_job: false,
                has_waited: waits.is_some(),
                is_archived: false,
                is_foreign: false,
                waits: waits.unwrap_or_default().iter().map(wait).collect(),
            }
        };
        let ordinary = |version| row("ordinary", version, &["cpu"], None);
        // The first is counted, also for its day, and gets its place among the jobs, under its label, which is counted as well; one that is older changes nothing.
        let new = 2 + 1 + 2 + 1;
        assert_eq!(
            changes(&connection, &[ordinary(1), ordinary(2), ordinary(3), ordinary(2)]),
            [new, 1, 1, 0]
        );
        let labelled = |version| row("labelled", version, &["cpu", "nightly"], None);
        // One label more: in its list, among the jobs, and counted.
        assert_eq!(
            changes(&connection, &[labelled(1), labelled(2), labelled(1)]),
            [new + 2 + 2, 1 + 2 + 2, 0]
        );
        let waiting = |version, nodes: &[&str]| row("waiting", version, &["cpu"], Some(nodes));
        // One that waited has none to remove when it goes on to change.
        assert_eq!(
            changes(
                &connection,
                &[waiting(1, &["a", "b"]), waiting(2, &[]), waiting(3, &[]), waiting(1, &["a"])]
            ),
            [new + 2, 1 + 2, 1, 0]
        );
    }

    #[test]
    fn what_the_sweeper_asks_uses_the_small_indexes() {
        let connection = list::tests::empty();
        for (sql, index) in
            [(DUE, "runs_with_timer"), (RUNNABLE, "runs_wanting_job"), (QUEUES, "runs_wanting_job (tag=?)")]
        {
            let plan = list::tests::plan(&connection, sql);
            assert!(plan.contains(index) && !plan.contains("TEMP B-TREE"), "{sql}: {plan}");
        }
    }
}
