//! Every decoder of bytes from outside, given damaged bytes: whatever comes, it is read or refused, and nothing else happens.
//!
//! - `targets` is the registry: each decoder with what has to hold for it, and the folder of its samples in `corpus`
//! - `damage` makes new inputs of samples: flips, cuts, repeats and joins them, and puts in words that mean something somewhere
//! - `exercise` tries inputs, watches the memory, and writes one that fails to a file from which one command repeats it
//!
//! The same registry serves a few seconds in `make test` and as many minutes as wanted in `make fuzz`. A target is a function of bytes,
//! so that another fuzzer can call it as well. Not here: hostile inputs that somebody has thought of; those stand beside each decoder.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test stops at the first surprise"
)]

mod damage;
mod exercise;
mod targets;

pub use exercise::{Failure, Outcome, exercise, repeat};
pub use targets::{TARGETS, Target, target};
