//! Which files are sound wheels. Every test begins with a wheel that is sound but for the one thing it is about.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

mod content;
mod descriptions;
mod entries;
mod flips;
mod raw;
mod sound;
mod structure;
