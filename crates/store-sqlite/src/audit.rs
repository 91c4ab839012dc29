//! The audit trail: a row for each entry, in the order in which they were written.

use async_trait::async_trait;
use pyoco_core::ids::TenantId;
use pyoco_core::time::Timestamp;
use pyoco_ports::{AuditEntry, AuditFilter, AuditPage, AuditTrail, Durability, LOOKED_AT, StoreError};
use rusqlite::types::Value;
use rusqlite::{Connection, Row, params_from_iter};

use crate::command::Terms;
use crate::{SqliteStore, error};

/// The columns of an entry, in the order in which `decode` reads them.
macro_rules! columns {
    () => {
        "entry, at, action, tenant, target, body"
    };
}

const WRITE: &str = concat!(
    "INSERT INTO audit (",
    columns!(),
    ") VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (entry) DO NOTHING"
);

const ALL: &str = concat!("SELECT ", columns!(), ", id FROM audit WHERE id < ?1 ORDER BY id DESC LIMIT ?2");

const OF_TARGET: &str =
    concat!("SELECT ", columns!(), ", id FROM audit WHERE id < ?1 AND target = ?3 ORDER BY id DESC LIMIT ?2");

/// Whether no entry that is young enough stands before a place. Told from the oldest of them, which stand first; so nobody walks through
/// a whole trail for what is not there.
const IS_OVER: &str = "SELECT count(*) < ?3 AND ifnull(min(id), ?2) >= ?2 \
     FROM (SELECT id FROM audit WHERE at >= ?1 ORDER BY at, id LIMIT ?3)";

const PRUNE: &str =
    "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE at < ?1 ORDER BY at, id LIMIT ?2)";

#[async_trait]
impl AuditTrail for SqliteStore {
    async fn write_audit(&self, entries: Vec<AuditEntry>) -> Result<(), StoreError> {
        let terms = Terms { operation: "write the audit trail", durability: Durability::Full, wakes: None };
        self.write(terms, move |connection| {
            let mut write = connection.prepare_cached(WRITE)?;
            for AuditEntry { id, at, action, tenant, target, body } in &entries {
                let tenant = tenant.as_ref().map(TenantId::as_str);
                write.execute((id, at.as_micros(), action, tenant, target, body))?;
            }
            Ok(())
        })
        .await
    }

    async fn audit(&self, filter: &AuditFilter, limit: usize) -> Result<AuditPage, StoreError> {
        let filter = filter.clone();
        self.read("read the audit trail", move |connection| page(connection, &filter, limit)).await
    }

    async fn prune_audit(&self, before: Timestamp, most: usize) -> Result<usize, StoreError> {
        let terms = Terms { operation: "prune the audit trail", durability: Durability::Full, wakes: None };
        let most = number(most);
        self.write(terms, move |connection| {
            connection.prepare_cached(PRUNE)?.execute((before.as_micros(), most))
        })
        .await
    }
}

fn page(connection: &Connection, filter: &AuditFilter, limit: usize) -> rusqlite::Result<AuditPage> {
    // No row has a number beyond what SQLite can count.
    let before = filter.before.and_then(|before| i64::try_from(before).ok()).unwrap_or(i64::MAX);
    // One more: it says whether there is more.
    let mut values = vec![Value::from(before), Value::from(number(LOOKED_AT + 1))];
    values.extend(filter.target.clone().map(Value::from));
    let mut statement = connection.prepare_cached(if filter.target.is_some() { OF_TARGET } else { ALL })?;
    let mut rows = statement.query(params_from_iter(values))?;
    let (mut entries, mut looked, mut next) = (Vec::new(), 0, None);
    while let Some(row) = rows.next()? {
        if entries.len() >= limit || looked >= LOOKED_AT {
            next = Some(row.get::<_, u64>(6)?.saturating_add(1));
            break;
        }
        looked += 1;
        let entry = decode(row)?;
        if filter.shows(&entry) {
            entries.push(entry);
        }
    }
    if let (Some(place), Some(since)) = (next, filter.since)
        && is_over(connection, since, place)?
    {
        next = None;
    }
    Ok(AuditPage { entries, next })
}

/// Whether no entry before a place is as young as that.
fn is_over(connection: &Connection, since: Timestamp, place: u64) -> rusqlite::Result<bool> {
    let values = (since.as_micros(), place, number(LOOKED_AT));
    connection.prepare_cached(IS_OVER)?.query_row(values, |row| row.get(0))
}

fn decode(row: &Row<'_>) -> rusqlite::Result<AuditEntry> {
    let tenant: Option<String> = row.get(3)?;
    let tenant = tenant.map(|tenant| TenantId::new(&tenant)).transpose();
    Ok(AuditEntry {
        id: row.get(0)?,
        at: Timestamp::from_micros(row.get(1)?),
        action: row.get(2)?,
        tenant: tenant.map_err(|why| error::unreadable(3, why))?,
        target: row.get(4)?,
        body: row.get(5)?,
    })
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_along_an_index_and_sorted_by_nobody() {
        let connection = crate::list::tests::empty();
        for (sql, index) in [
            (ALL, "audit USING INTEGER PRIMARY KEY"),
            (OF_TARGET, "audit USING INDEX audit_by_target"),
            (IS_OVER, "audit USING COVERING INDEX audit_by_at"),
            (PRUNE, "audit USING COVERING INDEX audit_by_at"),
        ] {
            let plan = crate::list::tests::plan(&connection, sql);
            assert!(plan.contains(index) && !plan.contains("TEMP B-TREE"), "{sql}: {plan}");
        }
    }

    #[test]
    fn a_page_ends_where_nothing_is_young_enough_any_more() {
        let connection = crate::list::tests::empty();
        // All of a minute, then one that was written late.
        for at in (0..LOOKED_AT as i64 * 2).chain([5]) {
            connection
                .execute(
                    WRITE,
                    (
                        at.to_string() + "-" + &connection.last_insert_rowid().to_string(),
                        at,
                        "a",
                        None::<String>,
                        None::<String>,
                        b"{}",
                    ),
                )
                .unwrap();
        }
        let page = |since: i64, before: Option<u64>| {
            let filter =
                AuditFilter { since: Some(Timestamp::from_micros(since)), before, ..AuditFilter::default() };
            let page = super::page(&connection, &filter, LOOKED_AT).unwrap();
            (page.entries.len(), page.next.is_some())
        };
        let young = LOOKED_AT as i64 * 2 - 10;
        assert_eq!(page(young, None), (10, false), "nothing else is as young");
        assert_eq!(page(0, None), (LOOKED_AT, true));
        assert_eq!(page(0, Some(10)), (9, false));
        // As many are young enough as are looked at: whoever asks is told to go on.
        assert_eq!(page(LOOKED_AT as i64 - 5, None), (LOOKED_AT - 1, true));
    }
}
