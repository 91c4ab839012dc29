//! The work queue: a hint that brings executions to workers. Losing it costs time, never an execution.

use async_trait::async_trait;
use pyoco_core::ids::{ExecutionId, JobId, Tag, WorkerId};
use pyoco_core::time::{Millis, Timestamp};

use crate::StoreError;

/// Jobs, by tag.
#[async_trait]
pub trait WorkQueue: Send + Sync {
    /// Puts a job at the end of its tag's queue. MUST be delivered at least once, also after the process was lost.
    /// `[queue/deliver]` `[queue/reopen]`
    async fn enqueue(&self, job: Job, now: Timestamp) -> Result<(), StoreError>;

    /// Takes up to `most` jobs of any of the tags.
    ///
    /// - MUST give waiting jobs, the oldest of each tag first, and none of another tag. `[queue/tags]`
    /// - MUST NOT give a job again before its lease has run out. `[queue/lease]` A store that one process alone can open
    ///   MAY end all leases when it is opened: whoever held them is gone.
    /// - MUST give it again after that, with the same id and a higher delivery number. `[queue/redeliver]`
    /// - MUST give each waiting job to one taker only. `[queue/race]`
    async fn take(
        &self,
        tags: &[Tag],
        worker: &WorkerId,
        most: usize,
        lease: Millis,
        now: Timestamp,
    ) -> Result<Vec<Delivery>, StoreError>;

    /// Returns when there may be something to take, or when `patience` is over. MUST return soon after an enqueue of one
    /// of the tags. `[queue/wake]`
    async fn wait(&self, tags: &[Tag], patience: std::time::Duration) -> Result<(), StoreError>;

    /// Extends the lease of a job in hand; nothing happens if it was given back or delivered again since. `[queue/extend]`
    async fn extend(&self, delivery: &Delivery, lease: Millis, now: Timestamp) -> Result<(), StoreError>;

    /// The job is done: MUST NOT be delivered again. `[queue/ack]` An acknowledgement is not fenced: whoever sends one for a
    /// job removes it, so only the holder of the claim may. Nobody need wait for it: one that is lost with a connection means that the job
    /// comes again, and is found to be done.
    async fn ack(&self, delivery: &Delivery) -> Result<(), StoreError>;

    /// The job goes back: MUST be delivered again once `delay` is over, and not before. `[queue/nak]`
    async fn nak(&self, delivery: &Delivery, delay: Millis, now: Timestamp) -> Result<(), StoreError>;

    /// Nobody can use the job: MUST NOT be delivered again. `[queue/refuse]`
    async fn refuse(&self, delivery: &Delivery) -> Result<(), StoreError> {
        self.ack(delivery).await
    }

    /// Removes the waiting jobs of an execution that this store has put there; those in hand stay. `[queue/drop]` MAY leave
    /// those that another process has put there: whoever takes one finds that the execution does not want it.
    async fn drop_waiting(&self, execution: &ExecutionId) -> Result<(), StoreError>;

    /// How many jobs of a tag there are, waiting or in hand. `[queue/depth]`
    async fn depth(&self, tag: &Tag) -> Result<u64, StoreError>;

    /// How many of them nobody has in hand. MAY count more.
    async fn waiting(&self, tag: &Tag) -> Result<u64, StoreError> {
        self.depth(tag).await
    }

    /// The executions that have a job of a tag, waiting or in hand. `[queue/depth]` It may look at every one of them, so it is
    /// asked for when something is missing, not on the way of a request.
    async fn queued(&self, tag: &Tag) -> Result<Vec<ExecutionId>, StoreError> {
        let _ = tag;
        Ok(Vec::new())
    }
}

/// A message that an execution can be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Which.
    pub execution: ExecutionId,
    /// By which workers.
    pub tag: Tag,
    /// The message as other implementations read it.
    pub body: Vec<u8>,
}

/// A job in a worker's hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Names the message; the same at every delivery.
    pub id: JobId,
    /// By which tag it came.
    pub tag: Tag,
    /// How often it was delivered, this time included.
    pub number: u32,
    /// The message. Its execution is read from it: another implementation may have written it.
    pub body: Vec<u8>,
    /// What the store needs to settle it. Nobody else looks at it.
    pub receipt: String,
}
