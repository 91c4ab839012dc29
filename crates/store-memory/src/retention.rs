//! Removing executions for good.

use std::collections::HashSet;

use async_trait::async_trait;
use pyoco_core::ids::ExecutionId;
use pyoco_core::time::Timestamp;
use pyoco_ports::{Removal, Retention, StoreError, Tombstone};

use crate::{Inner, MemoryStore};

/// Bytes, and who uses them.
#[derive(Debug, Default)]
pub(crate) struct Blob {
    pub(crate) bytes: Vec<u8>,
    pub(crate) used_by: HashSet<ExecutionId>,
}

#[async_trait]
impl Retention for MemoryStore {
    async fn remove(&self, removals: Vec<Removal>) -> Result<Vec<ExecutionId>, StoreError> {
        let mut inner = self.inner();
        let mut removed = Vec::new();
        for Removal { tombstone, version } in removals {
            let execution = tombstone.execution.clone();
            if inner.logs.get(&execution).map_or(0, Vec::len) as u64 == version.0 {
                inner.remove(tombstone);
                removed.push(execution);
            }
        }
        Ok(removed)
    }

    async fn tombstone(&self, execution: &ExecutionId) -> Result<Option<Tombstone>, StoreError> {
        Ok(self.inner().tombstones.get(execution).cloned())
    }

    async fn drop_tombstones(&self, before: Timestamp, most: usize) -> Result<usize, StoreError> {
        let mut inner = self.inner();
        let mut old: Vec<(Timestamp, ExecutionId)> =
            inner.tombstones.values().map(|tombstone| (tombstone.at, tombstone.execution.clone())).collect();
        old.retain(|(at, _)| *at < before);
        old.sort();
        old.truncate(most);
        for (_, execution) in &old {
            inner.tombstones.remove(execution);
        }
        Ok(old.len())
    }
}

impl Inner {
    fn remove(&mut self, tombstone: Tombstone) {
        let execution = tombstone.execution.clone();
        self.tombstones.entry(execution.clone()).or_insert(tombstone);
        self.blobs.retain(|_, blob| !(blob.used_by.remove(&execution) && blob.used_by.is_empty()));
        self.jobs.drop_all(&execution);
        self.lines.remove(&execution);
        self.logs.remove(&execution);
        self.rows.remove(&execution);
    }
}
