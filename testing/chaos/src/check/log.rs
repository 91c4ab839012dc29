//! Rules about what is stored.

use std::collections::{HashMap, HashSet};

use super::{End, Evidence, Happened, Run, Violation};
use crate::flows::TASKS;
use crate::history::{Line, Said};

/// R5: records and events are numbered without a gap, the first says that it was made, and the auditor finds nothing.
pub(crate) fn in_order(id: &str, run: &Run) -> Vec<Violation> {
    let mut wrong = Vec::new();
    let mut event = 1;
    for (number, record) in (1..).zip(&run.log) {
        if record.seq != number {
            wrong.push(format!("record {} of {id} stands in the place of {number}", record.seq));
        }
        if record.first_event != event {
            wrong.push(format!(
                "record {number} of {id} begins with event {}, not {event}",
                record.first_event
            ));
        }
        event = record.first_event + record.events.len() as u64;
    }
    if run.events().next().is_some_and(|first| *first != Happened::Created) {
        wrong.push(format!("{id} does not begin with its creation"));
    }
    let mut violations: Vec<Violation> = wrong.into_iter().map(|what| Violation::new("R5", what)).collect();
    for finding in &run.findings {
        let rule = if finding.contains("Repaired") { "R9" } else { "R5" };
        let what = format!("the auditor says of {id}: {finding}; {}", run.story());
        violations.push(Violation::new(rule, what));
    }
    violations
}

/// R4 and R1: everything ends, once, and nothing happens afterwards.
pub(crate) fn ends_once(id: &str, run: &Run) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut has_ended = false;
    for event in run.events() {
        let is_end = matches!(event, Happened::Ended(_));
        // Only the mark that it was put away may follow.
        if has_ended && *event != Happened::Other {
            violations.push(Violation::new("R1", format!("{id} goes on after its end: {event:?}")));
        }
        has_ended |= is_end;
    }
    // What cannot be read is R5's affair.
    if !has_ended && !run.log.is_empty() {
        let shown = run.shown.as_deref().unwrap_or("nowhere to be seen");
        violations.push(Violation::new("R4", format!("{id} does not end; it is {shown}")));
    }
    violations
}

/// R2: once a cancel stands in the log, nothing else ends it.
pub(crate) fn cancel_wins(id: &str, run: &Run) -> Vec<Violation> {
    let mut is_requested = false;
    for event in run.events() {
        match event {
            Happened::CancelRequested => is_requested = true,
            Happened::Ended(end) if is_requested && *end != End::Canceled => {
                return vec![Violation::new("R2", format!("{id} was canceled and ended {end:?}"))];
            }
            Happened::Created
            | Happened::Started(_)
            | Happened::Succeeded(_)
            | Happened::Ended(_)
            | Happened::Other => {}
        }
    }
    Vec::new()
}

/// R6: claims rise, and nobody but the holder of a claim writes under it.
pub(crate) fn is_held_by_one(id: &str, run: &Run) -> Vec<Violation> {
    let mut violations = Vec::new();
    let (mut epoch, mut holder) = (0, None);
    for record in &run.log {
        if let Some((claimed, worker)) = &record.claim {
            if *claimed <= epoch {
                violations.push(Violation::new("R6", format!("{id}: claim {claimed} follows claim {epoch}")));
            }
            (epoch, holder) = (*claimed, Some(worker.clone()));
        }
        if record.epoch < epoch && record.worker.is_some() {
            let what =
                format!("{id}: record {} is of claim {}, behind claim {epoch}", record.seq, record.epoch);
            violations.push(Violation::new("R6", what));
        }
        if let (Some(writer), Some(holder)) = (&record.worker, &holder)
            && writer != holder
        {
            let what = format!("{id}: {writer} wrote record {} while {holder} held it", record.seq);
            violations.push(Violation::new("R6", what));
        }
    }
    violations
}

/// R9: what is shown and listed is what the log says. R11: what failed has a letter.
pub(crate) fn is_shown_as_it_is(id: &str, run: &Run) -> Vec<Violation> {
    let Some(end) = run.end() else { return Vec::new() };
    let mut violations = Vec::new();
    for (place, status) in [("shown", &run.shown), ("listed", &run.listed)] {
        if status.as_deref() != Some(end.status()) {
            violations.push(Violation::new("R9", format!("{id} ended {end:?} and is {place} as {status:?}")));
        }
    }
    if end == End::Failed && !run.has_letter {
        violations.push(Violation::new(
            "R11",
            format!("{id} failed, and no dead letter tells of it; {}", run.story()),
        ));
    }
    violations
}

/// R7: a body ran no more often than the log has attempts, never after its success was recorded, and not without leaving a trace.
pub(crate) fn bodies(evidence: &Evidence) -> Vec<Violation> {
    let mut made: HashMap<(&str, &str), Vec<i64>> = HashMap::new();
    for body in &evidence.ledger {
        made.entry((&body.label, &body.task)).or_default().push(body.at);
    }
    let mut violations = Vec::new();
    let mut wrong = |what: String| violations.push(Violation::new("R7", what));
    for (id, run) in &evidence.runs {
        let Some(label) = run.label.as_deref() else { continue };
        for task in TASKS {
            let times = made.remove(&(label, task)).unwrap_or_default();
            let (mut started, mut succeeded) = (0, None);
            for (record, event) in
                run.log.iter().flat_map(|record| record.events.iter().map(move |e| (record, e)))
            {
                match event {
                    Happened::Started(node) if node == task => started += 1,
                    Happened::Succeeded(node) if node == task => succeeded = Some(record.at),
                    Happened::Created
                    | Happened::CancelRequested
                    | Happened::Started(_)
                    | Happened::Succeeded(_)
                    | Happened::Ended(_)
                    | Happened::Other => {}
                }
            }
            if times.len() > started {
                wrong(format!("{id}: {task} ran {} times in {started} attempts", times.len()));
            }
            if let Some(succeeded) = succeeded {
                if times.is_empty() {
                    wrong(format!("{id}: {task} succeeded without having run"));
                }
                if !evidence.clock_jumped && times.iter().any(|at| *at > succeeded) {
                    wrong(format!("{id}: {task} ran again after its success was recorded"));
                }
            }
        }
    }
    let doubtful = doubtful(&evidence.history);
    for (label, task) in made.into_keys().filter(|(label, _)| !doubtful.contains(label)) {
        wrong(format!("{task} of {label} ran, and there is no such run"));
    }
    violations
}

/// The labels whose submission was not answered, or with a failure of the server: their runs may have been taken back.
fn doubtful(history: &[Line]) -> HashSet<&str> {
    let mut asked: HashMap<u64, &str> = HashMap::new();
    let mut doubtful = HashSet::new();
    for line in history {
        match &line.said {
            Said::Submits { label, .. } => drop(asked.insert(line.operation, label)),
            Said::Unknown { .. } | Said::Refused { status: 500.. } => {
                doubtful.extend(asked.get(&line.operation))
            }
            _ => {}
        }
    }
    doubtful
}
