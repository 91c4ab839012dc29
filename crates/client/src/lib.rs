//! A typed HTTP client of the gateway: submit runs, read them, watch them, cancel them; create executions, drive their nodes,
//! answer what waits, follow what happens; register graphs; submit jobs, find them by their labels, follow their logs; upload wheels and
//! fetch them.
//!
//! Every call is bounded in time and size and fails with an [`Error`] that says what happened. A watch goes on after a broken
//! connection. Not here: what a run is, and how anything is shown to people.

mod answer;
mod audit;
mod bulk;
mod command;
mod connection;
mod error;
mod executions;
mod follow;
mod graphs;
mod health;
mod jobs;
mod logs;
mod nodes;
mod resume;
mod runs;
mod sse;
mod tags;
mod transport;
mod wait;
mod waits;
mod watch;
mod wheels;
mod workers;

pub use answer::Answer;
pub use audit::AuditFilter;
pub use command::CommandOptions;
pub use error::{Call, Error, StatusError};
pub use executions::ExecutionFilter;
pub use follow::{EventStream, FollowOptions};
pub use graphs::GraphFormat;
pub use jobs::JobFilter;
pub use logs::{LogFilter, LogOf, LogStream};
pub use pyoco_api as api;
pub use runs::{RunDelta, RunFilter};
pub use tags::TagFilter;
pub use transport::{Builder, Client};
pub use wait::is_terminal;
pub use waits::WaitFilter;
pub use watch::{Watch, WatchOptions};
pub use wheels::{WheelFile, WheelHistoryFilter};
pub use workers::WorkerFilter;
