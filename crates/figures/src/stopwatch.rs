//! How long something took. Nothing is ever decided by it, so it is no input like the time.

use std::time::Instant;

/// Runs from when it is made.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// From now on.
    pub fn start() -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "a duration for the operator, on which nothing depends"
        )]
        Self(Instant::now())
    }

    /// So long until now.
    pub fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}
