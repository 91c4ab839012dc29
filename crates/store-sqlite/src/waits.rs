//! The list of nodes that wait for somebody: its statement and its pages.

use pyoco_core::ids::{ExecutionId, NodeId};
use pyoco_core::time::Timestamp;
use pyoco_ports::{WaitFilter, WaitPage, WaitPlace};
use rusqlite::{Connection, Row, ToSql};

use crate::error;
use crate::list::{HAS_LABEL, Values};

/// A page, newest wait first.
pub(crate) fn page(connection: &Connection, filter: &WaitFilter, limit: usize) -> rusqlite::Result<WaitPage> {
    // One more than is shown tells whether there is more.
    let wanted = i64::try_from(limit.saturating_add(1)).unwrap_or(i64::MAX);
    let (sql, mut values) = statement(filter);
    values.push((":wanted", Box::new(wanted)));
    let values: Vec<(&str, &dyn ToSql)> =
        values.iter().map(|(name, value)| (*name, value.as_ref())).collect();
    let mut statement = connection.prepare_cached(&sql)?;
    let mut waits = statement.query_map(values.as_slice(), decode)?.collect::<rusqlite::Result<Vec<_>>>()?;
    let more = waits.len() > limit;
    waits.truncate(limit);
    let next = waits.last().cloned().filter(|_| more);
    Ok(WaitPage { waits, next })
}

/// Only what is set is in it, as in the list of runs. What waits now is little beside what ever ran, so a label is looked at
/// wait by wait.
fn statement(filter: &WaitFilter) -> (String, Values) {
    let mut conditions: Vec<&'static str> = Vec::new();
    let mut values: Values = Vec::new();
    let mut index = "waits_in_order";
    if let Some(tenant) = &filter.tenant {
        index = "waits_by_tenant";
        conditions.push("walked.tenant = :tenant");
        values.push((":tenant", Box::new(tenant.to_string())));
    }
    // Of two ends SQLite looks up one and compares the other row by row, so only the nearer one is told.
    let end = filter.since_before;
    match filter.cursor.as_ref().filter(|cursor| end.is_none_or(|end| cursor.since <= end)) {
        Some(cursor) => {
            conditions.push("(since, walked.execution, node) < (:cursor_since, :cursor_id, :cursor_node)");
            values.push((":cursor_since", Box::new(cursor.since.as_micros())));
            values.push((":cursor_id", Box::new(cursor.execution.to_string())));
            values.push((":cursor_node", Box::new(cursor.node.to_string())));
        }
        None => {
            if let Some(end) = end {
                conditions.push("since <= :before");
                values.push((":before", Box::new(end.as_micros())));
            }
        }
    }
    let mut sql = format!("SELECT since, walked.execution, node FROM waits AS walked INDEXED BY {index}");
    if let Some(label) = &filter.label {
        sql.push_str(" CROSS JOIN runs ON runs.execution = walked.execution");
        conditions.push(HAS_LABEL);
        values.push((":label", Box::new(label.clone())));
    }
    if !conditions.is_empty() {
        sql.push_str(" WHERE ");
        sql.push_str(&conditions.join(" AND "));
    }
    sql.push_str(" ORDER BY since DESC, walked.execution DESC, node DESC LIMIT :wanted");
    (sql, values)
}

fn decode(row: &Row<'_>) -> rusqlite::Result<WaitPlace> {
    let (execution, node): (String, String) = (row.get(1)?, row.get(2)?);
    Ok(WaitPlace {
        since: Timestamp::from_micros(row.get(0)?),
        execution: ExecutionId::new(&execution).map_err(|why| error::unreadable(1, why))?,
        node: NodeId::new(&node).map_err(|why| error::unreadable(2, why))?,
    })
}

#[cfg(test)]
mod tests {
    use pyoco_core::ids::TenantId;

    use super::*;
    use crate::list::tests::{empty, plan};

    #[test]
    fn each_list_of_waits_walks_along_an_index_and_sorts_nothing() {
        let connection = empty();
        let at = |micros| Timestamp::from_micros(micros);
        for set in 0_u32..16 {
            let on = |bit: u32| set & (1 << bit) != 0;
            let filter = WaitFilter {
                tenant: on(0).then(|| TenantId::new("t").unwrap()),
                label: on(1).then(|| "l".to_owned()),
                since_before: on(2).then(|| at(9)),
                cursor: on(3).then(|| WaitPlace {
                    since: at(7),
                    execution: ExecutionId::new("e").unwrap(),
                    node: NodeId::new("n").unwrap(),
                }),
            };
            let plan = plan(&connection, &statement(&filter).0);
            assert!(!plan.contains("TEMP B-TREE"), "{filter:?}: {plan}");
            let (index, tenant) =
                if on(0) { ("waits_by_tenant", "tenant=? AND ") } else { ("waits_in_order", "") };
            let walks = if on(3) {
                format!("{index} ({tenant}(since,execution,node)<(?,?,?))")
            } else if on(2) {
                format!("{index} ({tenant}since<?)")
            } else {
                format!("{index}{}", if on(0) { " (tenant=?)" } else { "" })
            };
            assert!(plan.contains(&walks), "{filter:?}: {plan}");
        }
    }
}
