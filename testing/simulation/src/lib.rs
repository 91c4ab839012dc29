//! A whole deployment in one thread, in bad weather, repeatable from a seed.
//!
//! Two gateways and two workers, with the engine and the worker that are shipped, share one store in memory. Between each process
//! and the store stands a `link` on which requests are late, lost, done without an answer, or done after the caller gave up.
//! Processes die at any point and come back, leases and jobs are lost, clocks jump. Time is virtual, so an hour takes no time.
//!
//! - `run` is one seed from beginning to end: storm, healing, quiet, and what is checked then
//! - `scenario` is what a seed stands for; `weather` is what becomes of one request
//! - `world` is what all processes share, `shown` what a shared store shows of executions; `link` (and `undisturbed`) is how one of them reaches it
//! - `witness` sees every record at the moment it is stored and every task at the moment it begins
//! - `tasks` are the flows and what their tasks do; `process` starts and ends gateways and workers; `client` is who asks
//!
//! Not here: what can be enumerated (`testing/model`), and processes that are really killed.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test stops at the first surprise"
)]

mod client;
mod link;
mod process;
mod run;
mod scenario;
mod shown;
mod tasks;
mod trace;
mod undisturbed;
mod weather;
mod witness;
mod world;

pub use run::{Verdict, run, run_with};
pub use weather::Lie;
pub use witness::Seen;
