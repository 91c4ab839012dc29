//! The list of runs: the statement for each combination of filters, and the page that it gives.

use pyoco_core::cursor::Cursor;
use pyoco_core::time::Timestamp;
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

pub(crate) type Values = Vec<(&'static str, Box<dyn ToSql>)>;

/// Every status there is.
const STATUSES: [RunStatus; 6] = [
    RunStatus::Pending,
    RunStatus::Running,
    RunStatus::Cancelling,
    RunStatus::Completed,
    RunStatus::Failed,
    RunStatus::Cancelled,
];

/// Whether a run has a label, asked of one that was found by something else.
pub(crate) const HAS_LABEL: &str = "iif(labelled, EXISTS (SELECT 1 FROM labels \
    WHERE labels.execution = walked.execution AND labels.label = :label), tag = :label)";

/// The statement of a filter. Only what is set is in it: a condition that may or may not apply would keep SQLite from using
/// the index that is made for the others. The text is put together from constants; values are bound.
fn statement(filter: &Filter) -> (String, Values) {
    let ways = ways(filter);
    let (mut conditions, values) = conditions(filter);
    if filter.label.is_some() && !ways.is_by_label {
        conditions.push(HAS_LABEL);
    }
    let mut selects: Vec<String> = Vec::new();
    for (from, own) in ways.walked {
        let mut conditions = conditions.clone();
        conditions.extend(own);
        let select = select(&from, &conditions);
        if ways.has_status {
            // The order is within each status, so a list of several is a merge of their stretches.
            let is_wanted =
                |status: &RunStatus| filter.statuses.is_empty() || filter.statuses.contains(status);
            let wanted = STATUSES.into_iter().filter(is_wanted);
            let joint = if conditions.is_empty() { "WHERE" } else { "AND" };
            selects.extend(wanted.map(|status| format!("{select} {joint} walked.status = '{status}'")));
        } else {
            selects.push(select);
        }
    }
    let mut sql = selects.join(" UNION ALL ");
    // By the time of the change, and the execution.
    sql.push_str(" ORDER BY 4 DESC, 1 DESC LIMIT :wanted");
    (sql, values)
}

/// What every row must be like, but for status and label.
fn conditions(filter: &Filter) -> (Vec<&'static str>, Values) {
    let mut conditions: Vec<&'static str> = Vec::new();
    let mut values: Values = Vec::new();
    let mut equal = |condition: &'static str, name: &'static str, value: Option<String>| {
        if let Some(value) = value {
            conditions.push(condition);
            values.push((name, Box::new(value)));
        }
    };
    equal("walked.tenant = :tenant", ":tenant", filter.tenant.as_ref().map(ToString::to_string));
    equal("flow = :flow", ":flow", filter.flow.clone());
    equal("tag = :tag", ":tag", filter.tag.clone());
    equal("workflow_sha256 = :workflow", ":workflow", filter.workflow_sha256.clone());
    let mut bound = |condition: &'static str, name: &'static str, at: Option<Timestamp>| {
        if let Some(at) = at {
            conditions.push(condition);
            values.push((name, Box::new(at.as_micros())));
        }
    };
    bound("created_at > :created_after", ":created_after", filter.created_after);
    bound("created_at < :created_before", ":created_before", filter.created_before);
    // Nothing changes before it is created, so that bounds the change too.
    bound("walked.updated_at > :after", ":after", filter.updated_after.max(filter.created_after));
    // Of two ends SQLite looks up one and compares the other row by row, so only the nearer one is told.
    let end = filter.updated_before;
    match filter.cursor.as_ref().filter(|cursor| end.is_none_or(|end| cursor.updated_at < end)) {
        None => bound("walked.updated_at < :before", ":before", end),
        Some(cursor) => {
            conditions.push("(walked.updated_at, walked.execution) < (:cursor_at, :cursor_id)");
            values.push((":cursor_at", Box::new(cursor.updated_at.as_micros())));
            values.push((":cursor_id", Box::new(cursor.id.to_string())));
        }
    }
    if let Some(label) = &filter.label {
        values.push((":label", Box::new(label.clone())));
    }
    (conditions, values)
}

fn select(from: &str, conditions: &[&'static str]) -> String {
    let mut sql = concat!("SELECT ", columns!("walked."), " FROM ").to_owned();
    sql.push_str(from);
    if !conditions.is_empty() {
        sql.push_str(" WHERE ");
        sql.push_str(&conditions.join(" AND "));
    }
    sql
}

/// How a list is read.
struct Ways {
    /// What is walked along, as `walked`, and what the rows of that way alone are like. No row is on two of them.
    walked: Vec<(String, Option<&'static str>)>,
    /// The status stands before the time there.
    has_status: bool,
    /// They lead to the runs with the label.
    is_by_label: bool,
}

/// The index that a list is read along. SQLite is told: left to itself it takes a worse one when there are two bounds on the
/// time. Of flow, tag, label and submitted text the one that usually leaves the fewest rows decides; if two of them are asked for,
/// the other is looked at row by row.
fn ways(filter: &Filter) -> Ways {
    let is_tenants = filter.tenant.is_some();
    let pick = |for_all: &'static str, for_tenant| if is_tenants { for_tenant } else { for_all };
    let along = |index: &str| format!("runs AS walked INDEXED BY {index}");
    let one = |index, has_status| Ways { walked: vec![(along(index), None)], has_status, is_by_label: false };
    if filter.workflow_sha256.is_some() {
        return one(pick("runs_by_workflow", "runs_by_tenant_workflow"), true);
    }
    if filter.flow.is_some() {
        return one(pick("runs_by_flow", "runs_by_tenant_flow"), true);
    }
    let by_tag = along(pick("runs_by_tag", "runs_by_tenant_tag"));
    if filter.label.is_some() {
        // Most runs have no label but their tag; the others stand in a table of their own.
        let index = pick("labels_in_order", "labels_by_tenant");
        let by_label = format!(
            "labels AS walked INDEXED BY {index} CROSS JOIN runs ON runs.execution = walked.execution"
        );
        let walked =
            vec![(by_tag, Some("tag = :label AND labelled = 0")), (by_label, Some("label = :label"))];
        return Ways { walked, has_status: true, is_by_label: true };
    }
    if filter.tag.is_some() {
        let walked = vec![(by_tag.clone(), Some("labelled = 0")), (by_tag, Some("labelled = 1"))];
        return Ways { walked, has_status: true, is_by_label: false };
    }
    if filter.statuses.is_empty() {
        one(pick("runs_by_change", "runs_by_tenant"), false)
    } else {
        one(pick("runs_by_status", "runs_by_tenant_status"), true)
    }
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
        crate::connection::writer(&path, &crate::schema::MAIN).unwrap()
    }

    pub(crate) fn plan(connection: &Connection, sql: &str) -> String {
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let steps = statement.raw_query().mapped(|row| row.get::<_, String>("detail"));
        steps.collect::<rusqlite::Result<Vec<_>>>().unwrap().join("; ")
    }

    /// A list for each set of filters: bit n says whether the filter n is set.
    fn filter_of(set: u32) -> Filter {
        let on = |bit: u32| set & (1 << bit) != 0;
        let at = |micros| Timestamp::from_micros(micros);
        Filter {
            tenant: on(0).then(|| TenantId::new("t").unwrap()),
            statuses: if on(1) { vec![RunStatus::Failed] } else { Vec::new() },
            flow: on(2).then(|| "f".to_owned()),
            tag: on(3).then(|| "g".to_owned()),
            workflow_sha256: on(4).then(|| "w".to_owned()),
            updated_after: on(5).then(|| at(7)),
            cursor: on(6).then(|| Cursor { updated_at: at(9), id: ExecutionId::new("e").unwrap() }),
            label: on(7).then(|| "l".to_owned()),
            updated_before: on(8).then(|| at(11)),
            created_after: on(9).then(|| at(6)),
            created_before: on(10).then(|| at(12)),
        }
    }

    #[test]
    fn each_list_walks_along_an_index_and_sorts_nothing() {
        let connection = empty();
        let mut seen = 0;
        for set in 0_u32..1 << 11 {
            let on = |bit: u32| set & (1 << bit) != 0;
            let filter = filter_of(set);
            let plan = plan(&connection, &statement(&filter).0);
            assert!(!plan.contains("TEMP B-TREE"), "{filter:?}: {plan}");
            let (first, ways) = match () {
                () if on(4) => ("workflow", 1),
                () if on(2) => ("flow", 1),
                // A run is found by its tag or by its labels, or by its tag with labels or without.
                () if on(7) || on(3) => ("tag", 2),
                () if on(1) => ("status", 1),
                () => ("", 1),
            };
            // Each status is a stretch of its own, unless one is asked for or nothing is but the time.
            let stretches = if first.is_empty() || on(1) { ways } else { ways * STATUSES.len() };
            let is_by_label = on(7) && first == "tag";
            let labels = plan.matches("USING COVERING INDEX labels_").count()
                + plan.matches("USING INDEX labels_").count();
            let runs = plan.matches("USING INDEX runs_by_").count();
            assert_eq!(
                (runs + labels, labels),
                (stretches, if is_by_label { stretches / 2 } else { 0 }),
                "{filter:?}: {plan}"
            );
            // Without any bound the page is the end of the index that has all rows in order; else it is looked up.
            let is_bounded = set & !(1 << 10) != 0;
            assert_eq!(plan.contains("SCAN"), !is_bounded, "{filter:?}: {plan}");
            if !first.is_empty() {
                assert_eq!(plan.matches("status=?").count(), stretches, "{filter:?}: {plan}");
                let tenant = if on(0) { "tenant_" } else { "" };
                assert!(plan.contains(&format!("runs_by_{tenant}{first} ")), "{filter:?}: {plan}");
                seen += 1;
            }
            // The nearer end of two, and a beginning that the creation gives too.
            for (is_set, bound) in [
                (on(5) || on(9), "updated_at>?"),
                (on(6), "(updated_at,execution)<(?,?)"),
                (on(8) && !on(6), "updated_at<?"),
            ] {
                let wanted = if is_set { stretches } else { 0 };
                assert_eq!(plan.matches(bound).count(), wanted, "{bound} {filter:?}: {plan}");
            }
        }
        assert_eq!(seen, (1 << 11) - (1 << 6));
    }

    #[test]
    fn a_cursor_behind_the_end_is_left_out() {
        let mut filter = filter_of(1 << 6 | 1 << 8);
        filter.updated_before = filter.cursor.as_ref().map(|cursor| cursor.updated_at);
        let plan = plan(&empty(), &statement(&filter).0);
        assert!(plan.contains("(updated_at<?)"), "{plan}");
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
