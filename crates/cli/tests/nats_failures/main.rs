//! What breaks in a distributed system, broken on purpose: real gateways, workers and nats-servers are killed, stopped and cut off,
//! and afterwards the log, the queue and a ledger that the tasks themselves have written are held against each other.
//!
//! `SEED=n` repeats a run; `SOAK=1` makes the long form of each test (`make soak`).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and measures its own patience"
)]

#[path = "../support/mod.rs"]
mod support;

mod away;
mod cancel;
mod cluster;
mod ground;
mod kills;
mod lease;
mod ledger;
mod load;
mod queue;
mod reads;
mod verdict;
mod wire;
mod zombie;
