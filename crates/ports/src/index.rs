//! The index: what lists, metrics and the sweeper ask, without looking at every execution.

use std::sync::Arc;

use async_trait::async_trait;
use pyoco_core::cursor::Cursor;
use pyoco_core::ids::{ExecutionId, NodeId, Tag, TenantId, Version};
use pyoco_core::time::Timestamp;
use pyoco_core::view::{RunStatus, RunSummary};
use serde::{Deserialize, Serialize};

use crate::{JobFilter, JobPage, LabelFilter, LabelPage, StoreError};

/// One row for each execution, derived from its log.
#[async_trait]
pub trait RunIndex: Send + Sync {
    /// Writes a row. MUST ignore a row of an older version than the one it has. `[index/monotone]`
    async fn put(&self, row: IndexRow) -> Result<(), StoreError>;

    /// Writes several rows, each as `put` does. MAY do it in one step, in which case an error means that none was written.
    /// `[index/put-all]`
    async fn put_all(&self, rows: Arc<[IndexRow]>) -> Result<(), StoreError> {
        for row in &*rows {
            self.put(row.clone()).await?;
        }
        Ok(())
    }

    /// Whether others look at snapshots: when nobody does, nobody needs to make them.
    fn wants_snapshots(&self) -> bool {
        false
    }

    /// Puts a row, and beside it the snapshot that other implementations and the indexes of other processes read. MUST leave
    /// both alone when there is a newer one. `[index/publish]` A store whose snapshots nobody reads MAY keep the row alone.
    async fn publish_row(&self, row: IndexRow, _snapshot: Vec<u8>) -> Result<(), StoreError> {
        self.put(row).await
    }

    /// Takes a row out of every list, and its snapshot away: the execution was never accepted. `[index/forget]`
    async fn forget(&self, execution: &ExecutionId) -> Result<(), StoreError>;

    /// One row. MUST see every row that was put, or appended with its record. `[index/get]`
    async fn get(&self, execution: &ExecutionId) -> Result<Option<IndexRow>, StoreError>;

    /// A page of rows, newest change first, by (`updated_at`, id) descending.
    ///
    /// - MUST apply every filter exactly. `[index/filter]`
    /// - MUST go on behind the cursor without repeating or leaving out a row that did not change. `[index/pages]`
    /// - MUST NOT cost more because there are more rows that it does not show.
    async fn list(&self, filter: &Filter, limit: usize) -> Result<Page, StoreError>;

    /// A page of nodes that wait for somebody, newest wait first, by (`since`, execution, node) descending. MUST apply every filter,
    /// and MUST go on behind the cursor without repeating or leaving out a wait that stays. `[index/waits]`
    async fn waits(&self, filter: &WaitFilter, limit: usize) -> Result<WaitPage, StoreError>;

    /// A page of jobs, newest first, by (`created_at`, id) descending. Hidden ones are left out.
    ///
    /// - MUST apply every filter exactly. `[index/jobs]`
    /// - MUST go on behind the cursor without repeating or leaving out a job that was there all the time. `[index/job-pages]`
    /// - MUST look at a bounded number of rows. A page MAY therefore be short, or empty, and still say where to go on. A page that
    ///   says nothing is the last.
    async fn jobs(&self, filter: &JobFilter, limit: usize) -> Result<JobPage, StoreError>;

    /// The labels of jobs that are not hidden, in the order of their bytes, each with how many jobs have it. `[index/labels]` MUST NOT
    /// cost more because there are more jobs.
    async fn labels(&self, filter: &LabelFilter, limit: usize) -> Result<LabelPage, StoreError>;

    /// How many executions of a tenant (or of all) have each status. `[index/counts]`
    async fn counts(&self, tenant: Option<&TenantId>) -> Result<Vec<(RunStatus, u64)>, StoreError>;

    /// The same, of those that changed at this instant or later. MUST NOT look at those that did not. `[index/counts-since]`
    async fn counts_since(
        &self,
        tenant: Option<&TenantId>,
        since: Timestamp,
    ) -> Result<Vec<(RunStatus, u64)>, StoreError>;

    /// Executions with a timer that is due, the most overdue first. `[index/timers]`
    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<ExecutionId>, StoreError>;

    /// Executions that ended before an instant and may be removed: by (`ended_at`, id), the longest ended first. MUST leave out
    /// archived ones, and, unless they are asked for, those that no process of ours has created. `[index/ended]` MUST NOT look at those
    /// that still run or ended later.
    async fn ended_before(&self, filter: &EndedFilter, limit: usize) -> Result<Vec<EndedPlace>, StoreError>;

    /// Executions that want a worker and that nobody holds, longest unchanged first. `[index/runnable]`
    async fn runnable(&self, tag: &Tag, limit: usize) -> Result<Vec<ExecutionId>, StoreError>;

    /// The tags of executions that want a worker and that nobody holds. `[index/runnable]`
    async fn runnable_tags(&self) -> Result<Vec<Tag>, StoreError>;

    /// How many executions of each tag want a worker and are held by nobody, in the order of the tags. `[index/queues]` MUST NOT cost
    /// more because there are more executions.
    async fn queues(&self) -> Result<Vec<Queue>, StoreError>;
}

/// Executions of a tag that want a worker and that nobody holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    /// Which tag.
    pub tag: Tag,
    /// How many; never none.
    pub depth: u64,
    /// When the one changed last that is longest unchanged.
    pub oldest: Timestamp,
}

/// How an execution stands, for everybody who does not need its log.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexRow {
    /// Which.
    pub execution: ExecutionId,
    /// The record that this row shows.
    pub version: Version,
    /// What lists show.
    pub summary: RunSummary,
    /// When it was created.
    pub created_at: Timestamp,
    /// When anything about it changed last; not before it was created.
    pub updated_at: Timestamp,
    /// When it began to run.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// When somebody wanted it to stop.
    pub cancel_requested_at: Option<Timestamp>,
    /// SHA-256 of the submitted flow.
    pub workflow_sha256: Option<String>,
    /// Left out of job lists.
    pub hidden: bool,
    /// When something is due without anybody asking.
    pub next_timer: Option<Timestamp>,
    /// It wants a worker and nobody holds it.
    pub wants_job: bool,
    /// Nodes that wait for somebody, longest first; at most `MAX_WAITS`.
    pub waits: Vec<Wait>,
    /// A node of it waits, or has waited: where it has not, no store need look for what to remove.
    pub has_waited: bool,
    /// Somebody has put it away to keep it.
    pub is_archived: bool,
    /// No process of ours has created it.
    pub is_foreign: bool,
}

impl IndexRow {
    /// An execution is shown with so many waits in lists.
    pub const MAX_WAITS: usize = 256;
}

/// Which executions may be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedFilter {
    /// That ended before this instant.
    pub before: Timestamp,
    /// Also those that no process of ours has created.
    pub is_foreign_too: bool,
    /// Behind this one.
    pub after: Option<EndedPlace>,
}

/// Where an execution that has ended stands among the others.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EndedPlace {
    /// When it ended.
    pub ended_at: Timestamp,
    /// Which.
    pub execution: ExecutionId,
}

/// A node that waits for somebody.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// Which.
    pub node: NodeId,
    /// Since when.
    pub since: Timestamp,
}

/// Which waits a list shows. Nothing set shows all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WaitFilter {
    /// Whose.
    pub tenant: Option<TenantId>,
    /// Of executions with this label.
    pub label: Option<String>,
    /// That began at this instant or earlier.
    pub since_before: Option<Timestamp>,
    /// Behind this one.
    pub cursor: Option<WaitPlace>,
}

/// Where a wait stands in the list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct WaitPlace {
    /// Since when it waits.
    pub since: Timestamp,
    /// The execution.
    pub execution: ExecutionId,
    /// The node.
    pub node: NodeId,
}

/// A page of waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitPage {
    /// The waits.
    pub waits: Vec<WaitPlace>,
    /// Where to go on, if there is more.
    pub next: Option<WaitPlace>,
}

/// Which rows a list shows. Nothing set shows all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Whose.
    pub tenant: Option<TenantId>,
    /// In one of these states; in any if there is none.
    pub statuses: Vec<RunStatus>,
    /// Of which flow.
    pub flow: Option<String>,
    /// For which workers.
    pub tag: Option<String>,
    /// With this label. A store MAY look at the first 64 labels of an execution alone.
    pub label: Option<String>,
    /// Of which submitted text.
    pub workflow_sha256: Option<String>,
    /// Changed after this instant.
    pub updated_after: Option<Timestamp>,
    /// Changed before this instant.
    pub updated_before: Option<Timestamp>,
    /// Created after this instant.
    pub created_after: Option<Timestamp>,
    /// Created before this instant. A store MAY have to look at what was created since.
    pub created_before: Option<Timestamp>,
    /// Behind this one.
    pub cursor: Option<Cursor>,
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// The rows.
    pub rows: Vec<IndexRow>,
    /// Where to go on, if there is more.
    pub next: Option<Cursor>,
}
