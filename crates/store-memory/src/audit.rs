//! The audit trail in memory.

use std::collections::{BTreeMap, HashSet};

use async_trait::async_trait;
use pyoco_core::time::Timestamp;
use pyoco_ports::{AuditEntry, AuditFilter, AuditPage, AuditTrail, LOOKED_AT, StoreError};

use crate::MemoryStore;

#[derive(Debug, Default)]
pub(crate) struct Trail {
    /// By the place at which each was written.
    entries: BTreeMap<u64, AuditEntry>,
    ids: HashSet<String>,
    /// How many were ever written.
    writings: u64,
}

#[async_trait]
impl AuditTrail for MemoryStore {
    async fn write_audit(&self, entries: Vec<AuditEntry>) -> Result<(), StoreError> {
        let trail = &mut self.inner().audit;
        for entry in entries {
            if trail.ids.insert(entry.id.clone()) {
                trail.writings += 1;
                trail.entries.insert(trail.writings, entry);
            }
        }
        Ok(())
    }

    async fn audit(&self, filter: &AuditFilter, limit: usize) -> Result<AuditPage, StoreError> {
        let trail = &self.inner().audit;
        let mut page = AuditPage { entries: Vec::new(), next: None };
        let before = filter.before.unwrap_or(u64::MAX);
        for (looked, (place, entry)) in trail.entries.range(..before).rev().enumerate() {
            if page.entries.len() >= limit || looked >= LOOKED_AT {
                page.next = Some(place + 1);
                break;
            }
            if filter.shows(entry) {
                page.entries.push(entry.clone());
            }
        }
        Ok(page)
    }

    async fn prune_audit(&self, before: Timestamp, most: usize) -> Result<usize, StoreError> {
        let trail = &mut self.inner().audit;
        let old = trail.entries.iter().filter(|(_, entry)| entry.at < before);
        let old: Vec<u64> = old.map(|(place, _)| *place).take(most).collect();
        for place in &old {
            if let Some(entry) = trail.entries.remove(place) {
                trail.ids.remove(&entry.id);
            }
        }
        Ok(old.len())
    }
}
