//! The log: each record is a message at the execution's subject, stored only behind the record it was decided on.
//!
//! What follows from a record (snapshot, job, letter) is not done here: the engine does it, and does it again when it was lost.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use pyoco_core::digest::Digest;
use pyoco_core::ids::{ExecutionId, Version};
use pyoco_ports::{
    Append, AppendError, Appended, Blobs as _, ErrorKind, EventLog, LogPlace, StoreError, StoredRecord,
    Unshown,
};
use serde::Deserialize as _;

use crate::carried::First;
use crate::error::{self, PublishError};
use crate::message::{Headers, Stored};
use crate::recent::Recent;
use crate::stream::Most;
use crate::{NatsStore, names};

/// How many executions whose end is remembered.
const REMEMBERED: usize = 50_000;
/// Records beyond this stand in a blob, and the message names it.
const LARGE: usize = 900 * 1024;
/// What the protocol and our headers need beside a record.
const ROOM: usize = 4 * 1024;
/// How many records are asked for at once.
const PAGE: usize = 1000;
/// How often an append is tried whose record is not there and yet refused: a cluster refuses while it is still at work on another
/// one, which the look in between does not show yet. The pauses double; together they are half a second.
const ATTEMPTS: u32 = 9;
const FIRST_PAUSE: Duration = Duration::from_millis(1);
/// How long an append waits for a leader that the stream has lost or that is not known everywhere yet, and how often it looks. Nothing
/// was stored meanwhile, so it may be said again.
const LEADERLESS: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(50);

/// Behind the last record of an execution that is being removed.
const REMOVED: &str = "Pyoco-Removed";
/// Which record of its execution a message is.
const VERSION: &str = "Pyoco-Version";
/// Where the bytes of a large record are.
const BLOB: &str = "Pyoco-Blob";

const APPEND: &str = "append";
const READ: &str = "read";

/// The last record of an execution, as far as this process knows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head {
    pub(crate) version: Version,
    pub(crate) sequence: u64,
}

/// The heads of the logs that were used lately. A head may be old, never wrong: a log only grows, or is gone.
#[derive(Debug)]
pub(crate) struct Heads(Recent<ExecutionId, Head>);

impl Heads {
    pub(crate) fn new() -> Self {
        Self(Recent::new(REMEMBERED))
    }
}

#[async_trait]
impl EventLog for NatsStore {
    async fn append(&self, mut append: Append) -> Result<Appended, AppendError> {
        let (execution, expected) = (append.execution.clone(), append.expected);
        let bytes = std::mem::take(&mut append.bytes);
        let (blob, payload) = self.envelope(&execution, bytes).await?;
        // What this process knows is tried first; the server knows better.
        let mut behind = match self.log.0.get(&execution) {
            _ if expected == Version(0) => Some(0),
            Some(head) if head.version == expected => Some(head.sequence),
            Some(_) | None => None,
        };
        let leaderless = tokio::time::Instant::now() + LEADERLESS;
        let mut attempt = 0;
        while attempt < ATTEMPTS {
            let sequence = match behind {
                Some(sequence) => sequence,
                None => {
                    let Head { version: actual, sequence } =
                        Box::pin(self.end_of_log(APPEND, &execution)).await?;
                    if actual != expected {
                        return Err(AppendError::Conflict { expected, actual });
                    }
                    sequence
                }
            };
            let headers = Headers::new().number(VERSION, expected.next().0).after(sequence);
            let headers = match &blob {
                Some(blob) => headers.digest(BLOB, blob),
                None => headers,
            };
            let subject = names::events(&execution);
            match self.connection.publish(APPEND, names::EVENTS, subject, headers, payload.clone()).await {
                Ok(published) => {
                    let head = Head { version: expected.next(), sequence: published.sequence };
                    // A large one is not in its message.
                    if expected == Version(0) && !payload.is_empty() {
                        self.carried.begun(&execution, published.sequence, &payload);
                    }
                    self.log.0.put(execution, head);
                    return Ok(Appended { left: Some(Box::new(append)), promise: None });
                }
                // Somebody was faster, or what we knew was old, or a cluster is still at work on a neighbour. Look.
                Err(PublishError::WrongLastSequence) => {
                    behind = None;
                    if attempt > 0 {
                        tokio::time::sleep(FIRST_PAUSE * 2_u32.pow(attempt)).await;
                    }
                    attempt += 1;
                }
                Err(PublishError::NoStream) if tokio::time::Instant::now() < leaderless => {
                    tokio::time::sleep(LOOK).await;
                }
                Err(error) => return Err(error.into_store(APPEND).into()),
            }
        }
        Err(StoreError::new(ErrorKind::Unavailable, APPEND, "the stream takes no record behind its last one")
            .into())
    }

    async fn read(&self, execution: &ExecutionId, after: Version) -> Result<Vec<StoredRecord>, StoreError> {
        self.read_some(execution, after, usize::MAX).await
    }

    async fn read_some(
        &self,
        execution: &ExecutionId,
        after: Version,
        limit: usize,
    ) -> Result<Vec<StoredRecord>, StoreError> {
        Ok(self.records_after(execution, after, limit).await?.unwrap_or_default())
    }

    /// Most runs that somebody looks at first have one record: their job has brought it, or whoever is nearest has it. Those with more are
    /// read as ever.
    async fn peek(&self, execution: &ExecutionId) -> Result<Vec<StoredRecord>, StoreError> {
        if let Some(First { sequence, bytes }) = self.carried.record(execution) {
            self.met_first(execution, sequence);
            return Ok(vec![StoredRecord { version: Version(1), bytes: bytes.into() }]);
        }
        if self.resources.is_events_direct
            && let Ok(Some(last)) =
                self.connection.nearest(READ, names::EVENTS, &names::events(execution)).await
            && is_first(&last)
        {
            self.met_first(execution, last.sequence);
            return Ok(vec![self.record(Version(1), last).await?]);
        }
        self.read(execution, Version(0)).await
    }

    async fn read_on(
        &self,
        execution: &ExecutionId,
        seen: Version,
    ) -> Result<Option<Vec<StoredRecord>>, StoreError> {
        self.records_after(execution, seen, usize::MAX).await
    }

    async fn unshown(&self) -> Result<Unshown, StoreError> {
        self.look_for_unshown().await
    }

    async fn shown_until(&self, place: LogPlace) -> Result<(), StoreError> {
        self.looked_until(place).await
    }
}

/// What stands behind the last record of an execution that is being removed.
pub(crate) fn removed() -> Headers {
    Headers::new().word(REMOVED, "1")
}

/// Whether a message is the first record of its execution.
pub(crate) fn is_first(message: &Stored) -> bool {
    message.headers.get_number(VERSION) == Some(1)
}

fn is_removed(message: &Stored) -> bool {
    message.headers.get(REMOVED).is_some()
}

impl NatsStore {
    /// The records after one; `None` if that one is not there any more.
    async fn records_after(
        &self,
        execution: &ExecutionId,
        after: Version,
        limit: usize,
    ) -> Result<Option<Vec<StoredRecord>>, StoreError> {
        let subject = names::events(execution);
        let known = self.log.0.get(execution).filter(|head| head.version <= after);
        let nothing = || Ok((after == Version(0)).then(Vec::new));
        let last = self.connection.last(READ, names::EVENTS, &subject).await?;
        let Some(last) = last.filter(|last| !is_removed(last)) else {
            self.log.0.remove(execution);
            return nothing();
        };
        let head = Head { version: version(&last)?, sequence: last.sequence };
        self.log.0.put(execution.clone(), head);
        if head.version < after {
            return Ok(None);
        }
        if head.version == after || limit == 0 {
            return Ok(Some(Vec::new()));
        }
        if head.version == after.next() {
            return Ok(Some(vec![self.record(head.version, last).await?]));
        }
        // What was known is behind `after`, so the records wanted are behind it.
        let from = known.map_or(1, |head| head.sequence.saturating_add(1));
        // The last record wanted; a limit beyond all numbers is none.
        let until = Version(after.0.saturating_add(limit as u64)).min(head.version);
        let records = self.records(&subject, after, from, until, head).await?;
        let is_whole = |records: &[StoredRecord]| {
            records.iter().map(|record| record.version.0).eq(after.0 + 1..=until.0)
        };
        // A stream that was made anew has other sequences than those known.
        let records = if is_whole(&records) || from == 1 {
            records
        } else {
            self.records(&subject, after, 1, until, head).await?
        };
        if !is_whole(&records) {
            // Somebody may have removed it while it was read.
            if self.end_of_log(READ, execution).await?.version < head.version {
                return nothing();
            }
            let why = format!("the records of execution {execution} after {after} have a gap before {until}");
            return Err(error::corrupt(READ, why));
        }
        Ok(Some(records))
    }

    /// The first record of a log was met. What is known already may be newer.
    fn met_first(&self, execution: &ExecutionId, sequence: u64) {
        if self.log.0.get(execution).is_none() {
            self.log.0.put(execution.clone(), Head { version: Version(1), sequence });
        }
    }

    /// What was known of a log is worth nothing any more.
    pub(crate) fn forget_head(&self, execution: &ExecutionId) {
        self.log.0.remove(execution);
    }

    /// The body of a record. A large one is stored as a blob first, which is named instead: if we die here nobody knows of it, and nobody needs it.
    async fn envelope(
        &self,
        execution: &ExecutionId,
        bytes: Vec<u8>,
    ) -> Result<(Option<Digest>, Bytes), StoreError> {
        if bytes.len() <= LARGE.min(self.connection.max_payload().saturating_sub(ROOM)) {
            return Ok((None, bytes.into()));
        }
        let digest = Box::pin(self.put_blob(execution, &bytes)).await?;
        Ok((Some(digest), Bytes::new()))
    }

    /// The end of a log, as the leader has it. The next record goes behind its sequence, also where there is none, or none any more.
    pub(crate) async fn end_of_log(
        &self,
        operation: &'static str,
        execution: &ExecutionId,
    ) -> Result<Head, StoreError> {
        let last = self.connection.last(operation, names::EVENTS, &names::events(execution)).await?;
        let sequence = last.as_ref().map_or(0, |last| last.sequence);
        match last.filter(|last| !is_removed(last)) {
            Some(last) => {
                let head = Head { version: version(&last)?, sequence };
                self.log.0.put(execution.clone(), head);
                Ok(head)
            }
            None => {
                self.log.0.remove(execution);
                Ok(Head { version: Version(0), sequence })
            }
        }
    }

    /// The records behind `after` up to `until`, as they stand from a sequence on.
    async fn records(
        &self,
        subject: &str,
        after: Version,
        mut from: u64,
        until: Version,
        head: Head,
    ) -> Result<Vec<StoredRecord>, StoreError> {
        let mut records = Vec::new();
        let mut seen = after;
        while from <= head.sequence && seen < until {
            let is_direct = self.resources.is_events_direct;
            let most = Most::messages(PAGE);
            let page = self.connection.page(READ, names::EVENTS, subject, from, most, is_direct).await?;
            let Some(end) = page.last().map(|message| message.sequence) else { break };
            from = end.saturating_add(1);
            for message in page {
                if is_removed(&message) {
                    // What stood before was another one's of the same name.
                    (records, seen) = (Vec::new(), after);
                    continue;
                }
                let version = version(&message)?;
                seen = seen.max(version);
                if version > after && version <= until {
                    records.push(self.record(version, message).await?);
                }
            }
        }
        Ok(records)
    }

    async fn record(&self, version: Version, message: Stored) -> Result<StoredRecord, StoreError> {
        let Some(name) = message.headers.get(BLOB) else {
            return Ok(StoredRecord { version, bytes: message.payload.into() });
        };
        let digest =
            Digest::deserialize(serde_json::Value::from(name)).map_err(|why| error::corrupt(READ, why))?;
        match self.get_blob(&digest).await? {
            Some(bytes) => Ok(StoredRecord { version, bytes }),
            None => Err(error::corrupt(
                READ,
                format!("record {version} stands in blob {digest}, which is not there"),
            )),
        }
    }
}

fn version(message: &Stored) -> Result<Version, StoreError> {
    let number = message.headers.get_number(VERSION).filter(|number| *number > 0);
    number.map(Version).ok_or_else(|| {
        error::corrupt(READ, format!("message {} at {} has no version", message.sequence, message.subject))
    })
}
