//! All places and all mistakes, by name. A test walks these tables, so a place that is not in them is never tried, and one that is in
//! them and that nobody comes to fails the test.

/// What happens at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// The process ends without a word.
    Crash,
    /// The store is not available: what was asked is not done.
    Error,
    /// The store does not answer in time: it may be done or not.
    Ambiguous,
}

impl Outcome {
    /// As the environment names it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Crash => "crash",
            Self::Error => "error",
            Self::Ambiguous => "ambiguous",
        }
    }
}

/// A place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// Its name: what is written, and where in that.
    pub name: &'static str,
    /// What may truly happen there. An error says that nothing was done, so it is not said behind a write.
    pub outcomes: &'static [Outcome],
    /// Whether the embedded store comes there.
    pub embedded: bool,
    /// Whether the distributed one does.
    pub distributed: bool,
}

const CRASH: &[Outcome] = &[Outcome::Crash];
const BEFORE: &[Outcome] = &[Outcome::Crash, Outcome::Error, Outcome::Ambiguous];
const AFTER: &[Outcome] = &[Outcome::Crash, Outcome::Ambiguous];
const LOST: &[Outcome] = &[Outcome::Crash, Outcome::Error];

const fn both(name: &'static str, outcomes: &'static [Outcome]) -> Point {
    Point { name, outcomes, embedded: true, distributed: true }
}

const fn embedded(name: &'static str, outcomes: &'static [Outcome]) -> Point {
    Point { name, outcomes, embedded: true, distributed: false }
}

/// What follows from a record is a step of its own only there.
const fn distributed(name: &'static str, outcomes: &'static [Outcome]) -> Point {
    Point { name, outcomes, embedded: false, distributed: true }
}

/// Every place.
pub const POINTS: &[Point] = &[
    both("start.before_append", BEFORE),
    both("start.after_append", AFTER),
    both("claim.before_append", BEFORE),
    both("claim.after_append", AFTER),
    both("step.before_append", BEFORE),
    both("step.after_append", AFTER),
    both("cancel.before_append", BEFORE),
    both("cancel.after_append", AFTER),
    both("finish.before_append", BEFORE),
    both("finish.after_append", AFTER),
    distributed("start.after_snapshot", BEFORE),
    distributed("step.after_snapshot", BEFORE),
    distributed("finish.after_snapshot", BEFORE),
    distributed("start.after_publish", BEFORE),
    distributed("dlq.before_publish", BEFORE),
    distributed("dlq.after_publish", BEFORE),
    both("start.before_reply", CRASH),
    both("finish.before_ack", LOST),
    both("finish.after_ack", CRASH),
    distributed("sweep.before_publish", BEFORE),
    distributed("sweep.after_publish", BEFORE),
    both("upload.mid_chunk", BEFORE),
    both("upload.after_object", BEFORE),
    both("upload.after_record", AFTER),
    embedded("sqlite.before_commit", CRASH),
    embedded("sqlite.after_commit", CRASH),
    embedded("sqlite.before_checkpoint", CRASH),
];

/// Every mistake, and what it breaks.
pub const MISTAKES: &[(&str, &str)] = &[
    ("append-anywhere", "a record is appended behind whatever is there"),
    ("resend-on-conflict", "after a conflict the same record is sent again, instead of being decided again"),
    ("ack-before-end", "a job is answered when its run is claimed, not when it has ended"),
    ("epoch-unchecked", "a worker that was superseded writes under its successor's claim"),
    ("keys-forgotten", "a key is remembered for as long as the process lives"),
    ("decide-stale", "an execution is looked at as this process remembers it"),
    ("cancel-dropped", "a cancel is answered and not recorded"),
    ("commit-dropped", "a transaction is answered and rolled back"),
    ("rerun-completed", "who takes over runs again what has succeeded"),
    ("record-flipped", "a bit of a record changes on its way to the disk"),
    ("row-not-written", "the end of a run is not shown in lists"),
    ("event-skipped", "a stream of events leaves one out"),
];
