//! The rules: what was promised, held against what is there. Nothing here asks anybody; it can be tried on histories made by hand.
//!
//! `R1` and so on are the names under which `docs/proof.md` lists the rules.

mod log;
mod told;

use std::collections::BTreeMap;

use crate::flows::Body;
use crate::history::Line;

/// A rule that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// Which rule.
    pub rule: &'static str,
    /// What was seen.
    pub what: String,
}

impl Violation {
    pub(crate) fn new(rule: &'static str, what: String) -> Self {
        Self { rule, what }
    }
}

/// How an execution ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Well.
    Completed,
    /// Not well.
    Failed,
    /// Because somebody wanted it to.
    Canceled,
}

impl End {
    /// As a run is shown that has ended so.
    pub const fn status(self) -> &'static str {
        match self {
            Self::Completed => "COMPLETED",
            Self::Failed => "FAILED",
            Self::Canceled => "CANCELLED",
        }
    }
}

/// Something that happened, as far as the rules care.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happened {
    /// It was made.
    Created,
    /// Somebody wants its end.
    CancelRequested,
    /// An attempt of a node began.
    Started(String),
    /// A node succeeded.
    Succeeded(String),
    /// It ended.
    Ended(End),
    /// Something else.
    Other,
}

/// A record, as far as the rules care.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its number.
    pub seq: u64,
    /// The number of its first event, or of the next one.
    pub first_event: u64,
    /// The claim under which it was written.
    pub epoch: u64,
    /// The worker that wrote it, if one did.
    pub worker: Option<String>,
    /// Who holds the execution from here on.
    pub claim: Option<(u64, String)>,
    /// When, in microseconds since 1970.
    pub at: i64,
    /// What happened.
    pub events: Vec<Happened>,
}

/// An execution as it is when all is quiet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Run {
    /// The label among its parameters.
    pub label: Option<String>,
    /// How it is shown by itself; `None` if it is not.
    pub shown: Option<String>,
    /// How lists show it; `None` if they do not.
    pub listed: Option<String>,
    /// Its log, or why that cannot be read.
    pub log: Vec<Record>,
    /// What the auditor says.
    pub findings: Vec<String>,
    /// Whether a dead letter tells of it.
    pub has_letter: bool,
}

impl Run {
    pub(crate) fn events(&self) -> impl Iterator<Item = &Happened> {
        self.log.iter().flat_map(|record| &record.events)
    }

    /// Its log in a few words, for whoever has to find out what happened.
    pub(crate) fn story(&self) -> String {
        let record = |record: &Record| {
            let by = record.worker.as_deref().unwrap_or("-");
            format!("{} {by} at {} {:?}", record.seq, record.at, record.events)
        };
        let records: Vec<String> = self.log.iter().map(record).collect();
        format!("{:?} is {:?}, {:?} in lists: {}", self.label, self.shown, self.listed, records.join("; "))
    }

    /// How it ended, if it did.
    pub fn end(&self) -> Option<End> {
        self.events().find_map(|event| match event {
            Happened::Ended(end) => Some(*end),
            Happened::Created
            | Happened::CancelRequested
            | Happened::Started(_)
            | Happened::Succeeded(_)
            | Happened::Other => None,
        })
    }
}

/// Everything that is held against the rules.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// What was asked and answered.
    pub history: Vec<Line>,
    /// What is there.
    pub runs: BTreeMap<String, Run>,
    /// The wheels that are there, with what they hash to.
    pub wheels: BTreeMap<String, String>,
    /// The bodies that ran.
    pub ledger: Vec<Body>,
    /// The clock of the system was wrong for a while, so its times say nothing about the ledger's.
    pub clock_jumped: bool,
}

/// Everything that does not hold.
pub fn check(evidence: &Evidence) -> Vec<Violation> {
    let mut violations = Vec::new();
    violations.extend(told::accepted(evidence));
    violations.extend(told::keys(evidence));
    violations.extend(told::cancels(evidence));
    violations.extend(told::reads(evidence));
    violations.extend(told::streams(evidence));
    violations.extend(told::wheels(evidence));
    for (id, run) in &evidence.runs {
        violations.extend(log::in_order(id, run));
        violations.extend(log::ends_once(id, run));
        violations.extend(log::cancel_wins(id, run));
        violations.extend(log::is_held_by_one(id, run));
        violations.extend(log::is_shown_as_it_is(id, run));
    }
    violations.extend(log::bodies(evidence));
    violations
}
