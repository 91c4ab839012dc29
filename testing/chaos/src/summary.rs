//! What a trial came to, in a form to be pasted.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::check::{End, Evidence, Happened};
use crate::fleet::Fleet;
use crate::history::Said;
use crate::nemesis::Blow;
use crate::storm::Trial;

/// Counts of everything.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    again: String,
    notes: Vec<String>,
    lines: Vec<(String, String)>,
    /// The largest resident memory of any process of ours, in MiB, in the first half and in the second.
    memory: [u64; 2],
    /// How many runs were accepted.
    pub accepted: usize,
    /// How many requests nobody knows the outcome of.
    pub unknown: usize,
    /// How often something went wrong.
    pub blows: u64,
    /// How many runs ended so.
    pub completed: usize,
}

impl Summary {
    /// Of a trial that begins.
    pub fn new(trial: &Trial) -> Self {
        Self { again: trial.again(), ..Self::default() }
    }

    /// Something that a reader has to know; nothing is nothing.
    pub fn note(&mut self, note: &str) {
        self.notes.extend((!note.is_empty()).then(|| note.to_owned()));
    }

    /// Looks at how large the processes are, in the first half of the trial or in the second.
    pub fn weigh(&mut self, fleet: &Fleet, half: usize) {
        let resident = |(pid, _): (i32, String)| {
            let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.trim();
            line.trim_end_matches(" kB").parse::<u64>().ok().map(|kib| kib / 1024)
        };
        let ours = fleet.site.processes().into_iter().filter(|(_, line)| !line.contains("python"));
        let largest = ours.filter_map(resident).max().unwrap_or(0);
        self.memory[half] = self.memory[half].max(largest);
    }

    /// Counts.
    pub fn fill(
        &mut self,
        evidence: &Evidence,
        struck: &BTreeMap<Blow, u64>,
        quiet: Option<Duration>,
        took: Duration,
    ) {
        let said = |is: fn(&Said) -> bool| evidence.history.iter().filter(|line| is(&line.said)).count();
        self.accepted = said(|said| matches!(said, Said::Accepted { .. }));
        self.unknown = said(|said| matches!(said, Said::Unknown { .. } | Said::Refused { status: 500.. }));
        self.blows = struck.values().sum();
        let ended = |end| evidence.runs.values().filter(|run| run.end() == Some(end)).count();
        self.completed = ended(End::Completed);
        let events =
            || evidence.runs.values().flat_map(|run| run.log.iter().flat_map(|record| &record.events));
        let attempts = events().filter(|event| matches!(event, Happened::Started(_))).count();
        let succeeded = events().filter(|event| matches!(event, Happened::Succeeded(_))).count();
        let blows: Vec<String> =
            struck.iter().map(|(blow, count)| format!("{} {count}", blow.name())).collect();
        let records: usize = evidence.runs.values().map(|run| run.log.len()).sum();
        let [first, second] = self.memory;
        let lines = [
            ("took", format!("{:.0} s, quiet again after {quiet:.1?}", took.as_secs_f64())),
            ("blows", format!("{}: {}", self.blows, blows.join(", "))),
            ("submissions", said(|said| matches!(said, Said::Submits { .. })).to_string()),
            ("of them accepted", self.accepted.to_string()),
            ("requests whose outcome nobody knows", self.unknown.to_string()),
            ("requests refused", said(|said| matches!(said, Said::Refused { status: ..500 })).to_string()),
            ("cancels answered", said(|said| matches!(said, Said::Canceling { .. })).to_string()),
            ("waits answered", said(|said| matches!(said, Said::Resumed { .. })).to_string()),
            ("wheels uploaded", said(|said| matches!(said, Said::Uploaded { .. })).to_string()),
            ("reads", said(|said| matches!(said, Said::Sees { .. })).to_string()),
            ("events heard", said(|said| matches!(said, Said::Hears { .. })).to_string()),
            (
                "runs",
                format!(
                    "{} ({} completed, {} failed, {} canceled), {records} records",
                    evidence.runs.len(),
                    self.completed,
                    ended(End::Failed),
                    ended(End::Canceled)
                ),
            ),
            ("attempts", format!("{attempts}, {succeeded} succeeded, {} bodies ran", evidence.ledger.len())),
            ("largest process", format!("{first} MiB in the first half, {second} MiB in the second")),
        ];
        self.lines = lines.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.again)?;
        for (name, value) in &self.lines {
            writeln!(f, "  {name}: {value}")?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "  note: {note}"))
    }
}
