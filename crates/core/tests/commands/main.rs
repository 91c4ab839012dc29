//! Every command: what it does, when it is refused, its repeat, and after a cancel.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    clippy::needless_pass_by_value,
    reason = "a test stops at the first surprise"
)]

mod executions;
mod idempotency;
mod joins;
mod limits;
mod loops;
mod nodes;
mod sweeper;
mod workers;
