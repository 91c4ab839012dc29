//! A worker: takes jobs by tag, claims executions, drives their plans and runs their tasks.
//!
//! What may happen next is decided by the core; here is only who does it: the run loop, the lease of a job, the stopping
//! of tasks, and the rule that a worker which lost its claim touches nothing any more. How a task is run is a `Runtime`;
//! where a flow's plan comes from is a `Flows`.

mod attempt;
mod drive;
mod handle;
mod message;
mod runtime;
mod worker;

pub use message::{InvalidJob, JobMessage};
pub use runtime::{Call, End, Flows, LoadError, Runtime, Stop, Urgency};
pub use worker::{Options, Worker};
