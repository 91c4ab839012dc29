//! Places where a test makes the product fail, and mistakes that a test plants, to see that somebody notices.
//!
//! Without the feature `inject`, which only `testing/chaos` asks for, all of this is empty and the compiler leaves nothing of it:
//! a place never fails, no mistake is planted, the clock is right. With it, the environment says what happens:
//!
//! - `PYOCO_FAULTS=finish.before_ack:crash,step.after_append:ambiguous:3`: the process ends at the first time it comes to that place;
//!   at the third time the store says that it did not answer in time.
//! - `PYOCO_FAULTS_SEEN=<file>`: a line for each that came true.
//! - `PYOCO_PLANT=commit-dropped`: the product makes this mistake.
//! - `PYOCO_FAULT_CLOCK=<file>`: by how many microseconds the clock is wrong, looked up each time.
//!
//! Not here: what is made of it. The places are where the product writes; the checks are in `testing/chaos`.

#[cfg(feature = "inject")]
mod inject;
mod points;

#[cfg(feature = "inject")]
pub use inject::{at, clock_offset, is_planted};
pub use points::{MISTAKES, Outcome, POINTS, Point};

#[cfg(not(feature = "inject"))]
mod nothing {
    use pyoco_ports::StoreError;

    /// A place where a test may make `operation` fail.
    #[inline(always)]
    pub const fn at(_point: &'static str, _operation: &'static str) -> Result<(), StoreError> {
        Ok(())
    }

    /// Whether the product is to make a mistake.
    #[inline(always)]
    pub const fn is_planted(_mistake: &'static str) -> bool {
        false
    }

    /// By how many microseconds the clock is wrong.
    #[inline(always)]
    pub const fn clock_offset() -> i64 {
        0
    }
}

#[cfg(not(feature = "inject"))]
pub use nothing::{at, clock_offset, is_planted};
