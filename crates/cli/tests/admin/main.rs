//! `pyoco-server-admin` and a server with API keys, on the embedded store: real processes, as an operator has them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and measures its own patience"
)]

mod desk;
mod door;
mod orders;
mod secrets;
mod socket;
#[path = "../support/mod.rs"]
mod support;
mod trail;
