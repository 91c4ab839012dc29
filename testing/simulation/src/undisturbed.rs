//! The rest of the ports: the index, which is disturbed where it decides something, and what no run depends on.

use async_trait::async_trait;
use pyoco_core::digest::Digest;
use pyoco_core::ids::{ExecutionId, KeyId, Tag, TenantId};
use pyoco_core::time::Timestamp;
use pyoco_core::view::RunStatus;
use pyoco_ports::*;
use pyoco_wheels::{Refused, WheelName};

use crate::link::Link;

#[async_trait]
impl RunIndex for Link {
    async fn put(&self, row: IndexRow) -> Result<(), StoreError> {
        self.show(row, None).await
    }
    fn wants_snapshots(&self) -> bool {
        self.world.is_shared
    }
    async fn publish_row(&self, row: IndexRow, snapshot: Vec<u8>) -> Result<(), StoreError> {
        self.show(row, self.world.is_shared.then_some(snapshot)).await
    }
    async fn forget(&self, execution: &ExecutionId) -> Result<(), StoreError> {
        let (world, id) = (self.world.clone(), execution.clone());
        self.send("forget", execution.as_str(), async move {
            world.shown().unpublish(&id);
            world.store.forget(&id).await
        })
        .await
    }
    async fn get(&self, execution: &ExecutionId) -> Result<Option<IndexRow>, StoreError> {
        let (store, id) = (self.world.store.clone(), execution.clone());
        self.send("get", execution.as_str(), async move { store.get(&id).await }).await
    }
    async fn list(&self, filter: &Filter, limit: usize) -> Result<Page, StoreError> {
        let (store, filter) = (self.world.store.clone(), filter.clone());
        self.send("list", "", async move { store.list(&filter, limit).await }).await
    }
    async fn waits(&self, filter: &WaitFilter, limit: usize) -> Result<WaitPage, StoreError> {
        self.world.store.waits(filter, limit).await
    }
    async fn jobs(&self, filter: &JobFilter, limit: usize) -> Result<JobPage, StoreError> {
        self.world.store.jobs(filter, limit).await
    }
    async fn labels(&self, filter: &LabelFilter, limit: usize) -> Result<LabelPage, StoreError> {
        self.world.store.labels(filter, limit).await
    }
    async fn counts(&self, tenant: Option<&TenantId>) -> Result<Vec<(RunStatus, u64)>, StoreError> {
        self.world.store.counts(tenant).await
    }
    async fn counts_since(
        &self,
        tenant: Option<&TenantId>,
        since: Timestamp,
    ) -> Result<Vec<(RunStatus, u64)>, StoreError> {
        self.world.store.counts_since(tenant, since).await
    }
    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<ExecutionId>, StoreError> {
        let store = self.world.store.clone();
        self.send("due", "", async move { store.due(now, limit).await }).await
    }
    async fn ended_before(&self, filter: &EndedFilter, limit: usize) -> Result<Vec<EndedPlace>, StoreError> {
        self.world.store.ended_before(filter, limit).await
    }
    async fn runnable(&self, tag: &Tag, limit: usize) -> Result<Vec<ExecutionId>, StoreError> {
        let (store, tag) = (self.world.store.clone(), tag.clone());
        self.send("runnable", "", async move { store.runnable(&tag, limit).await }).await
    }
    async fn runnable_tags(&self) -> Result<Vec<Tag>, StoreError> {
        let store = self.world.store.clone();
        self.send("runnable tags", "", async move { store.runnable_tags().await }).await
    }
    async fn queues(&self) -> Result<Vec<Queue>, StoreError> {
        self.world.store.queues().await
    }
}

#[async_trait]
impl DeadLetters for Link {
    async fn publish(&self, letter: DeadLetterRecord) -> Result<(), StoreError> {
        self.bury(letter).await
    }
    async fn count_letters(&self) -> Result<u64, StoreError> {
        self.world.store.count_letters().await
    }
    async fn letter_page(&self, behind: Option<u64>, limit: usize) -> Result<LetterPage, StoreError> {
        self.world.store.letter_page(behind, limit).await
    }
    async fn letter(&self, key: &str) -> Result<Option<DeadLetterRecord>, StoreError> {
        self.world.store.letter(key).await
    }
    async fn remove_letter(&self, key: &str) -> Result<bool, StoreError> {
        self.world.store.remove_letter(key).await
    }
    async fn purge_letters(&self, before: Timestamp) -> Result<u64, StoreError> {
        self.world.store.purge_letters(before).await
    }
}

#[async_trait]
impl Graphs for Link {
    async fn put_graph(&self, graph: GraphRecord) -> Result<bool, StoreError> {
        self.world.store.put_graph(graph).await
    }
    async fn graph(
        &self,
        tenant: Option<&TenantId>,
        id: &str,
        version: Option<u64>,
    ) -> Result<Option<GraphRecord>, StoreError> {
        let (store, tenant, id) = (self.world.store.clone(), tenant.cloned(), id.to_owned());
        self.send("graph", "", async move { store.graph(tenant.as_ref(), &id, version).await }).await
    }
    async fn graphs(
        &self,
        tenant: Option<&TenantId>,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<GraphRecord>, StoreError> {
        self.world.store.graphs(tenant, after, limit).await
    }
}

#[async_trait]
impl Retention for Link {
    async fn remove(&self, removals: Vec<Removal>) -> Result<Vec<ExecutionId>, StoreError> {
        self.world.store.remove(removals).await
    }
    async fn tombstone(&self, execution: &ExecutionId) -> Result<Option<Tombstone>, StoreError> {
        let (store, id) = (self.world.store.clone(), execution.clone());
        self.send("tombstone", execution.as_str(), async move { store.tombstone(&id).await }).await
    }
    async fn drop_tombstones(&self, before: Timestamp, most: usize) -> Result<usize, StoreError> {
        self.world.store.drop_tombstones(before, most).await
    }
}

#[async_trait]
impl Blobs for Link {
    async fn put_blob(&self, execution: &ExecutionId, bytes: &[u8]) -> Result<Digest, StoreError> {
        self.world.store.put_blob(execution, bytes).await
    }
    async fn share_blob(&self, execution: &ExecutionId, digest: &Digest) -> Result<bool, StoreError> {
        self.world.store.share_blob(execution, digest).await
    }
    async fn get_blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        self.world.store.get_blob(digest).await
    }
}

/// What tasks write decides nothing, and the engine writes the logs of several runs in no particular order.
#[async_trait]
impl TaskLogs for Link {
    async fn write_lines(
        &self,
        execution: &ExecutionId,
        lines: Vec<LogLine>,
        terms: LogTerms,
    ) -> Result<Written, StoreError> {
        self.alive().await;
        self.world.store.write_lines(execution, lines, terms).await
    }
    async fn log_end(&self, execution: &ExecutionId) -> Result<LogEnd, StoreError> {
        self.world.store.log_end(execution).await
    }
    async fn line_at(&self, execution: &ExecutionId, byte: u64) -> Result<Option<LinePlace>, StoreError> {
        self.world.store.line_at(execution, byte).await
    }
    async fn read_lines(
        &self,
        execution: &ExecutionId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, LogLine)>, StoreError> {
        self.world.store.read_lines(execution, after, limit).await
    }
}

#[async_trait]
impl KeyRecords for Link {
    async fn key(&self, id: &KeyId) -> Result<Option<StoredKey>, StoreError> {
        self.world.store.key(id).await
    }
    async fn put_key(&self, id: &KeyId, record: Vec<u8>, over: Option<u64>) -> Result<bool, StoreError> {
        self.world.store.put_key(id, record, over).await
    }
    async fn keys(&self) -> Result<Vec<(KeyId, StoredKey)>, StoreError> {
        self.world.store.keys().await
    }
}

#[async_trait]
impl AuditTrail for Link {
    async fn write_audit(&self, entries: Vec<AuditEntry>) -> Result<(), StoreError> {
        self.world.store.write_audit(entries).await
    }
    async fn audit(&self, filter: &AuditFilter, limit: usize) -> Result<AuditPage, StoreError> {
        self.world.store.audit(filter, limit).await
    }
    async fn prune_audit(&self, before: Timestamp, most: usize) -> Result<usize, StoreError> {
        self.world.store.prune_audit(before, most).await
    }
}

#[async_trait]
impl Wheels for Link {
    async fn wheels(&self) -> Result<Vec<WheelRecord>, StoreError> {
        self.world.store.wheels().await
    }
    async fn wheel(&self, name: &WheelName) -> Result<Option<WheelRecord>, StoreError> {
        self.world.store.wheel(name).await
    }
    async fn put_wheel(
        &self,
        wheel: NewWheel,
        bytes: &mut dyn WheelBytes,
    ) -> Result<Result<WheelRecord, Refused>, StoreError> {
        self.world.store.put_wheel(wheel, bytes).await
    }
    async fn read_wheel(
        &self,
        wheel: &WheelRecord,
        from: u64,
    ) -> Result<Option<Box<dyn WheelBytes>>, StoreError> {
        self.world.store.read_wheel(wheel, from).await
    }
    async fn delete_wheel(&self, name: &WheelName, at: Timestamp) -> Result<Option<WheelRecord>, StoreError> {
        self.world.store.delete_wheel(name, at).await
    }
    async fn listen_to_wheels(&self) -> Result<Box<dyn ShelfListening>, StoreError> {
        self.world.store.listen_to_wheels().await
    }
    async fn note_wheel(&self, event: WheelEvent) -> Result<(), StoreError> {
        self.world.store.note_wheel(event).await
    }
    async fn wheel_history(
        &self,
        filter: &WheelHistoryFilter,
        now: Timestamp,
    ) -> Result<Vec<WheelEvent>, StoreError> {
        self.world.store.wheel_history(filter, now).await
    }
}
