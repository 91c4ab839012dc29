//! The log: the only thing that is not derived.

use std::pin::Pin;

use async_trait::async_trait;
use pyoco_core::ids::{ExecutionId, Version};

use crate::{AppendError, DeadLetterRecord, IndexRow, Job, StoreError};

/// The records of every execution.
#[async_trait]
pub trait EventLog: Send + Sync {
    /// Appends one record.
    ///
    /// - MUST append if `expected` is the version of the log, 0 for an execution without a log. `[log/append]`
    /// - MUST refuse with `Conflict` and change nothing if it is not, whether behind or ahead. `[log/conflict]`
    /// - Of several appends at the same time with the same expected version exactly one MUST succeed. `[log/race]`
    /// - Executions MUST NOT disturb each other. `[log/isolation]`
    /// - When it returns, the record MUST survive the loss of the process, and what else its `durability` says. `[log/reopen]`
    /// - MAY carry out the consequences that come with it (`row`, `enqueue`, `drop_job`, `dead_letter`), all of them in the
    ///   same step or none, and MUST say which. `[log/consequences]`
    async fn append(&self, append: Append) -> Result<Appended, AppendError>;

    /// The records of an execution after a version, in order and without a gap.
    ///
    /// - MUST see every append that has returned. `[log/read]`
    /// - MUST give the bytes exactly as they were appended. `[log/read]`
    /// - MUST give nothing for an execution without a log. `[log/read-unknown]`
    async fn read(&self, execution: &ExecutionId, after: Version) -> Result<Vec<StoredRecord>, StoreError>;

    /// The first so many of them. MUST NOT cost more because there are more behind them. `[log/read-some]`
    async fn read_some(
        &self,
        execution: &ExecutionId,
        after: Version,
        limit: usize,
    ) -> Result<Vec<StoredRecord>, StoreError>;

    /// The records of an execution as they can be had soonest: MAY lack some at the end that others have appended lately, and MUST give
    /// nothing only for an execution without a log. `[log/peek]` Good for a first look, before something is asked that an append decides.
    async fn peek(&self, execution: &ExecutionId) -> Result<Vec<StoredRecord>, StoreError> {
        self.read(execution, Version(0)).await
    }

    /// The records after one that was read before. `None` if that one is not there any more: the execution was removed. `[log/read-on]`
    async fn read_on(
        &self,
        execution: &ExecutionId,
        seen: Version,
    ) -> Result<Option<Vec<StoredRecord>>, StoreError> {
        let Some(before) = seen.0.checked_sub(1) else { return self.read(execution, seen).await.map(Some) };
        let mut records = self.read(execution, Version(before)).await?.into_iter();
        Ok(records.next().map(|_| records.collect()))
    }

    /// Looks once through what was appended since the last look, of whichever process, for executions that have a log and nothing that
    /// others see: whoever began one was lost before it was shown. A store that shows an execution in the step in which it begins
    /// finds none, which is what the default says.
    async fn unshown(&self) -> Result<Unshown, StoreError> {
        Ok(Unshown::default())
    }

    /// What a look has found is shown. Until this is said, the next look finds it again.
    async fn shown_until(&self, _place: LogPlace) -> Result<(), StoreError> {
        Ok(())
    }

    /// Whether nobody but the one engine on this store can append while it is open. MAY be true only then: that engine need
    /// not look for records of others behind the end of its own.
    fn is_exclusive(&self) -> bool {
        false
    }
}

/// A record to append, and what follows from it.
#[derive(Debug, Clone, PartialEq)]
pub struct Append {
    /// Whose record.
    pub execution: ExecutionId,
    /// The version it was decided on.
    pub expected: Version,
    /// The sealed record.
    pub bytes: Vec<u8>,
    /// How safe it must be before the answer.
    pub durability: Durability,
    /// How lists show the execution from here on.
    pub row: Option<IndexRow>,
    /// A job to put into the queue.
    pub enqueue: Option<Job>,
    /// Take its waiting jobs out of the queue.
    pub drop_job: bool,
    /// The execution has ended with it. A store whose queue stands beside the log MAY remove all its jobs in the same step, also
    /// those in hand: whoever acknowledges one later does no harm.
    pub is_end: bool,
    /// A dead letter to keep.
    pub dead_letter: Option<DeadLetterRecord>,
}

impl Append {
    /// A record without consequences.
    pub fn new(execution: ExecutionId, expected: Version, bytes: Vec<u8>) -> Self {
        Self {
            execution,
            expected,
            bytes,
            durability: Durability::Full,
            row: None,
            enqueue: None,
            drop_job: false,
            is_end: false,
            dead_letter: None,
        }
    }
}

/// How safe a record must be before its append returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// It survives the loss of power: everything that was promised to a caller.
    Full,
    /// The same, but the append MAY return as soon as the record survives the loss of the process. Then it gives a [`Promise`], and
    /// nobody outside may be told of the record before that is kept.
    Promised,
    /// It survives the loss of the process: a worker's own progress, which can be made again.
    Process,
}

/// What an append did.
#[derive(Debug, Default)]
pub struct Appended {
    /// The consequences, if the caller is to carry them out; the bytes of the record are not needed for that.
    pub left: Option<Box<Append>>,
    /// When the record will survive the loss of power, if it does not yet.
    pub promise: Option<Promise>,
}

/// That a record will survive the loss of power.
pub struct Promise(Pin<Box<dyn Future<Output = Result<(), StoreError>> + Send + Sync>>);

impl Promise {
    /// What is kept when a future is there. An error means that nobody knows; it MUST be one after which the store takes no more.
    pub fn new(kept: impl Future<Output = Result<(), StoreError>> + Send + Sync + 'static) -> Self {
        Self(Box::pin(kept))
    }

    /// Waits until it is kept.
    pub async fn kept(self) -> Result<(), StoreError> {
        self.0.await
    }
}

impl std::fmt::Debug for Promise {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Promise")
    }
}

/// Executions that have a log and that nobody sees.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unshown {
    /// Which, in the order in which they began.
    pub executions: Vec<ExecutionId>,
    /// How far the look went; nowhere if nothing is new.
    pub until: Option<LogPlace>,
}

/// A place in the order in which the store has taken all records. Only the store that gave it knows what it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogPlace(pub u64);

/// A record as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRecord {
    /// Its number.
    pub version: Version,
    /// Its bytes.
    pub bytes: Vec<u8>,
}
