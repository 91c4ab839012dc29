//! Who is there: the registry of workers. Advisory: a claim in the log, not a record here, says who holds an execution.

use async_trait::async_trait;
use pyoco_core::ids::WorkerId;
use pyoco_core::time::Timestamp;

use crate::StoreError;

/// Workers, as they last reported.
#[async_trait]
pub trait WorkerRegistry: Send + Sync {
    /// Writes a worker's report. The `hidden` mark of an earlier record MUST be kept. `[workers/report]`
    async fn report(&self, record: WorkerRecord) -> Result<(), StoreError>;

    /// One worker. `[workers/report]`
    async fn worker(&self, worker: &WorkerId) -> Result<Option<WorkerRecord>, StoreError>;

    /// All workers, the one seen last first. `[workers/list]`
    async fn workers(&self) -> Result<Vec<WorkerRecord>, StoreError>;

    /// Hides a worker or shows it again; `None` if there is none. `[workers/hide]`
    async fn hide(&self, worker: &WorkerId, hidden: bool) -> Result<Option<WorkerRecord>, StoreError>;
}

/// What a worker says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerRecord {
    /// Which.
    pub worker: WorkerId,
    /// When it was heard last.
    pub seen_at: Timestamp,
    /// Somebody does not want to see it.
    pub hidden: bool,
    /// The record in the contract's JSON form. A store MAY keep `hidden` in it, where other implementations look for it.
    pub body: Vec<u8>,
}
