//! A typed HTTP client of the gateway: submit runs, read them, watch them, cancel them; create executions, drive their nodes,
//! answer what waits, follow what happens; register graphs.
//!
//! Every call is bounded in time and size and fails with an [`Error`] that says what happened. A watch goes on after a broken
//! connection. Not here: what a run is, and how anything is shown to people.

mod answer;
mod command;
mod connection;
mod error;
mod executions;
mod follow;
mod graphs;
mod nodes;
mod runs;
mod sse;
mod transport;
mod wait;
mod waits;
mod watch;
mod workers;

pub use answer::Answer;
pub use command::CommandOptions;
pub use error::{Call, Error, StatusError};
pub use executions::ExecutionFilter;
pub use follow::{EventStream, FollowOptions};
pub use graphs::GraphFormat;
pub use pyoco_api as api;
pub use runs::{RunDelta, RunFilter};
pub use transport::{Builder, Client};
pub use wait::is_terminal;
pub use waits::WaitFilter;
pub use watch::{Watch, WatchOptions};
pub use workers::WorkerFilter;
