//! Real processes in bad weather, and whether they kept what they promised.
//!
//! `storm` is one trial: `fleet` starts servers, workers and, if asked, nats-servers on a `site`; `load` drives them over HTTP and
//! writes every intent and every answer to the `history`, a file of its own; `nemesis` kills, stops, cuts off and fills up, by a seed.
//! Then all is mended, `look` waits until it is quiet and gathers what is there, and `check` holds that against the history and
//! against the ledger that the tasks themselves kept (`flows`). `scenes` are small, exact stages for planted mistakes.
//!
//! Not here: the places to fail at (`crates/faults`), simulated stores (`testing/simulation`), and the model (`testing/model`).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::wildcard_enum_match_arm,
    reason = "a test stops at the first surprise, and measures its own patience"
)]

pub mod check;
pub mod disk;
pub mod fleet;
pub mod flows;
pub mod history;
pub mod link;
pub mod load;
pub mod look;
pub mod nemesis;
pub mod scenes;
pub mod site;
pub mod storm;
pub mod summary;
pub mod walk;

use std::time::Duration;

/// How long anything may take before it counts as stuck.
pub const PATIENCE: Duration = Duration::from_secs(60);
