//! The contract of `/executions`, `/graphs` and `/waits`, over real sockets and on every store.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod accepting;
mod access;
mod approval;
mod bulk;
mod cancel;
mod graphs;
mod guards;
mod history;
mod inputs;
mod joins;
mod lists;
mod retry;
mod runs;
