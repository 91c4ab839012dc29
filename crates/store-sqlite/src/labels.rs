//! The list of labels with how many jobs have each. They are counted by the triggers of the schema, so nobody counts here.

use pyoco_core::ids::TenantId;
use pyoco_ports::{LabelFilter, LabelPage};
use rusqlite::Connection;

/// A page, in the order of the labels' bytes.
pub(crate) fn page(
    connection: &Connection,
    filter: &LabelFilter,
    limit: usize,
) -> rusqlite::Result<LabelPage> {
    let scope = filter.tenant.as_ref().map_or("", TenantId::as_str);
    let prefix = filter.prefix.as_deref().unwrap_or_default();
    // Those that begin with a text stand together, and it stands before all of them.
    let (sql, from) = match filter.after.as_deref() {
        Some(after) if after >= prefix => (BEHIND, after),
        Some(_) | None => (FROM, prefix),
    };
    // One more than is shown tells whether there is more.
    let wanted = i64::try_from(limit.saturating_add(1)).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(sql)?;
    let mut found = statement.query((scope, from, wanted))?;
    let mut labels: Vec<(String, u64)> = Vec::new();
    let mut more = false;
    while let Some(row) = found.next()? {
        let label: String = row.get(0)?;
        if !label.starts_with(prefix) {
            break;
        }
        if labels.len() == limit {
            more = true;
            break;
        }
        labels.push((label, row.get(1)?));
    }
    let next = labels.last().filter(|_| more).map(|(label, _)| label.clone());
    Ok(LabelPage { labels, next })
}

const FROM: &str =
    "SELECT label, jobs FROM label_counts WHERE scope = ?1 AND label >= ?2 ORDER BY label LIMIT ?3";
const BEHIND: &str =
    "SELECT label, jobs FROM label_counts WHERE scope = ?1 AND label > ?2 ORDER BY label LIMIT ?3";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list::tests::{empty, plan};

    #[test]
    fn labels_are_read_along_their_key_and_nothing_is_sorted() {
        let connection = empty();
        for sql in [FROM, BEHIND] {
            let plan = plan(&connection, sql);
            assert!(plan.contains("label_counts USING PRIMARY KEY (scope=? AND label>?)"), "{sql}: {plan}");
            assert!(!plan.contains("TEMP B-TREE"), "{sql}: {plan}");
        }
    }
}
