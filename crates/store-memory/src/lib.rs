//! The reference store: everything in memory. Tests use it, and the other stores are measured against it.
//!
//! It keeps the whole contract of the ports but one: what is in memory does not survive the process. It is written to
//! be read, not to be fast.

mod audit;
mod graphs;
mod index;
mod jobs;
mod keys;
mod queue;
mod retention;
mod task_logs;
mod wheels;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use pyoco_core::digest::Digest;
use pyoco_core::ids::{ExecutionId, TenantId, Version, WorkerId};
use pyoco_core::time::Timestamp;
use pyoco_ports::{
    Append, AppendError, Appended, Blobs, DeadLetterRecord, DeadLetters, EventLog, GraphRecord, IndexRow,
    LetterPage, Peers, StoreError, StoredRecord, Tombstone, WorkerRecord, WorkerRegistry,
};
use tokio::sync::{Notify, watch};

/// A store in memory. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    inner: Arc<Mutex<Inner>>,
    /// Rung when a job may be there to take.
    bell: Arc<Notify>,
    /// Counts the changes of the shelf of wheels.
    shelf: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Inner {
    logs: HashMap<ExecutionId, Vec<Vec<u8>>>,
    rows: BTreeMap<ExecutionId, IndexRow>,
    jobs: queue::Jobs,
    blobs: HashMap<Digest, retention::Blob>,
    tombstones: HashMap<ExecutionId, Tombstone>,
    workers: BTreeMap<WorkerId, WorkerRecord>,
    /// By the order in which they came.
    letters: BTreeMap<u64, DeadLetterRecord>,
    lines: HashMap<ExecutionId, task_logs::Log>,
    /// The versions of each graph, in their order.
    graphs: BTreeMap<(Option<TenantId>, String), Vec<GraphRecord>>,
    keys: keys::Keys,
    audit: audit::Trail,
    wheels: wheels::Shelf,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// A panic of another holder leaves nothing half-done: every change is made in one step at the end.
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn keep_letter(&mut self, letter: DeadLetterRecord) {
        if !self.letters.values().any(|kept| kept.key == letter.key) {
            let place = self.letters.last_key_value().map_or(1, |(last, _)| last + 1);
            self.letters.insert(place, letter);
        }
    }
}

#[async_trait]
impl EventLog for MemoryStore {
    async fn append(&self, append: Append) -> Result<Appended, AppendError> {
        let mut inner = self.inner();
        let log = inner.logs.entry(append.execution.clone()).or_default();
        let actual = Version(log.len() as u64);
        if actual != append.expected {
            return Err(AppendError::Conflict { expected: append.expected, actual });
        }
        log.push(append.bytes);
        if append.drop_job {
            inner.jobs.drop_waiting(&append.execution);
        }
        let wakes = append.enqueue.is_some();
        if let Some(job) = append.enqueue {
            inner.jobs.add(job);
        }
        if let Some(row) = append.row {
            inner.put_row(row);
        }
        if let Some(letter) = append.dead_letter {
            inner.keep_letter(letter);
        }
        drop(inner);
        if wakes {
            self.bell.notify_waiters();
        }
        Ok(Appended::default())
    }

    async fn read(&self, execution: &ExecutionId, after: Version) -> Result<Vec<StoredRecord>, StoreError> {
        let inner = self.inner();
        let log = inner.logs.get(execution).map_or(&[][..], Vec::as_slice);
        let numbered = (1..).zip(log).skip_while(|(version, _)| *version <= after.0);
        Ok(numbered
            .map(|(version, bytes)| StoredRecord { version: Version(version), bytes: bytes.clone() })
            .collect())
    }

    async fn read_some(
        &self,
        execution: &ExecutionId,
        after: Version,
        limit: usize,
    ) -> Result<Vec<StoredRecord>, StoreError> {
        let inner = self.inner();
        let log = inner.logs.get(execution).map_or(&[][..], Vec::as_slice);
        let skipped = usize::try_from(after.0).unwrap_or(usize::MAX);
        let numbered = (1..).zip(log).skip(skipped).take(limit);
        Ok(numbered
            .map(|(version, bytes)| StoredRecord { version: Version(version), bytes: bytes.clone() })
            .collect())
    }
}

#[async_trait]
impl Blobs for MemoryStore {
    async fn put_blob(&self, execution: &ExecutionId, bytes: &[u8]) -> Result<Digest, StoreError> {
        let digest = Digest::of_bytes(bytes);
        let mut inner = self.inner();
        let blob = inner.blobs.entry(digest).or_default();
        blob.bytes = bytes.to_vec();
        blob.used_by.insert(execution.clone());
        Ok(digest)
    }

    async fn share_blob(&self, execution: &ExecutionId, digest: &Digest) -> Result<bool, StoreError> {
        let mut inner = self.inner();
        let Some(blob) = inner.blobs.get_mut(digest) else { return Ok(false) };
        blob.used_by.insert(execution.clone());
        Ok(true)
    }

    async fn get_blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.inner().blobs.get(digest).map(|blob| blob.bytes.clone()))
    }
}

#[async_trait]
impl WorkerRegistry for MemoryStore {
    async fn report(&self, mut record: WorkerRecord) -> Result<(), StoreError> {
        let mut inner = self.inner();
        if let Some(known) = inner.workers.get(&record.worker) {
            record.hidden = known.hidden;
        }
        inner.workers.insert(record.worker.clone(), record);
        Ok(())
    }

    async fn worker(&self, worker: &WorkerId) -> Result<Option<WorkerRecord>, StoreError> {
        Ok(self.inner().workers.get(worker).cloned())
    }

    async fn workers(&self) -> Result<Vec<WorkerRecord>, StoreError> {
        let mut workers: Vec<WorkerRecord> = self.inner().workers.values().cloned().collect();
        workers.sort_by_key(|record| std::cmp::Reverse(record.seen_at));
        Ok(workers)
    }

    async fn hide(&self, worker: &WorkerId, hidden: bool) -> Result<Option<WorkerRecord>, StoreError> {
        let mut inner = self.inner();
        let Some(record) = inner.workers.get_mut(worker) else { return Ok(None) };
        record.hidden = hidden;
        Ok(Some(record.clone()))
    }
}

#[async_trait]
impl DeadLetters for MemoryStore {
    async fn publish(&self, letter: DeadLetterRecord) -> Result<(), StoreError> {
        self.inner().keep_letter(letter);
        Ok(())
    }

    async fn count_letters(&self) -> Result<u64, StoreError> {
        Ok(self.inner().letters.len() as u64)
    }

    async fn letter_page(&self, behind: Option<u64>, limit: usize) -> Result<LetterPage, StoreError> {
        let inner = self.inner();
        let found = inner.letters.range(..behind.unwrap_or(u64::MAX)).rev().take(limit);
        let (places, letters): (Vec<u64>, Vec<_>) =
            found.map(|(place, letter)| (*place, letter.clone())).unzip();
        let next = places.last().copied().filter(|_| places.len() == limit);
        Ok(LetterPage { letters, next })
    }

    async fn letter(&self, key: &str) -> Result<Option<DeadLetterRecord>, StoreError> {
        Ok(self.inner().letters.values().find(|letter| letter.key == key).cloned())
    }

    async fn remove_letter(&self, key: &str) -> Result<bool, StoreError> {
        let letters = &mut self.inner().letters;
        let before = letters.len();
        letters.retain(|_, letter| letter.key != key);
        Ok(letters.len() < before)
    }

    async fn purge_letters(&self, before: Timestamp) -> Result<u64, StoreError> {
        let letters = &mut self.inner().letters;
        let all = letters.len();
        letters.retain(|_, letter| letter.at >= before);
        Ok((all - letters.len()) as u64)
    }
}

/// Nobody else has this store.
impl Peers for MemoryStore {}
