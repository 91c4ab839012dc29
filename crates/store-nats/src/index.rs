//! The index of runs: rows are kept and asked for in this process, and every published row stands beside its snapshot in the
//! bucket, where the indexes of other processes and other implementations read it.
//!
//! Whoever publishes does it behind the snapshot that it knows, so an older one never takes the place of a newer one. A run
//! whose key somebody deleted is in no list any more, as with the original; its log stays.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex as StdMutex, MutexGuard as StdMutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use pyoco_core::ids::{ExecutionId, Tag, TenantId, Version};
use pyoco_core::time::Timestamp;
use pyoco_core::view::RunStatus;
use pyoco_ports::{
    EndedFilter, EndedPlace, ErrorKind, Filter, IndexRow, JobFilter, JobPage, LabelFilter, LabelPage, Page,
    Queue, RunIndex, StoreError, WaitFilter, WaitPage,
};
use serde_json::Value;
use tokio::sync::{Mutex, MutexGuard};

use crate::connection::Connection;
use crate::error::{self, PublishError};
use crate::gathered::Gathered;
use crate::message::{Headers, Stored};
use crate::recent::Recent;
use crate::snapshot::{self, Snapshot};
use crate::stretch::Stretch;
use crate::{NatsStore, Settings, names, resources};

const OPERATION: &str = "publish a row";
/// How many runs are remembered. One that is forgotten costs a look before it is published again.
const KNOWN: usize = 50_000;
/// The mark of a run that was removed stays for a day: whoever was away for longer finds out when it looks for the log.
const MARK_STAYS: &str = "86400s";
/// Runs that share a turn wait for each other.
const TURNS: usize = 256;
/// Each lost race means that somebody else got on; more than a few in a row means that something is wrong.
const TRIES: usize = 16;

/// The index of this process. Clones share it.
#[derive(Clone)]
pub(crate) struct LocalIndex {
    inner: Arc<Inner>,
}

struct Inner {
    connection: Arc<Connection>,
    settings: Arc<Settings>,
    /// The stream of the bucket.
    stream: String,
    /// Where the rows are; a process without one only publishes.
    rows: Option<Arc<Gathered>>,
    known: Recent<ExecutionId, Known>,
    /// The last foreign snapshot of a run that its log has taken in, with the bucket it stood in.
    settled: Recent<ExecutionId, (u64, Revision)>,
    /// The bucket was made anew so many times: what is known of an older one says nothing.
    bucket: AtomicU64,
    /// One at a time may write a run's snapshot and its row, so that both end up the same.
    turns: Vec<Mutex<()>>,
    turn_of: RandomState,
    is_followed: AtomicBool,
    /// What this store has written lately, by number.
    mine: StdMutex<Stretch>,
}

/// The number of a snapshot in its bucket.
pub(crate) type Revision = u64;

/// What stands in the bucket, as far as we know.
#[derive(Debug, Clone, Copy)]
struct Known {
    bucket: u64,
    revision: Revision,
    /// 0 if it is not ours.
    version: Version,
    author: Author,
}

/// Who has written a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Author {
    /// This store.
    Me,
    /// Another process of ours, or nobody.
    Us,
    /// Another implementation has written it, or changed it.
    Foreign,
}

/// What becomes of a row.
enum Plan {
    /// It is written behind this snapshot.
    Write(Revision),
    /// What stands there is newer, or must be taken in first.
    Leave,
    /// Nobody knows what stands there.
    Look,
}

/// A snapshot as it came out of the bucket.
pub(crate) struct Found {
    pub(crate) execution: ExecutionId,
    pub(crate) revision: Revision,
    pub(crate) snapshot: Snapshot,
}

impl Found {
    /// Reads a message of the bucket; `None` if it is none of a run: the mark of a deletion, nonsense, or another's snapshot.
    pub(crate) fn read(settings: &Settings, stored: &Stored) -> Option<Self> {
        if stored.headers.get("KV-Operation").is_some() {
            return None;
        }
        let (execution, snapshot) = snapshot::read(&stored.payload)?;
        let stands_at_its_key = settings.run(&execution) == stored.subject;
        stands_at_its_key.then_some(Self { execution, revision: stored.sequence, snapshot })
    }

    /// The run whose key a message deletes; `None` if it deletes none.
    pub(crate) fn deleted(settings: &Settings, stored: &Stored) -> Option<ExecutionId> {
        stored.headers.get("KV-Operation")?;
        let (_, key) = stored.subject.rsplit_once('.')?;
        let execution = ExecutionId::new(key).ok()?;
        (settings.run(&execution) == stored.subject).then_some(execution)
    }

    fn known(&self, bucket: u64) -> Known {
        let (version, author) = match &self.snapshot {
            Snapshot::Ours(row) => (row.version, Author::Us),
            Snapshot::Changed(row, _) => (row.version, Author::Foreign),
            Snapshot::Foreign(_) => (Version(0), Author::Foreign),
        };
        Known { bucket, revision: self.revision, version, author }
    }
}

impl std::fmt::Debug for LocalIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalIndex").finish_non_exhaustive()
    }
}

impl LocalIndex {
    pub(crate) fn new(
        connection: &Arc<Connection>,
        settings: &Arc<Settings>,
        rows: Option<Arc<dyn RunIndex>>,
    ) -> Self {
        let inner = Inner {
            connection: connection.clone(),
            settings: settings.clone(),
            stream: names::bucket_stream(&settings.runs_bucket),
            rows: rows.map(Gathered::new),
            known: Recent::new(KNOWN),
            settled: Recent::new(KNOWN),
            bucket: AtomicU64::new(0),
            turns: (0..TURNS).map(|_| Mutex::default()).collect(),
            turn_of: RandomState::new(),
            is_followed: AtomicBool::new(false),
            mine: StdMutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Whether nobody has followed the bucket yet; from now on somebody does.
    pub(crate) fn begin_to_follow(&self) -> bool {
        !self.inner.is_followed.swap(true, Ordering::Relaxed)
    }

    /// The bucket is another one than before.
    pub(crate) fn forget_bucket(&self) {
        let mut mine = self.stretch();
        self.inner.bucket.fetch_add(1, Ordering::Relaxed);
        *mine = Stretch::default();
    }

    /// The log has taken in a foreign snapshot, or has a reason not to: it need not stay.
    pub(crate) fn settle(&self, execution: &ExecutionId, revision: Revision) {
        let settled = (self.bucket(), revision);
        if self.inner.settled.get(execution).is_none_or(|known| known < settled) {
            self.inner.settled.put(execution.clone(), settled);
        }
    }

    /// The snapshot of a run as this store has written it, if it was the last to do so.
    pub(crate) fn mine(&self, execution: &ExecutionId) -> Option<Revision> {
        self.known(execution).filter(|known| known.author == Author::Me).map(|known| known.revision)
    }

    /// Somebody of ours says where the first snapshot of a run stands. What is known already may be newer.
    pub(crate) fn told(&self, execution: &ExecutionId, revision: Revision) {
        if self.known(execution).is_none() {
            let known = Known { bucket: self.bucket(), revision, version: Version(1), author: Author::Us };
            self.inner.known.put(execution.clone(), known);
        }
    }

    /// Notes what this store has written into the bucket that there was when it began to write.
    fn has_written(&self, bucket: u64, revision: Revision) {
        if self.inner.is_followed.load(Ordering::Relaxed) {
            let mut mine = self.stretch();
            if bucket == self.bucket() {
                mine.add(revision);
            }
        }
    }

    fn stretch(&self) -> StdMutexGuard<'_, Stretch> {
        // Nothing in it can be left half done.
        self.inner.mine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Up to which message of the bucket everything behind one was written by this store.
    pub(crate) fn written_here(&self, behind: Revision) -> Revision {
        self.stretch().behind(behind)
    }

    /// Whether this store has written it: then nobody need read it. What it is just writing may be heard before the server has answered;
    /// so the answer is waited for.
    pub(crate) async fn is_mine(&self, stored: &Stored) -> bool {
        let key = stored.subject.rsplit_once('.').and_then(|(_, key)| ExecutionId::new(key).ok());
        let Some(execution) = key else { return false };
        let _turn = self.turn(&execution).await;
        let known = self.known(&execution);
        known.is_some_and(|known| known.revision == stored.sequence && known.author == Author::Me)
    }

    /// Takes in what somebody wrote. `false` if it was this store.
    pub(crate) async fn take_in(&self, found: &Found) -> Result<bool, StoreError> {
        let _turn = self.turn(&found.execution).await;
        match self.known(&found.execution) {
            // It was met when something was to be published, or something newer was: the index has it.
            Some(known) if known.revision > found.revision => Ok(true),
            Some(known) if known.revision == found.revision => Ok(known.author != Author::Me),
            Some(_) | None => self.keep(found).await.map(|()| true),
        }
    }

    /// What stands in the bucket now, from its leader.
    pub(crate) async fn look(&self, execution: &ExecutionId) -> Result<Option<Found>, StoreError> {
        let last = self.last("read a snapshot", execution).await?;
        let found = last.and_then(|last| Found::read(&self.inner.settings, &last));
        // A process without an index learns from this what it will publish behind; one with an index hears it with its row.
        if let Some(found) = found.as_ref().filter(|_| self.inner.rows.is_none()) {
            let is_newer = |known: &Known| known.revision >= found.revision;
            if self.known(execution).filter(is_newer).is_none() {
                self.inner.known.put(execution.clone(), found.known(self.bucket()));
            }
        }
        Ok(found)
    }

    /// Those of some runs that nobody is shown and nobody has taken out of lists: neither a snapshot stands in the bucket nor the mark
    /// of a deletion. Rows do not tell: this process has some that are in no bucket.
    pub(crate) async fn unshown(
        &self,
        operation: &'static str,
        mut runs: Vec<ExecutionId>,
    ) -> Result<Vec<ExecutionId>, StoreError> {
        let Inner { connection, settings, stream, .. } = &*self.inner;
        runs.retain(|run| self.known(run).is_none());
        // Not made on the way: the compiler cannot tell how long the names live.
        let keys: Vec<String> = runs.iter().map(|run| settings.run(run)).collect();
        let shown = connection.last_of_each(operation, stream, keys).await?;
        let shown: HashSet<String> = shown.into_iter().map(|shown| shown.subject).collect();
        runs.retain(|run| !shown.contains(&settings.run(run)));
        Ok(runs)
    }

    /// Deletes the key of a run, as the contract deletes: what remains is a mark, which others hear.
    async fn forget(&self, execution: &ExecutionId) -> Result<(), StoreError> {
        const OPERATION: &str = "forget a row";
        let _turn = self.turn(execution).await;
        self.inner.known.remove(execution);
        let subject = self.inner.settings.run(execution);
        let headers = Headers::new().word("KV-Operation", "DEL");
        let connection = &self.inner.connection;
        let deleted =
            connection.publish(OPERATION, &self.inner.stream, &subject, headers, Bytes::new()).await;
        deleted.map_err(|error| error.into_store(OPERATION))?;
        self.remove(execution).await
    }

    /// Takes the snapshot of a run away that was removed. What remains is a mark, which others hear, and which goes by itself where the
    /// bucket allows that.
    pub(crate) async fn bury(&self, execution: &ExecutionId) -> Result<(), StoreError> {
        const OPERATION: &str = "remove a snapshot";
        let _turn = self.turn(execution).await;
        self.inner.known.remove(execution);
        self.inner.settled.remove(execution);
        let subject = self.inner.settings.run(execution);
        let publish = |headers: Headers| {
            let headers = headers.word("KV-Operation", "PURGE").word("Nats-Rollup", "sub");
            self.inner.connection.publish(OPERATION, &self.inner.stream, &subject, headers, Bytes::new())
        };
        let published = match publish(Headers::new().word("Nats-TTL", MARK_STAYS)).await {
            Err(PublishError::Store(error)) if error.kind == ErrorKind::Internal => {
                publish(Headers::new()).await
            }
            published => published,
        };
        match published {
            // Somebody has removed the bucket, and every snapshot with it.
            Ok(_) | Err(PublishError::NoStream) => self.remove(execution).await,
            Err(error) => Err(error.into_store(OPERATION)),
        }
    }

    /// Somebody has deleted the key of a run: lists show it no more. Its log stays. `false` if there is a newer snapshot since.
    pub(crate) async fn gone(&self, execution: &ExecutionId, mark: Revision) -> Result<bool, StoreError> {
        let _turn = self.turn(execution).await;
        if self.known(execution).is_some_and(|known| known.revision > mark) {
            return Ok(false);
        }
        self.inner.known.remove(execution);
        self.remove(execution).await.map(|()| true)
    }

    async fn remove(&self, execution: &ExecutionId) -> Result<(), StoreError> {
        match &self.inner.rows {
            Some(rows) => rows.forget(execution).await,
            None => Ok(()),
        }
    }

    /// The snapshot as it stands in the bucket, without our own member.
    pub(crate) async fn body(&self, execution: &ExecutionId) -> Result<Option<Value>, StoreError> {
        let last = self.last("read a snapshot", execution).await?;
        Ok(last.and_then(|last| snapshot::body(&last.payload)))
    }

    async fn last(
        &self,
        operation: &'static str,
        execution: &ExecutionId,
    ) -> Result<Option<Stored>, StoreError> {
        let subject = self.inner.settings.run(execution);
        self.inner.connection.last(operation, &self.inner.stream, &subject).await
    }

    async fn keep(&self, found: &Found) -> Result<(), StoreError> {
        match &found.snapshot {
            Snapshot::Ours(row) | Snapshot::Changed(row, _) => self.put(row.clone()).await?,
            // Lists show it too. A row of a record is newer than this one, whatever it says.
            Snapshot::Foreign(value) => {
                if let Some(row) = snapshot::foreign_row(&found.execution, value) {
                    self.put(row).await?;
                }
            }
        }
        self.inner.known.put(found.execution.clone(), found.known(self.bucket()));
        Ok(())
    }

    async fn put(&self, row: IndexRow) -> Result<(), StoreError> {
        match &self.inner.rows {
            Some(rows) => rows.put(row).await,
            None => Ok(()),
        }
    }

    async fn publish(&self, row: IndexRow, snapshot: &[u8]) -> Result<(), StoreError> {
        let text = snapshot::with_row(snapshot, &row)?;
        let _turn = self.turn(&row.execution).await;
        self.write(&row, text).await?;
        // Afterwards: a row that is in no bucket would be in this index alone.
        self.put(row).await
    }

    /// Writes a snapshot, unless a newer one is there.
    async fn write(&self, row: &IndexRow, text: Bytes) -> Result<(), StoreError> {
        for _ in 0..TRIES {
            let after = match self.plan(row) {
                Plan::Write(after) => after,
                Plan::Leave => return Ok(()),
                // On the heap, like what else is rare here: a future is moved with the room for all that it may wait for.
                Plan::Look => {
                    Box::pin(self.learn(&row.execution)).await?;
                    continue;
                }
            };
            let Inner { connection, settings, stream, .. } = &*self.inner;
            let (subject, headers) = (settings.run(&row.execution), Headers::new().after(after));
            let bucket = self.bucket();
            match connection.publish(OPERATION, stream, subject, headers, text.clone()).await {
                Ok(stored) => {
                    let (revision, version) = (stored.sequence, row.version);
                    let known = Known { bucket: self.bucket(), revision, version, author: Author::Me };
                    self.inner.known.put(row.execution.clone(), known);
                    self.has_written(bucket, revision);
                    return Ok(());
                }
                Err(PublishError::WrongLastSequence) => Box::pin(self.learn(&row.execution)).await?,
                Err(PublishError::NoStream) => {
                    Box::pin(resources::ensure_buckets(&self.inner.connection, &self.inner.settings)).await?;
                    self.inner.known.remove(&row.execution);
                }
                Err(PublishError::Store(error)) => {
                    // It may have been stored.
                    self.inner.known.remove(&row.execution);
                    return Err(error);
                }
            }
        }
        Err(StoreError::new(ErrorKind::Unavailable, OPERATION, "others were always faster"))
    }

    fn plan(&self, row: &IndexRow) -> Plan {
        let Some(known) = self.known(&row.execution) else {
            // A run's first record comes with its first snapshot.
            return if row.version <= Version(1) { Plan::Write(0) } else { Plan::Look };
        };
        if known.version > row.version {
            return Plan::Leave;
        }
        let is_settled = self
            .inner
            .settled
            .get(&row.execution)
            .is_some_and(|settled| settled >= (known.bucket, known.revision));
        // What a foreign snapshot says may be a cancel or a result that stands nowhere else. It stays until the log has it;
        // whoever takes it in publishes again. Nothing can change a run that has ended.
        if known.author == Author::Foreign && !is_settled && !snapshot::is_ended(row.summary.status) {
            return Plan::Leave;
        }
        Plan::Write(known.revision)
    }

    /// Asks what stands in the bucket.
    async fn learn(&self, execution: &ExecutionId) -> Result<(), StoreError> {
        let last = self.last(OPERATION, execution).await?;
        if let Some(found) = last.as_ref().and_then(|last| Found::read(&self.inner.settings, last)) {
            return self.keep(&found).await;
        }
        // Nothing, the mark of a deletion, or nonsense: there is nothing in it to keep.
        let revision = last.map_or(0, |last| last.sequence);
        let known = Known { bucket: self.bucket(), revision, version: Version(0), author: Author::Us };
        self.inner.known.put(execution.clone(), known);
        Ok(())
    }

    fn known(&self, execution: &ExecutionId) -> Option<Known> {
        let bucket = self.bucket();
        self.inner.known.get(execution).filter(|known| known.bucket == bucket)
    }

    fn bucket(&self) -> u64 {
        self.inner.bucket.load(Ordering::Relaxed)
    }

    /// The right to write the snapshot of a run, for as long as it is held.
    pub(crate) async fn turn(&self, execution: &ExecutionId) -> Option<MutexGuard<'_, ()>> {
        let hash = self.inner.turn_of.hash_one(execution);
        let number = usize::try_from(hash % TURNS as u64).unwrap_or_default();
        match self.inner.turns.get(number) {
            Some(turn) => Some(turn.lock().await),
            None => None,
        }
    }

    /// The rows, with all that were put before.
    async fn rows(&self, operation: &'static str) -> Result<&dyn RunIndex, StoreError> {
        match &self.inner.rows {
            Some(rows) => rows.settled().await,
            None => Err(error::internal(operation, "this process has no index")),
        }
    }
}

#[async_trait]
impl RunIndex for NatsStore {
    async fn put(&self, row: IndexRow) -> Result<(), StoreError> {
        self.index.put(row).await
    }

    fn wants_snapshots(&self) -> bool {
        true
    }

    async fn publish_row(&self, row: IndexRow, snapshot: Vec<u8>) -> Result<(), StoreError> {
        self.index.publish(row, &snapshot).await
    }

    async fn forget(&self, execution: &ExecutionId) -> Result<(), StoreError> {
        self.index.forget(execution).await
    }

    async fn get(&self, execution: &ExecutionId) -> Result<Option<IndexRow>, StoreError> {
        self.index.rows("get a row").await?.get(execution).await
    }

    async fn list(&self, filter: &Filter, limit: usize) -> Result<Page, StoreError> {
        self.index.rows("list").await?.list(filter, limit).await
    }

    async fn waits(&self, filter: &WaitFilter, limit: usize) -> Result<WaitPage, StoreError> {
        self.index.rows("list waits").await?.waits(filter, limit).await
    }

    async fn jobs(&self, filter: &JobFilter, limit: usize) -> Result<JobPage, StoreError> {
        self.index.rows("list jobs").await?.jobs(filter, limit).await
    }

    async fn labels(&self, filter: &LabelFilter, limit: usize) -> Result<LabelPage, StoreError> {
        self.index.rows("list labels").await?.labels(filter, limit).await
    }

    async fn counts(&self, tenant: Option<&TenantId>) -> Result<Vec<(RunStatus, u64)>, StoreError> {
        self.index.rows("count").await?.counts(tenant).await
    }

    async fn counts_since(
        &self,
        tenant: Option<&TenantId>,
        since: Timestamp,
    ) -> Result<Vec<(RunStatus, u64)>, StoreError> {
        self.index.rows("count since").await?.counts_since(tenant, since).await
    }

    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<ExecutionId>, StoreError> {
        self.index.rows("due").await?.due(now, limit).await
    }

    async fn ended_before(&self, filter: &EndedFilter, limit: usize) -> Result<Vec<EndedPlace>, StoreError> {
        self.index.rows("find what has ended").await?.ended_before(filter, limit).await
    }

    async fn runnable(&self, tag: &Tag, limit: usize) -> Result<Vec<ExecutionId>, StoreError> {
        self.index.rows("runnable").await?.runnable(tag, limit).await
    }

    async fn runnable_tags(&self) -> Result<Vec<Tag>, StoreError> {
        self.index.rows("runnable tags").await?.runnable_tags().await
    }

    async fn queues(&self) -> Result<Vec<Queue>, StoreError> {
        self.index.rows("queues").await?.queues().await
    }
}
