//! The registry of workers: a bucket with one record for each, in the contract's JSON form, which vanishes when it is not
//! written again. What a process has heard of workers it remembers for longer, so that lists show those that are gone.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use pyoco_core::ids::WorkerId;
use pyoco_core::time::Timestamp;
use pyoco_ports::{ErrorKind, StoreError, WorkerRecord, WorkerRegistry};
use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::connection::Connection;
use crate::error::{self, PublishError};
use crate::message::{Headers, Stored};
use crate::recent::Recent;
use crate::{NatsStore, Settings, names, resources};

/// So many workers are remembered; of more, those that were heard last.
const MOST_SEEN: usize = 10_000;

/// What a process knows of workers.
#[derive(Debug)]
pub(crate) struct Workers {
    connection: Arc<Connection>,
    settings: Arc<Settings>,
    stream: String,
    /// Our own last writing of a record: the next one need not look first.
    written: Recent<WorkerId, Head>,
    seen: SeenWorkers,
}

/// The last message of a worker's key.
#[derive(Debug, Clone, Copy)]
struct Head {
    /// 0 if there is none.
    sequence: u64,
    /// The mark in it, which whoever writes the next one keeps.
    hidden: Option<bool>,
}

/// Workers that were heard, also after their record has vanished.
#[derive(Debug, Default)]
pub(crate) struct SeenWorkers {
    workers: Mutex<HashMap<WorkerId, (u64, WorkerRecord)>>,
    /// Somebody tells us of every record.
    is_fed: AtomicBool,
}

impl SeenWorkers {
    /// From now on `heard` is told of every record that anybody writes; those that are there were told already.
    pub(crate) fn fed(&self) {
        self.is_fed.store(true, Ordering::Relaxed);
    }

    /// A record was written, with its number in the stream. An older one than the last is ignored.
    pub(crate) fn heard(&self, sequence: u64, record: WorkerRecord) {
        let mut workers = self.lock();
        // A stream that was made anew counts from 1 again, so time comes first.
        let is_old = |known: &(u64, WorkerRecord)| (known.1.seen_at, known.0) > (record.seen_at, sequence);
        if workers.get(&record.worker).is_some_and(is_old) {
            return;
        }
        workers.insert(record.worker.clone(), (sequence, record));
        if workers.len() > MOST_SEEN {
            let oldest = workers.values().min_by_key(|(_, record)| record.seen_at);
            if let Some(oldest) = oldest.map(|(_, record)| record.worker.clone()) {
                workers.remove(&oldest);
            }
        }
    }

    fn get(&self, worker: &WorkerId) -> Option<WorkerRecord> {
        self.lock().get(worker).map(|(_, record)| record.clone())
    }

    fn all(&self) -> Vec<WorkerRecord> {
        self.lock().values().map(|(_, record)| record.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<WorkerId, (u64, WorkerRecord)>> {
        // Each change is one step; a panic leaves nothing half done.
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Workers {
    pub(crate) fn new(connection: &Arc<Connection>, settings: &Arc<Settings>) -> Self {
        Self {
            connection: connection.clone(),
            settings: settings.clone(),
            stream: names::bucket_stream(&settings.workers_bucket),
            written: Recent::new(1_000),
            seen: SeenWorkers::default(),
        }
    }

    /// Until when it is tried to be faster than others.
    fn deadline(&self) -> Instant {
        Instant::now() + self.connection.patience()
    }

    /// Where a feed says what it hears.
    pub(crate) fn seen(&self) -> &SeenWorkers {
        &self.seen
    }

    /// A message of the bucket as a record; `None` if it is a removal, or not what a worker writes under its own name.
    pub(crate) fn record(&self, stored: &Stored) -> Option<WorkerRecord> {
        let record = read(stored)?;
        (self.settings.worker(&record.worker) == stored.subject).then_some(record)
    }

    async fn last(&self, operation: &'static str, worker: &WorkerId) -> Result<Option<Stored>, StoreError> {
        match self.connection.last(operation, &self.stream, &self.settings.worker(worker)).await {
            // Somebody has removed the bucket; whoever writes next makes it again.
            Err(error) if error::is_missing(&error) => Ok(None),
            found => found,
        }
    }

    async fn head(
        &self,
        operation: &'static str,
        worker: &WorkerId,
    ) -> Result<(Head, Option<WorkerRecord>), StoreError> {
        let stored = self.last(operation, worker).await?;
        let record = stored.as_ref().and_then(|stored| self.record(stored));
        let sequence = stored.map_or(0, |stored| stored.sequence);
        Ok((Head { sequence, hidden: record.as_ref().map(|record| record.hidden) }, record))
    }

    /// Writes a record behind the one it was made from; `None` if somebody was faster.
    async fn write(
        &self,
        operation: &'static str,
        record: &WorkerRecord,
        after: u64,
    ) -> Result<Option<u64>, StoreError> {
        let subject = self.settings.worker(&record.worker);
        let publish = || {
            let headers = Headers::new().after(after);
            self.connection.publish(operation, &self.stream, &subject, headers, record.body.clone().into())
        };
        let published = match publish().await {
            Err(PublishError::NoStream) => {
                resources::ensure_buckets(&self.connection, &self.settings).await?;
                publish().await
            }
            published => published,
        };
        let sequence = match published {
            Ok(published) => published.sequence,
            Err(PublishError::WrongLastSequence) => return Ok(None),
            Err(error) => return Err(error.into_store(operation)),
        };
        self.written.put(record.worker.clone(), Head { sequence, hidden: Some(record.hidden) });
        self.seen.heard(sequence, record.clone());
        Ok(Some(sequence))
    }

    async fn report(&self, mut record: WorkerRecord) -> Result<(), StoreError> {
        const OPERATION: &str = "report a worker";
        let mut head = self.written.remove(&record.worker);
        let deadline = self.deadline();
        loop {
            let known = match head.take() {
                Some(known) => known,
                None => self.head(OPERATION, &record.worker).await?.0,
            };
            record.hidden = known.hidden.unwrap_or(record.hidden);
            record.body = marked(OPERATION, &record)?;
            if self.write(OPERATION, &record, known.sequence).await?.is_some() {
                return Ok(());
            }
            check(OPERATION, deadline)?;
        }
    }

    async fn hide(&self, worker: &WorkerId, hidden: bool) -> Result<Option<WorkerRecord>, StoreError> {
        const OPERATION: &str = "hide a worker";
        let deadline = self.deadline();
        loop {
            let (head, record) = self.head(OPERATION, worker).await?;
            // One whose record has vanished is written again as it was, so that every gateway hears of the mark.
            let Some(mut record) = record.or_else(|| self.seen.get(worker)) else { return Ok(None) };
            record.hidden = hidden;
            record.body = marked(OPERATION, &record)?;
            if self.write(OPERATION, &record, head.sequence).await?.is_some() {
                return Ok(Some(record));
            }
            check(OPERATION, deadline)?;
        }
    }

    async fn worker(&self, worker: &WorkerId) -> Result<Option<WorkerRecord>, StoreError> {
        let stored = self.last("read a worker", worker).await?;
        let record = stored.and_then(|stored| self.record(&stored));
        Ok(record.or_else(|| self.seen.get(worker)))
    }

    async fn workers(&self) -> Result<Vec<WorkerRecord>, StoreError> {
        const OPERATION: &str = "list workers";
        if !self.seen.is_fed.load(Ordering::Relaxed) {
            // Nobody tells us: a process without an index, which is not asked often.
            let all = names::bucket_subjects(&self.settings.workers_bucket);
            let info = self.connection.info(OPERATION, &self.stream, Some(&all)).await?;
            for subject in info.and_then(|info| info.state.subjects).unwrap_or_default().into_keys() {
                if let Some(stored) = self.connection.last(OPERATION, &self.stream, &subject).await?
                    && let Some(record) = self.record(&stored)
                {
                    self.seen.heard(stored.sequence, record);
                }
            }
        }
        let mut workers = self.seen.all();
        workers.sort_by(|a, b| (b.seen_at, &b.worker).cmp(&(a.seen_at, &a.worker)));
        Ok(workers)
    }
}

/// The body of a record with its mark, for those who read nothing else.
fn marked(operation: &'static str, record: &WorkerRecord) -> Result<Vec<u8>, StoreError> {
    let mut members: Map<String, Value> =
        serde_json::from_slice(&record.body).map_err(|why| error::internal(operation, why))?;
    members.insert("hidden".to_owned(), Value::Bool(record.hidden));
    serde_json::to_vec(&members).map_err(|why| error::internal(operation, why))
}

/// A record as any implementation writes it.
fn read(stored: &Stored) -> Option<WorkerRecord> {
    let members: Map<String, Value> = serde_json::from_slice(&stored.payload).ok()?;
    let worker = WorkerId::new(members.get("worker_id")?.as_str()?).ok()?;
    let times = ["last_seen_at", "heartbeat_at", "updated_at"];
    let said = times.iter().find_map(|name| Timestamp::from_unix_seconds(members.get(*name)?.as_f64()?));
    let hidden = members.get("hidden").and_then(Value::as_bool).unwrap_or_default();
    Some(WorkerRecord { worker, seen_at: said.unwrap_or(stored.time), hidden, body: stored.payload.to_vec() })
}

/// Somebody was faster, once more.
fn check(operation: &'static str, deadline: Instant) -> Result<(), StoreError> {
    if Instant::now() < deadline {
        return Ok(());
    }
    Err(StoreError::new(ErrorKind::Unavailable, operation, "others change the record all the time"))
}

#[async_trait]
impl WorkerRegistry for NatsStore {
    async fn report(&self, record: WorkerRecord) -> Result<(), StoreError> {
        self.workers.report(record).await
    }

    async fn worker(&self, worker: &WorkerId) -> Result<Option<WorkerRecord>, StoreError> {
        self.workers.worker(worker).await
    }

    async fn workers(&self) -> Result<Vec<WorkerRecord>, StoreError> {
        self.workers.workers().await
    }

    async fn hide(&self, worker: &WorkerId, hidden: bool) -> Result<Option<WorkerRecord>, StoreError> {
        self.workers.hide(worker, hidden).await
    }
}
