//! Who may do what, tried at every door and on every store.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod audit;
mod authors;
mod lists;
mod taken_back;
mod walk;
