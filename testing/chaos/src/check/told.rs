//! Rules about what clients were told.

use std::collections::{BTreeMap, HashMap};

use super::{Evidence, Violation};
use crate::history::Said;

/// R1: what was accepted is there, and is what was accepted.
pub(crate) fn accepted(evidence: &Evidence) -> Vec<Violation> {
    let mut violations = Vec::new();
    for line in &evidence.history {
        let Said::Accepted { label, run } = &line.said else { continue };
        match evidence.runs.get(run) {
            None => violations
                .push(Violation::new("R1", format!("{run} ({label}) was accepted and is not there"))),
            Some(found) if found.shown.is_none() => {
                violations
                    .push(Violation::new("R1", format!("{run} ({label}) was accepted and is not shown")));
            }
            Some(found) if found.label.as_deref().is_some_and(|found| found != label) => {
                let what = format!("{run} was accepted as {label} and is {:?}", found.label);
                violations.push(Violation::new("R1", what));
            }
            Some(_) => {}
        }
    }
    violations
}

/// R3: the same key has the same answer, and one run.
pub(crate) fn keys(evidence: &Evidence) -> Vec<Violation> {
    let mut keyed: HashMap<u64, (&str, bool)> = HashMap::new();
    let mut answered: BTreeMap<&str, &str> = BTreeMap::new();
    let mut violations = Vec::new();
    for line in &evidence.history {
        match &line.said {
            Said::Submits { label, key } => drop(keyed.insert(line.operation, (label, key.is_some()))),
            Said::Accepted { label, run } if keyed.get(&line.operation).is_some_and(|(_, keyed)| *keyed) => {
                let first = *answered.entry(label).or_insert(run);
                if first != run {
                    let what = format!("the key of {label} was answered with {first} and with {run}");
                    violations.push(Violation::new("R3", what));
                }
            }
            // The same input under the same key is no other input.
            Said::Refused { status: 409 } if keyed.contains_key(&line.operation) => {
                let (label, _) = keyed[&line.operation];
                violations.push(Violation::new("R3", format!("the key of {label} was refused as another's")));
            }
            _ => {}
        }
    }
    let mut labels: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (id, run) in &evidence.runs {
        if let Some(label) = run.label.as_deref().filter(|label| answered.contains_key(label)) {
            labels.entry(label).or_default().push(id);
        }
    }
    for (label, runs) in labels.into_iter().filter(|(_, runs)| runs.len() > 1) {
        violations.push(Violation::new("R3", format!("the key of {label} has made {runs:?}")));
    }
    violations
}

/// R2: a cancel that was answered is taken: the run is canceled, or had ended before.
pub(crate) fn cancels(evidence: &Evidence) -> Vec<Violation> {
    let mut violations = Vec::new();
    for line in &evidence.history {
        let Said::Canceling { run, status } = &line.said else { continue };
        let end = evidence.runs.get(run).and_then(super::Run::end).map(super::End::status);
        let is_kept = match status.as_str() {
            "CANCELLING" => end == Some("CANCELLED"),
            "CANCELLED" | "COMPLETED" | "FAILED" => end == Some(status),
            _ => false,
        };
        // One that is not there at all is R1's affair, one that cannot be read is R5's.
        if !is_kept && evidence.runs.get(run).is_some_and(|run| !run.log.is_empty()) {
            let what = format!("the cancel of {run} was answered with {status}, and it ended {end:?}");
            violations.push(Violation::new("R2", what));
        }
    }
    violations
}

/// R10: nobody is shown less than anybody was shown before they asked, and what was accepted is found.
pub(crate) fn reads(evidence: &Evidence) -> Vec<Violation> {
    // The newest version that anybody had seen so far; an accepted run has its first record.
    let mut newest: HashMap<&str, u64> = HashMap::new();
    let mut asked: HashMap<u64, u64> = HashMap::new();
    let mut violations = Vec::new();
    for line in &evidence.history {
        match &line.said {
            Said::Accepted { run, .. } => {
                newest.entry(run).or_insert(1);
            }
            Said::Reads { run } => {
                asked.insert(line.operation, newest.get(run.as_str()).copied().unwrap_or(0));
            }
            Said::Sees { run, version, .. } => {
                let known = asked.get(&line.operation).copied().unwrap_or(0);
                if *version < known {
                    let what = format!("{run} was at {known} and is shown at {version}");
                    violations.push(Violation::new("R10", what));
                }
                let newest = newest.entry(run).or_insert(*version);
                *newest = (*newest).max(*version);
            }
            Said::Misses { run } if asked.get(&line.operation).is_some_and(|known| *known > 0) => {
                violations.push(Violation::new("R10", format!("{run} was known and is not found")));
            }
            _ => {}
        }
    }
    violations
}

/// R21: whoever follows is told every event once, in order; and the end comes after the last of them.
pub(crate) fn streams(evidence: &Evidence) -> Vec<Violation> {
    let mut told: HashMap<u64, u64> = HashMap::new();
    let mut violations = Vec::new();
    for line in &evidence.history {
        match &line.said {
            Said::Follows { after, .. } => drop(told.insert(line.operation, *after)),
            Said::Hears { run, seq } => {
                let before = told.insert(line.operation, *seq).unwrap_or(0);
                if *seq != before + 1 {
                    violations
                        .push(Violation::new("R21", format!("{run}: event {seq} was told after {before}")));
                }
            }
            Said::HearsTheEnd { run } => {
                let last = evidence.runs.get(run).and_then(|run| ending(&run.log));
                let seen = told.get(&line.operation).copied();
                if last.is_some() && seen != last {
                    violations.push(Violation::new(
                        "R21",
                        format!("{run}: the end was told after {seen:?}, not {last:?}"),
                    ));
                }
            }
            _ => {}
        }
    }
    violations
}

/// The number of the event that ended it.
fn ending(log: &[super::Record]) -> Option<u64> {
    let events = log.iter().flat_map(|record| (record.first_event..).zip(&record.events));
    events.filter(|(_, event)| matches!(event, super::Happened::Ended(_))).map(|(number, _)| number).last()
}

/// R18: a wheel whose upload was answered is there, and is what was uploaded.
pub(crate) fn wheels(evidence: &Evidence) -> Vec<Violation> {
    let mut violations = Vec::new();
    for line in &evidence.history {
        if let Said::Uploaded { wheel, sha256 } = &line.said
            && evidence.wheels.get(wheel) != Some(sha256)
        {
            let found = evidence.wheels.get(wheel);
            let what = format!("{wheel} was uploaded as {sha256} and is {found:?}");
            violations.push(Violation::new("R18", what));
        }
    }
    violations
}
