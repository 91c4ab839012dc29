//! The list of runs: the statement for each combination of filters, and the page that it gives.

use pyoco_core::cursor::Cursor;
use pyoco_core::view::RunStatus;
use pyoco_ports::{Filter, Page};
use rusqlite::{Connection, ToSql};

use crate::index::{columns, decode};

/// A page, newest change first.
pub(crate) fn page(connection: &Connection, filter: &Filter, limit: usize) -> rusqlite::Result<Page> {
    // One more than is shown tells whether there is more.
    let wanted = i64::try_from(limit.saturating_add(1)).unwrap_or(i64::MAX);
    let (sql, mut values) = statement(filter);
    values.push((":wanted", Box::new(wanted)));
    let values: Vec<(&str, &dyn ToSql)> =
        values.iter().map(|(name, value)| (*name, value.as_ref())).collect();
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query_map(values.as_slice(), decode)?.collect::<rusqlite::Result<Vec<_>>>()?;
    let more = rows.len() > limit;
    rows.truncate(limit);
    let last = rows.last().filter(|_| more);
    let next = last.map(|row| Cursor { updated_at: row.updated_at, id: row.execution.clone() });
    Ok(Page { rows, next })
}

type Values = Vec<(&'static str, Box<dyn ToSql>)>;

/// Every status there is.
const STATUSES: [RunStatus; 6] = [
    RunStatus::Pending,
    RunStatus::Running,
    RunStatus::Cancelling,
    RunStatus::Completed,
    RunStatus::Failed,
    RunStatus::Cancelled,
];

/// The statement of a filter. Only what is set is in it: a condition that may or may not apply would keep SQLite from using
/// the index that is made for the others. The text is put together from constants; values are bound.
fn statement(filter: &Filter) -> (String, Values) {
    let mut conditions: Vec<&'static str> = Vec::new();
    let mut values: Values = Vec::new();
    let mut equal = |condition: &'static str, name: &'static str, value: Option<String>| {
        if let Some(value) = value {
            conditions.push(condition);
            values.push((name, Box::new(value)));
        }
    };
    equal("tenant = :tenant", ":tenant", filter.tenant.as_ref().map(ToString::to_string));
    equal("status = :status", ":status", filter.status.as_ref().map(ToString::to_string));
    equal("flow = :flow", ":flow", filter.flow.clone());
    equal("tag = :tag", ":tag", filter.tag.clone());
    equal("workflow_sha256 = :workflow", ":workflow", filter.workflow_sha256.clone());
    if let Some(after) = filter.updated_after {
        conditions.push("updated_at > :after");
        values.push((":after", Box::new(after.as_micros())));
    }
    if let Some(cursor) = &filter.cursor {
        conditions.push("(updated_at, execution) < (:cursor_at, :cursor_id)");
        values.push((":cursor_at", Box::new(cursor.updated_at.as_micros())));
        values.push((":cursor_id", Box::new(cursor.id.to_string())));
    }
    let (index, has_status) = index(filter);
    let selects: Vec<String> = if has_status && filter.status.is_none() {
        // The order is within each status, so a list of all of them is a merge of their stretches.
        let one = |status| format!("{} AND status = '{status}'", select(index, &conditions));
        STATUSES.map(one).to_vec()
    } else {
        vec![select(index, &conditions)]
    };
    let mut sql = selects.join(" UNION ALL ");
    sql.push_str(" ORDER BY updated_at DESC, execution DESC LIMIT :wanted");
    (sql, values)
}

fn select(index: &'static str, conditions: &[&'static str]) -> String {
    let mut sql = concat!("SELECT ", columns!(), " FROM runs INDEXED BY ").to_owned();
    sql.push_str(index);
    if !conditions.is_empty() {
        sql.push_str(" WHERE ");
        sql.push_str(&conditions.join(" AND "));
    }
    sql
}

/// The index that a list is read along, and whether the status stands in it before the time. SQLite is told: left to itself
/// it takes a worse one when there are two bounds on the time. Of flow, tag and submitted text the one that usually leaves
/// the fewest rows decides; if two of them are asked for, the other is looked at row by row.
fn index(filter: &Filter) -> (&'static str, bool) {
    let (for_all, for_tenant, has_status) = if filter.workflow_sha256.is_some() {
        ("runs_by_workflow", "runs_by_tenant_workflow", true)
    } else if filter.flow.is_some() {
        ("runs_by_flow", "runs_by_tenant_flow", true)
    } else if filter.tag.is_some() {
        ("runs_by_tag", "runs_by_tenant_tag", true)
    } else if filter.status.is_some() {
        ("runs_by_status", "runs_by_tenant_status", true)
    } else {
        ("runs_by_change", "runs_by_tenant", false)
    };
    (if filter.tenant.is_some() { for_tenant } else { for_all }, has_status)
}

#[cfg(test)]
pub(crate) mod tests {
    use pyoco_core::ids::{ExecutionId, TenantId};
    use pyoco_core::time::Timestamp;

    use super::*;

    pub(crate) fn empty() -> Connection {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        std::fs::write(&path, b"").unwrap();
        crate::connection::create(&path, &crate::schema::MAIN).unwrap();
        crate::connection::writer(&path).unwrap()
    }

    pub(crate) fn plan(connection: &Connection, sql: &str) -> String {
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let steps = statement.raw_query().mapped(|row| row.get::<_, String>("detail"));
        steps.collect::<rusqlite::Result<Vec<_>>>().unwrap().join("; ")
    }

    #[test]
    fn each_list_walks_along_an_index_and_sorts_nothing() {
        let connection = empty();
        let mut seen = 0;
        for set in 0_u32..128 {
            let on = |bit: u32| set & (1 << bit) != 0;
            let at = Timestamp::from_micros(7);
            let filter = Filter {
                tenant: on(0).then(|| TenantId::new("t").unwrap()),
                status: on(1).then_some(RunStatus::Failed),
                flow: on(2).then(|| "f".to_owned()),
                tag: on(3).then(|| "g".to_owned()),
                workflow_sha256: on(4).then(|| "w".to_owned()),
                updated_after: on(5).then_some(at),
                cursor: on(6).then(|| Cursor { updated_at: at, id: ExecutionId::new("e").unwrap() }),
            };
            let plan = plan(&connection, &statement(&filter).0);
            assert!(!plan.contains("TEMP B-TREE"), "{filter:?}: {plan}");
            // Without any bound the page is the end of the index that has all rows in order; else it is looked up.
            let whole = set == 0;
            assert_eq!(plan.contains("SCAN"), whole, "{filter:?}: {plan}");
            // Each status is a stretch of its own, unless one is asked for or nothing is but the time.
            let stretches = if !on(1) && (on(2) || on(3) || on(4)) { 6 } else { 1 };
            assert_eq!(plan.matches("USING INDEX runs_by_").count(), stretches, "{filter:?}: {plan}");
            if on(1) || stretches > 1 {
                assert_eq!(plan.matches("status=?").count(), stretches, "{filter:?}: {plan}");
            }
            for (bit, bound) in [(5, "updated_at>?"), (6, "(updated_at,execution)<(?,?)")] {
                let wanted = if on(bit) { stretches } else { 0 };
                assert_eq!(plan.matches(bound).count(), wanted, "{filter:?}: {plan}");
            }
            let first = [(4, "workflow"), (2, "flow"), (3, "tag"), (1, "status")];
            let tenant = if on(0) { "tenant_" } else { "" };
            if let Some((_, name)) = first.into_iter().find(|(bit, _)| on(*bit)) {
                assert!(plan.contains(&format!("runs_by_{tenant}{name} ")), "{filter:?}: {plan}");
                seen += 1;
            }
        }
        assert_eq!(seen, 120);
    }

    #[test]
    fn a_list_of_all_statuses_leaves_none_out() {
        // A status more does not compile here until it has a place.
        let place = |status| match status {
            RunStatus::Pending => 0,
            RunStatus::Running => 1,
            RunStatus::Cancelling => 2,
            RunStatus::Completed => 3,
            RunStatus::Failed => 4,
            RunStatus::Cancelled => 5,
        };
        assert_eq!(STATUSES.map(place), [0, 1, 2, 3, 4, 5]);
    }
}
