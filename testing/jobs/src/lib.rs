//! Jobs from outside: what a program with an HTTP client, a browser with an EventSource or a WebSocket would see, on whichever store.
//! The gateways themselves are those of `pyoco-testing-executions`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod got;
mod log;
mod raw;
mod socket;

pub use got::{Got, ask, get};
pub use log::{end, made_up_token, submitted, submitted_with, write, write_as};
pub use raw::Raw;
pub use socket::Socket;
