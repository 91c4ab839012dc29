//! The index in memory: it looks at every row, which is why it is not for production.

use std::collections::BTreeMap;

use std::collections::BTreeSet;

use async_trait::async_trait;
use pyoco_core::cursor::Cursor;
use pyoco_core::ids::{ExecutionId, Tag, TenantId};
use pyoco_core::time::Timestamp;
use pyoco_core::view::RunStatus;
use pyoco_ports::{
    EndedFilter, EndedPlace, Filter, IndexRow, JobFilter, JobPage, LabelFilter, LabelPage, Page, Queue,
    RunIndex, StoreError, Wait, WaitFilter, WaitPage, WaitPlace,
};

use crate::{Inner, MemoryStore};

impl Inner {
    pub(crate) fn put_row(&mut self, row: IndexRow) {
        let is_older = self.rows.get(&row.execution).is_some_and(|known| known.version > row.version);
        if !is_older {
            self.rows.insert(row.execution.clone(), row);
        }
    }
}

impl MemoryStore {
    fn count(
        &self,
        tenant: Option<&TenantId>,
        is_wanted: impl Fn(&IndexRow) -> bool,
    ) -> Vec<(RunStatus, u64)> {
        let mut counts: BTreeMap<RunStatus, u64> = BTreeMap::new();
        let filter = Filter { tenant: tenant.cloned(), ..Filter::default() };
        for row in self.inner().rows.values().filter(|row| matches(&filter, row) && is_wanted(row)) {
            *counts.entry(row.summary.status).or_default() += 1;
        }
        counts.into_iter().collect()
    }
}

fn cursor_of(row: &IndexRow) -> Cursor {
    Cursor { updated_at: row.updated_at, id: row.execution.clone() }
}

fn place_of(row: &IndexRow, wait: &Wait) -> WaitPlace {
    WaitPlace { since: wait.since, execution: row.execution.clone(), node: wait.node.clone() }
}

fn matches(filter: &Filter, row: &IndexRow) -> bool {
    fn fits<T: PartialEq>(wanted: Option<&T>, found: Option<&T>) -> bool {
        wanted.is_none() || wanted == found
    }
    let tag = row.summary.tag.as_ref().map(|tag| tag.as_str().to_owned());
    fits(filter.tenant.as_ref(), row.summary.tenant_id.as_ref())
        && (filter.statuses.is_empty() || filter.statuses.contains(&row.summary.status))
        && fits(filter.flow.as_ref(), Some(&row.summary.flow_name))
        && fits(filter.tag.as_ref(), tag.as_ref())
        && filter.label.as_ref().is_none_or(|label| row.summary.tags.contains(label))
        && fits(filter.workflow_sha256.as_ref(), row.workflow_sha256.as_ref())
        && filter.updated_after.is_none_or(|after| row.updated_at > after)
        && filter.updated_before.is_none_or(|before| row.updated_at < before)
        && filter.created_after.is_none_or(|after| row.created_at > after)
        && filter.created_before.is_none_or(|before| row.created_at < before)
        && filter.cursor.as_ref().is_none_or(|cursor| cursor_of(row) < *cursor)
}

#[async_trait]
impl RunIndex for MemoryStore {
    async fn put(&self, row: IndexRow) -> Result<(), StoreError> {
        self.inner().put_row(row);
        Ok(())
    }

    async fn forget(&self, execution: &ExecutionId) -> Result<(), StoreError> {
        self.inner().rows.remove(execution);
        Ok(())
    }

    async fn get(&self, execution: &ExecutionId) -> Result<Option<IndexRow>, StoreError> {
        Ok(self.inner().rows.get(execution).cloned())
    }

    async fn list(&self, filter: &Filter, limit: usize) -> Result<Page, StoreError> {
        let mut rows: Vec<IndexRow> =
            self.inner().rows.values().filter(|row| matches(filter, row)).cloned().collect();
        rows.sort_by_key(|row| std::cmp::Reverse(cursor_of(row)));
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().map(cursor_of).filter(|_| more);
        Ok(Page { rows, next })
    }

    async fn waits(&self, filter: &WaitFilter, limit: usize) -> Result<WaitPage, StoreError> {
        let inner = self.inner();
        let rows = inner.rows.values().filter(|row| {
            (filter.tenant.is_none() || filter.tenant == row.summary.tenant_id)
                && filter.label.as_ref().is_none_or(|label| row.summary.tags.contains(label))
        });
        let mut waits: Vec<WaitPlace> = rows
            .flat_map(|row| row.waits.iter().map(|wait| place_of(row, wait)))
            .filter(|place| filter.since_before.is_none_or(|before| place.since <= before))
            .filter(|place| filter.cursor.as_ref().is_none_or(|cursor| place < cursor))
            .collect();
        waits.sort_by(|one, other| other.cmp(one));
        let more = waits.len() > limit;
        waits.truncate(limit);
        let next = waits.last().cloned().filter(|_| more);
        Ok(WaitPage { waits, next })
    }

    async fn jobs(&self, filter: &JobFilter, limit: usize) -> Result<JobPage, StoreError> {
        Ok(self.inner().jobs_page(filter, limit))
    }

    async fn labels(&self, filter: &LabelFilter, limit: usize) -> Result<LabelPage, StoreError> {
        Ok(self.inner().labels_page(filter, limit))
    }

    async fn counts(&self, tenant: Option<&TenantId>) -> Result<Vec<(RunStatus, u64)>, StoreError> {
        Ok(self.count(tenant, |_| true))
    }

    async fn counts_since(
        &self,
        tenant: Option<&TenantId>,
        since: Timestamp,
    ) -> Result<Vec<(RunStatus, u64)>, StoreError> {
        Ok(self.count(tenant, |row| row.updated_at >= since))
    }

    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<ExecutionId>, StoreError> {
        let inner = self.inner();
        let timers =
            inner.rows.values().filter_map(|row| Some((row.next_timer.filter(|at| *at <= now)?, row)));
        let mut due: Vec<(Timestamp, ExecutionId)> =
            timers.map(|(at, row)| (at, row.execution.clone())).collect();
        due.sort();
        Ok(due.into_iter().take(limit).map(|(_, id)| id).collect())
    }

    async fn ended_before(&self, filter: &EndedFilter, limit: usize) -> Result<Vec<EndedPlace>, StoreError> {
        let inner = self.inner();
        let may_go =
            inner.rows.values().filter(|row| !row.is_archived && (filter.is_foreign_too || !row.is_foreign));
        let mut ended: Vec<EndedPlace> = may_go
            .filter_map(|row| Some(EndedPlace { ended_at: row.ended_at?, execution: row.execution.clone() }))
            .filter(|place| place.ended_at < filter.before && filter.after.as_ref() < Some(place))
            .collect();
        ended.sort();
        ended.truncate(limit);
        Ok(ended)
    }

    async fn runnable(&self, tag: &Tag, limit: usize) -> Result<Vec<ExecutionId>, StoreError> {
        let inner = self.inner();
        let wanting =
            inner.rows.values().filter(|row| row.wants_job && row.summary.tag.as_ref() == Some(tag));
        let mut runnable: Vec<(Timestamp, ExecutionId)> =
            wanting.map(|row| (row.updated_at, row.execution.clone())).collect();
        runnable.sort();
        Ok(runnable.into_iter().take(limit).map(|(_, id)| id).collect())
    }

    async fn runnable_tags(&self) -> Result<Vec<Tag>, StoreError> {
        let inner = self.inner();
        let wanting = inner.rows.values().filter(|row| row.wants_job);
        let tags: BTreeSet<Tag> = wanting.filter_map(|row| row.summary.tag.clone()).collect();
        Ok(tags.into_iter().collect())
    }

    async fn queues(&self) -> Result<Vec<Queue>, StoreError> {
        let inner = self.inner();
        let mut queues = BTreeMap::<Tag, Queue>::new();
        for row in inner.rows.values().filter(|row| row.wants_job) {
            let Some(tag) = &row.summary.tag else { continue };
            let none = || Queue { tag: tag.clone(), depth: 0, oldest: row.updated_at };
            let queue = queues.entry(tag.clone()).or_insert_with(none);
            queue.depth += 1;
            queue.oldest = queue.oldest.min(row.updated_at);
        }
        Ok(queues.into_values().collect())
    }
}
