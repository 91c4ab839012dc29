//! A whole deployment around one execution, small enough to look at every interleaving.
//!
//! Two gateways, two workers and a sweeper share a log (append with an expected version), a work queue
//! (at least once, acknowledgements not fenced) and a snapshot bucket. What they decide, they decide with the
//! production `decide` and `apply`; what is modelled is only who acts when, and what can go wrong: crashes, a
//! worker that is paused past its lease, an append that was applied but timed out, an append refused because
//! of a neighbour in flight, a lost job.
//!
//! `Fault` plants one of ten mistakes that such systems are known for; the properties must find each.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::wildcard_enum_match_arm,
    reason = "a model is test code: an impossible step should stop it"
)]

mod gateway;
mod log;
mod queue;
mod sweeper;
mod system;
mod worker;

pub use system::{Action, Bounds, Deployment, Fault, Reply, System};
