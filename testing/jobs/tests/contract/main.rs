//! The contract of `/jobs`, `/tags` and logs, over real sockets and on every store.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod access;
mod delete;
mod frames;
mod lists;
mod pages;
mod sockets;
mod streams;
mod submit;
mod tags;
mod text;
