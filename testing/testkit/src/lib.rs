//! What tests share: small plans, an execution that is driven step by step, given/when/then, and small wheels.
//!
//! Every accepted step is sealed into a record and the whole log is folded again, so each test that uses an
//! `Execution` also shows that the fold of the log equals the live state.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test stops at the first surprise"
)]

mod execution;
mod plans;
mod requests;
mod wheel;

pub use execution::{Execution, When};
pub use plans::{Graph, callable, external, wait};
pub use requests::*;
pub use wheel::{wheel, wheel_for};
