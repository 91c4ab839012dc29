//! Every command of PyPI's `pyoco-client` that our endpoints serve, against our server: what it prints and how it ends.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

mod cancel;
mod list;
mod refused;
mod submit;
mod watch;
mod workers;

use std::collections::BTreeSet;

use serde_json::Value;

/// The names of an object's members.
fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}
