//! What the engine needs of a store: small roles that know no technology.
//!
//! The contract of each role stands on its trait in MUST and MAY; each MUST names the case of the conformance suite
//! (`testing/conformance`) that tests it, as `[role/case]`. An adapter that passes the suite is an adapter.
//!
//! One promise carries the product: append to one execution's log with an expected version (`EventLog::append`).
//! Everything else here is derived from the log, idempotent, and can be made again. Time is an input.

mod audit;
mod blobs;
mod dead_letters;
mod error;
mod graphs;
mod index;
mod jobs;
mod keys;
mod log;
mod peers;
mod queue;
mod retention;
mod task_logs;
mod wheels;
mod workers;

pub use audit::{AuditEntry, AuditFilter, AuditPage, AuditTrail, LOOKED_AT, TOGETHER};
pub use blobs::Blobs;
pub use dead_letters::{DeadLetterRecord, DeadLetters, LetterPage};
pub use error::{AppendError, ErrorKind, StoreError};
pub use graphs::{GraphFormat, GraphRecord, GraphSource, Graphs};
pub use index::{
    EndedFilter, EndedPlace, Filter, IndexRow, Page, Queue, RunIndex, Wait, WaitFilter, WaitPage, WaitPlace,
};
pub use jobs::{JobFilter, JobPage, JobPlace, LabelFilter, LabelPage};
pub use keys::{KeyRecords, StoredKey};
pub use log::{Append, Appended, Durability, EventLog, LogPlace, Promise, StoredRecord, Unshown};
pub use peers::{Heard, Listening, News, Peers};
pub use queue::{Delivery, Job, WorkQueue};
pub use retention::{Removal, Retention, Tombstone};
pub use task_logs::{HearingLines, LinePlace, LogEnd, LogLine, LogStream, LogTerms, TaskLogs, Written};
pub use wheels::{
    NewWheel, ShelfListening, WheelAction, WheelActor, WheelBytes, WheelEvent, WheelHistoryFilter,
    WheelRecord, WheelSource, Wheels,
};
pub use workers::{WorkerRecord, WorkerRegistry};

/// Everything that a deployment stores.
pub trait Store:
    EventLog
    + WorkQueue
    + RunIndex
    + Blobs
    + WorkerRegistry
    + DeadLetters
    + TaskLogs
    + Peers
    + Graphs
    + KeyRecords
    + AuditTrail
    + Retention
    + Wheels
{
}

impl<T> Store for T where
    T: EventLog
        + WorkQueue
        + RunIndex
        + Blobs
        + WorkerRegistry
        + DeadLetters
        + TaskLogs
        + Peers
        + Graphs
        + KeyRecords
        + AuditTrail
        + Retention
        + Wheels
{
}
