//! The gateway from outside: real sockets, real clients, real stores.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and measures how long an answer took"
)]

mod access;
mod connection;
mod edges;
mod explain;
mod page;
mod reads;
mod submit;
mod submit_yaml;
mod support;
mod watch;
mod wheels;
mod workers;
