//! What a request costs, counted instead of timed: memory taken, system calls, bytes written, commits. Counts are the same on a busy
//! machine as on an idle one, so they can be checked at every change.
//!
//! - `counts` reads the counters of this process and tells what was added between two looks
//! - `budget` compares what was counted with what is allowed, and says what to do
//! - `site` is the real product in this process: the embedded store in a folder, engine, router, and a worker of Rust functions
//!
//! The requests and their budgets are in `tests/budgets`. How long things take is the bench's to say, not this crate's. What SQLite
//! takes with its own allocator, or does with pages that it has in memory, is not seen.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod budget;
mod counts;
mod site;

pub use budget::{Budget, Excess};
pub use counts::{Counts, least};
pub use site::{Site, Stream};
