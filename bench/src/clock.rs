//! The clocks of the bench, the only place that reads them.
#![allow(clippy::disallowed_methods, reason = "a bench measures time")]

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// For durations.
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Unix seconds, as the snapshots of a run carry them. All processes of a bench share the machine and so this clock.
pub(crate) fn unix() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}
