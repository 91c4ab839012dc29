//! The list of jobs and that of their labels, in memory.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use pyoco_ports::{IndexRow, JobFilter, JobPage, JobPlace, LabelFilter, LabelPage};

use crate::Inner;

fn place_of(row: &IndexRow) -> JobPlace {
    JobPlace { created_at: row.created_at, execution: row.execution.clone() }
}

fn matches(filter: &JobFilter, row: &IndexRow) -> bool {
    let has = |label: &String| row.summary.tags.contains(label);
    !row.hidden
        && (filter.tenant.is_none() || filter.tenant == row.summary.tenant_id)
        && filter.all_labels.iter().all(has)
        && (filter.any_labels.is_empty() || filter.any_labels.iter().any(has))
        && (filter.statuses.is_empty() || filter.statuses.contains(&row.summary.status))
        && filter.flow.as_ref().is_none_or(|flow| *flow == row.summary.flow_name)
        && filter.created_after.is_none_or(|after| row.created_at > after)
        && filter.created_before.is_none_or(|before| row.created_at < before)
        && filter.cursor.as_ref().is_none_or(|cursor| place_of(row) < *cursor)
}

impl Inner {
    pub(crate) fn jobs_page(&self, filter: &JobFilter, limit: usize) -> JobPage {
        let mut rows: Vec<IndexRow> =
            self.rows.values().filter(|row| matches(filter, row)).cloned().collect();
        rows.sort_by_key(|row| Reverse(place_of(row)));
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().map(place_of).filter(|_| more);
        JobPage { rows, next }
    }

    pub(crate) fn labels_page(&self, filter: &LabelFilter, limit: usize) -> LabelPage {
        let everything = JobFilter { tenant: filter.tenant.clone(), ..JobFilter::default() };
        let mut counts: BTreeMap<&String, u64> = BTreeMap::new();
        for row in self.rows.values().filter(|row| matches(&everything, row)) {
            for label in row.summary.tags.iter().collect::<BTreeSet<_>>() {
                *counts.entry(label).or_default() += 1;
            }
        }
        let is_shown = |label: &str| {
            filter.prefix.as_deref().is_none_or(|prefix| label.starts_with(prefix))
                && filter.after.as_deref().is_none_or(|after| label > after)
        };
        let mut labels: Vec<(String, u64)> = counts
            .into_iter()
            .filter(|(label, _)| is_shown(label))
            .map(|(label, count)| (label.clone(), count))
            .collect();
        let more = labels.len() > limit;
        labels.truncate(limit);
        let next = labels.last().map(|(label, _)| label.clone()).filter(|_| more);
        LabelPage { labels, next }
    }
}
