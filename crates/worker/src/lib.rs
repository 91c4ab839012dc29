//! A worker: takes jobs by tag, claims executions, drives their plans and runs their tasks.
//!
//! What may happen next is decided by the core; here is only who does it: the run loop, the lease of a job, the stopping
//! of tasks, and the rule that a worker which lost its claim touches nothing any more. How a task is run is a `Runtime`;
//! where a flow's plan comes from is a `Flows`.
//!
//! Where several things may be ready they are looked at in a fixed order (`biased`), and each of them is looked at again before
//! anything is waited for: a history that was seen once can be repeated.

/// Says a notice of the contract in the log, with what is known beside it. Never the parameters.
macro_rules! notice {
    ($level:ident, $notice:expr, $($fields:tt)*) => {
        tracing::$level!(err_id = $notice.err_id(), msg_id = $notice.msg_id(), $($fields)*, "{}", $notice.text())
    };
}

mod attempt;
mod drive;
pub mod flows;
mod functions;
mod handle;
mod local;
mod message;
pub mod process;
pub mod python;
mod registry;
mod room;
mod runtime;
mod wheels;
mod worker;

pub use functions::{Functions, InvalidFlow, RustFlow, RustTask};
pub use local::LocalRuntime;
pub use message::{InvalidJob, JobMessage};
pub use runtime::{Call, End, Flows, LoadError, Runtime, Stop, Urgency};
pub use wheels::{WheelFolder, WheelOptions};
pub use worker::{Options, Worker};
