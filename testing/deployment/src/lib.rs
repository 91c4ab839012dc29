//! An engine on a store that misbehaves when told to, with a clock that only the test moves. Not here: plans and commands to try
//! on it, which are in `testing/testkit`.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use pyoco_core::digest::Digest;
use pyoco_core::ids::{EventId, ExecutionId, KeyId, Tag, TenantId, Version, WorkerId};
use pyoco_core::time::{Millis, Timestamp};
use pyoco_core::view::RunStatus;
use pyoco_engine::{Clock, Engine, Ids, Settings};
use pyoco_ports::*;
use pyoco_store_memory::MemoryStore;
use pyoco_wheels::{Refused, WheelName};

/// A store that can apply an append and say it timed out, refuse one, or leave the consequences to the caller.
#[derive(Debug, Default)]
pub struct Faulty {
    /// What it stands in front of.
    pub inner: MemoryStore,
    /// So many of the next appends are applied but time out.
    pub time_out: AtomicUsize,
    /// So many of the next appends fail before anything happens.
    pub unavailable: AtomicUsize,
    /// Reads are refused: there is no connection any more.
    pub unreadable: std::sync::atomic::AtomicBool,
    /// Nobody answers: appends and reads time out one after the other, as they do before a server that hangs.
    pub silent: std::sync::atomic::AtomicBool,
    /// Every so manieth append is applied but times out; 0: none.
    pub time_out_every: AtomicUsize,
    /// Consequences are the caller's business.
    pub bare: std::sync::atomic::AtomicBool,
    /// How often somebody tried.
    pub appends: AtomicUsize,
    /// What a look for executions that nobody sees finds, until it is said that they were seen to.
    pub unshown: Mutex<Unshown>,
    /// So many of the next pieces of wheels have a byte that is not as it was.
    pub flipped: Arc<AtomicUsize>,
}

/// How long a server that hangs is waited for.
const HANGS: Duration = Duration::from_millis(1_500);

impl Faulty {
    async fn answers(&self, operation: &'static str) -> Result<(), StoreError> {
        if self.silent.load(Ordering::SeqCst) {
            tokio::time::sleep(HANGS).await;
            return Err(StoreError::plain(ErrorKind::Timeout, operation));
        }
        Ok(())
    }
}

fn spend(counter: &AtomicUsize) -> bool {
    counter.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
}

#[async_trait]
impl EventLog for Faulty {
    async fn append(&self, append: Append) -> Result<Appended, AppendError> {
        let number = self.appends.fetch_add(1, Ordering::SeqCst) + 1;
        self.answers("append").await?;
        if spend(&self.unavailable) {
            return Err(StoreError::plain(ErrorKind::Unavailable, "append").into());
        }
        let (append, left) = if self.bare.load(Ordering::SeqCst) {
            let left = Box::new(append.clone());
            (Append { row: None, enqueue: None, drop_job: false, dead_letter: None, ..append }, Some(left))
        } else {
            (append, None)
        };
        let appended = self.inner.append(append).await?;
        let every = self.time_out_every.load(Ordering::SeqCst);
        if spend(&self.time_out) || (every > 0 && number.is_multiple_of(every)) {
            return Err(StoreError::plain(ErrorKind::Timeout, "append").into());
        }
        Ok(Appended { left: appended.left.or(left), promise: appended.promise })
    }

    async fn read(&self, execution: &ExecutionId, after: Version) -> Result<Vec<StoredRecord>, StoreError> {
        self.answers("read").await?;
        if self.unreadable.load(Ordering::SeqCst) {
            return Err(StoreError::plain(ErrorKind::Unavailable, "read"));
        }
        self.inner.read(execution, after).await
    }

    async fn read_some(
        &self,
        execution: &ExecutionId,
        after: Version,
        limit: usize,
    ) -> Result<Vec<StoredRecord>, StoreError> {
        self.answers("read").await?;
        self.inner.read_some(execution, after, limit).await
    }

    async fn unshown(&self) -> Result<Unshown, StoreError> {
        Ok(self.unshown.lock().unwrap().clone())
    }

    async fn shown_until(&self, place: LogPlace) -> Result<(), StoreError> {
        let mut unshown = self.unshown.lock().unwrap();
        if unshown.until == Some(place) {
            *unshown = Unshown::default();
        }
        Ok(())
    }
}

#[async_trait]
impl WorkQueue for Faulty {
    async fn enqueue(&self, job: Job, now: Timestamp) -> Result<(), StoreError> {
        self.inner.enqueue(job, now).await
    }
    async fn take(
        &self,
        tags: &[Tag],
        worker: &WorkerId,
        most: usize,
        lease: Millis,
        now: Timestamp,
    ) -> Result<Vec<Delivery>, StoreError> {
        self.inner.take(tags, worker, most, lease, now).await
    }
    async fn wait(&self, tags: &[Tag], patience: Duration) -> Result<(), StoreError> {
        self.inner.wait(tags, patience).await
    }
    async fn extend(&self, delivery: &Delivery, lease: Millis, now: Timestamp) -> Result<(), StoreError> {
        self.inner.extend(delivery, lease, now).await
    }
    async fn ack(&self, delivery: &Delivery) -> Result<(), StoreError> {
        self.inner.ack(delivery).await
    }
    async fn nak(&self, delivery: &Delivery, delay: Millis, now: Timestamp) -> Result<(), StoreError> {
        self.inner.nak(delivery, delay, now).await
    }
    async fn drop_waiting(&self, execution: &ExecutionId) -> Result<(), StoreError> {
        self.inner.drop_waiting(execution).await
    }
    async fn depth(&self, tag: &Tag) -> Result<u64, StoreError> {
        self.inner.depth(tag).await
    }
    async fn queued(&self, tag: &Tag) -> Result<Vec<ExecutionId>, StoreError> {
        self.inner.queued(tag).await
    }
}

#[async_trait]
impl RunIndex for Faulty {
    async fn put(&self, row: IndexRow) -> Result<(), StoreError> {
        self.inner.put(row).await
    }
    async fn forget(&self, execution: &ExecutionId) -> Result<(), StoreError> {
        self.inner.forget(execution).await
    }
    async fn get(&self, execution: &ExecutionId) -> Result<Option<IndexRow>, StoreError> {
        self.inner.get(execution).await
    }
    async fn list(&self, filter: &Filter, limit: usize) -> Result<Page, StoreError> {
        self.inner.list(filter, limit).await
    }
    async fn waits(&self, filter: &WaitFilter, limit: usize) -> Result<WaitPage, StoreError> {
        self.inner.waits(filter, limit).await
    }
    async fn jobs(&self, filter: &JobFilter, limit: usize) -> Result<JobPage, StoreError> {
        self.inner.jobs(filter, limit).await
    }
    async fn labels(&self, filter: &LabelFilter, limit: usize) -> Result<LabelPage, StoreError> {
        self.inner.labels(filter, limit).await
    }
    async fn counts(&self, tenant: Option<&TenantId>) -> Result<Vec<(RunStatus, u64)>, StoreError> {
        self.inner.counts(tenant).await
    }
    async fn counts_since(
        &self,
        tenant: Option<&TenantId>,
        since: Timestamp,
    ) -> Result<Vec<(RunStatus, u64)>, StoreError> {
        self.inner.counts_since(tenant, since).await
    }
    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<ExecutionId>, StoreError> {
        self.inner.due(now, limit).await
    }
    async fn ended_before(&self, filter: &EndedFilter, limit: usize) -> Result<Vec<EndedPlace>, StoreError> {
        self.inner.ended_before(filter, limit).await
    }
    async fn runnable(&self, tag: &Tag, limit: usize) -> Result<Vec<ExecutionId>, StoreError> {
        self.inner.runnable(tag, limit).await
    }

    async fn runnable_tags(&self) -> Result<Vec<Tag>, StoreError> {
        self.inner.runnable_tags().await
    }

    async fn queues(&self) -> Result<Vec<Queue>, StoreError> {
        self.inner.queues().await
    }
}

#[async_trait]
impl Blobs for Faulty {
    async fn put_blob(&self, execution: &ExecutionId, bytes: &[u8]) -> Result<Digest, StoreError> {
        self.inner.put_blob(execution, bytes).await
    }
    async fn share_blob(&self, execution: &ExecutionId, digest: &Digest) -> Result<bool, StoreError> {
        self.inner.share_blob(execution, digest).await
    }
    async fn get_blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.get_blob(digest).await
    }
}

#[async_trait]
impl WorkerRegistry for Faulty {
    async fn report(&self, record: WorkerRecord) -> Result<(), StoreError> {
        self.inner.report(record).await
    }
    async fn worker(&self, worker: &WorkerId) -> Result<Option<WorkerRecord>, StoreError> {
        self.inner.worker(worker).await
    }
    async fn workers(&self) -> Result<Vec<WorkerRecord>, StoreError> {
        self.inner.workers().await
    }
    async fn hide(&self, worker: &WorkerId, hidden: bool) -> Result<Option<WorkerRecord>, StoreError> {
        self.inner.hide(worker, hidden).await
    }
}

#[async_trait]
impl DeadLetters for Faulty {
    async fn publish(&self, letter: DeadLetterRecord) -> Result<(), StoreError> {
        self.inner.publish(letter).await
    }
    async fn count_letters(&self) -> Result<u64, StoreError> {
        self.inner.count_letters().await
    }
    async fn letter_page(&self, behind: Option<u64>, limit: usize) -> Result<LetterPage, StoreError> {
        self.inner.letter_page(behind, limit).await
    }
    async fn letter(&self, key: &str) -> Result<Option<DeadLetterRecord>, StoreError> {
        self.inner.letter(key).await
    }
    async fn remove_letter(&self, key: &str) -> Result<bool, StoreError> {
        self.inner.remove_letter(key).await
    }
    async fn purge_letters(&self, before: Timestamp) -> Result<u64, StoreError> {
        self.inner.purge_letters(before).await
    }
}

#[async_trait]
impl TaskLogs for Faulty {
    async fn write_lines(
        &self,
        execution: &ExecutionId,
        lines: Vec<LogLine>,
        terms: LogTerms,
    ) -> Result<Written, StoreError> {
        self.inner.write_lines(execution, lines, terms).await
    }
    async fn log_end(&self, execution: &ExecutionId) -> Result<LogEnd, StoreError> {
        self.inner.log_end(execution).await
    }
    async fn line_at(&self, execution: &ExecutionId, byte: u64) -> Result<Option<LinePlace>, StoreError> {
        self.inner.line_at(execution, byte).await
    }
    async fn read_lines(
        &self,
        execution: &ExecutionId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, LogLine)>, StoreError> {
        self.inner.read_lines(execution, after, limit).await
    }
}

#[async_trait]
impl Graphs for Faulty {
    async fn put_graph(&self, graph: GraphRecord) -> Result<bool, StoreError> {
        self.inner.put_graph(graph).await
    }
    async fn graph(
        &self,
        tenant: Option<&TenantId>,
        id: &str,
        version: Option<u64>,
    ) -> Result<Option<GraphRecord>, StoreError> {
        self.inner.graph(tenant, id, version).await
    }
    async fn graphs(
        &self,
        tenant: Option<&TenantId>,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<GraphRecord>, StoreError> {
        self.inner.graphs(tenant, after, limit).await
    }
}

#[async_trait]
impl KeyRecords for Faulty {
    async fn key(&self, id: &KeyId) -> Result<Option<StoredKey>, StoreError> {
        self.answers("get an API key").await?;
        self.inner.key(id).await
    }
    async fn put_key(&self, id: &KeyId, record: Vec<u8>, over: Option<u64>) -> Result<bool, StoreError> {
        self.answers("put an API key").await?;
        self.inner.put_key(id, record, over).await
    }
    async fn keys(&self) -> Result<Vec<(KeyId, StoredKey)>, StoreError> {
        self.answers("list API keys").await?;
        self.inner.keys().await
    }
}

#[async_trait]
impl AuditTrail for Faulty {
    async fn write_audit(&self, entries: Vec<AuditEntry>) -> Result<(), StoreError> {
        self.answers("write the audit trail").await?;
        self.inner.write_audit(entries).await
    }
    async fn audit(&self, filter: &AuditFilter, limit: usize) -> Result<AuditPage, StoreError> {
        self.inner.audit(filter, limit).await
    }
    async fn prune_audit(&self, before: Timestamp, most: usize) -> Result<usize, StoreError> {
        self.inner.prune_audit(before, most).await
    }
}

#[async_trait]
impl Retention for Faulty {
    async fn remove(&self, removals: Vec<Removal>) -> Result<Vec<ExecutionId>, StoreError> {
        self.answers("remove executions").await?;
        self.inner.remove(removals).await
    }
    async fn tombstone(&self, execution: &ExecutionId) -> Result<Option<Tombstone>, StoreError> {
        self.answers("look for a tombstone").await?;
        self.inner.tombstone(execution).await
    }
    async fn drop_tombstones(&self, before: Timestamp, most: usize) -> Result<usize, StoreError> {
        self.inner.drop_tombstones(before, most).await
    }
}

#[async_trait]
impl Wheels for Faulty {
    async fn wheels(&self) -> Result<Vec<WheelRecord>, StoreError> {
        self.answers("list wheels").await?;
        self.inner.wheels().await
    }
    async fn wheel(&self, name: &WheelName) -> Result<Option<WheelRecord>, StoreError> {
        self.answers("look for a wheel").await?;
        self.inner.wheel(name).await
    }
    async fn put_wheel(
        &self,
        wheel: NewWheel,
        bytes: &mut dyn WheelBytes,
    ) -> Result<Result<WheelRecord, Refused>, StoreError> {
        self.answers("put a wheel").await?;
        self.inner.put_wheel(wheel, bytes).await
    }
    async fn read_wheel(
        &self,
        wheel: &WheelRecord,
        from: u64,
    ) -> Result<Option<Box<dyn WheelBytes>>, StoreError> {
        self.answers("read a wheel").await?;
        let bytes = self.inner.read_wheel(wheel, from).await?;
        let flipped = self.flipped.clone();
        Ok(bytes.map(|bytes| -> Box<dyn WheelBytes> { Box::new(Flipped { bytes, flipped }) }))
    }
    async fn delete_wheel(&self, name: &WheelName, at: Timestamp) -> Result<Option<WheelRecord>, StoreError> {
        self.answers("delete a wheel").await?;
        self.inner.delete_wheel(name, at).await
    }
    async fn listen_to_wheels(&self) -> Result<Box<dyn ShelfListening>, StoreError> {
        self.inner.listen_to_wheels().await
    }
    async fn note_wheel(&self, event: WheelEvent) -> Result<(), StoreError> {
        self.answers("write the history of wheels").await?;
        self.inner.note_wheel(event).await
    }
    async fn wheel_history(
        &self,
        filter: &WheelHistoryFilter,
        now: Timestamp,
    ) -> Result<Vec<WheelEvent>, StoreError> {
        self.answers("read the history of wheels").await?;
        self.inner.wheel_history(filter, now).await
    }
}

/// Bytes of which some are not as they were.
struct Flipped {
    bytes: Box<dyn WheelBytes>,
    flipped: Arc<AtomicUsize>,
}

#[async_trait]
impl WheelBytes for Flipped {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        let mut piece = self.bytes.next().await?;
        if let Some(first) = piece.as_mut().and_then(|piece| piece.first_mut())
            && spend(&self.flipped)
        {
            *first ^= 1;
        }
        Ok(piece)
    }
}

impl Peers for Faulty {}

/// A clock that only the test moves.
#[derive(Debug)]
pub struct Hands(AtomicI64);

impl Hands {
    /// Moves it.
    pub fn forward(&self, millis: i64) {
        self.0.fetch_add(millis * 1000, Ordering::SeqCst);
    }
}

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::SeqCst))
    }
}

/// Names in a row.
#[derive(Debug)]
pub struct Counter(AtomicU64);

impl Ids for Counter {
    fn event(&self) -> EventId {
        EventId::new(&format!("ev-{}", self.0.fetch_add(1, Ordering::SeqCst))).unwrap()
    }

    fn execution(&self) -> ExecutionId {
        ExecutionId::new(&format!("e-{}", self.0.fetch_add(1, Ordering::SeqCst))).unwrap()
    }
}

/// A store, a clock, and engines on them as several processes would be.
#[derive(Debug)]
pub struct Deployment {
    /// The store.
    pub store: Arc<Faulty>,
    /// The clock.
    pub hands: Arc<Hands>,
    ids: Arc<Counter>,
}

impl Deployment {
    /// With nothing in it.
    pub fn new() -> Self {
        let hands = Arc::new(Hands(AtomicI64::new(1_700_000_000_000_000)));
        Self { store: Arc::default(), hands, ids: Arc::new(Counter(AtomicU64::new(0))) }
    }

    /// One more process.
    pub fn engine(&self) -> Engine {
        Engine::new(self.store.clone(), self.hands.clone(), self.ids.clone(), Settings::default())
    }
}

impl Default for Deployment {
    fn default() -> Self {
        Self::new()
    }
}
