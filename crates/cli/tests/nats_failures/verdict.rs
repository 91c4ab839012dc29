//! What must hold when everything is quiet again: the log, the snapshots and the ledger tell the same story.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use pyoco_core::event::{Event, EventType};
use pyoco_core::record::{Annotation, Record};
use serde_json::Value;

use crate::ground::Ground;
use crate::ledger::Line;
use crate::load::Accepted;
use crate::support::PATIENCE;
use crate::wire::{Log, Wire};

/// How executions ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Accepted, and completed.
    pub(crate) accepted: usize,
    /// Never answered, and completed all the same.
    pub(crate) unanswered: usize,
    /// Refused, and taken back.
    pub(crate) taken_back: usize,
    /// Never answered, and without a trace for anybody: a record that nobody was told of.
    pub(crate) unseen: usize,
    /// Attempts that were lost with their process and made again.
    pub(crate) lost_attempts: usize,
}

/// How an execution ended; `None` if it has not. A second end, or anything else after it, is a failure.
pub(crate) fn end(execution: &str, records: &[Record]) -> Option<EventType> {
    const ENDS: [EventType; 3] =
        [EventType::ExecutionCompleted, EventType::ExecutionFailed, EventType::ExecutionCanceled];
    let mut ends: Vec<EventType> = Vec::new();
    for envelope in records.iter().flat_map(|record| &record.events) {
        assert!(ends.is_empty(), "{execution} goes on after its end: {envelope:?}");
        ends.extend(ENDS.iter().find(|end| **end == envelope.event.event_type()));
    }
    ends.pop()
}

/// Waits until every execution that anybody can see has ended; as long as it takes, if only there is progress.
pub(crate) async fn settled(wire: &Wire) -> (Log, BTreeMap<String, Value>) {
    let is_over =
        |snapshot: &Value| matches!(snapshot["status"].as_str(), Some("COMPLETED" | "FAILED" | "CANCELLED"));
    let (mut left, mut since) = (usize::MAX, Instant::now());
    loop {
        let snapshots = wire.snapshots().await;
        let open: Vec<_> = snapshots.iter().filter(|(_, snapshot)| !is_over(snapshot)).collect();
        if open.is_empty() {
            return (wire.log().await, snapshots);
        }
        if open.len() < left {
            (left, since) = (open.len(), Instant::now());
        }
        if since.elapsed() > PATIENCE {
            let (execution, snapshot) = open[0];
            let (records, consumers) = (wire.records(execution).await, wire.consumers("PYOCO_WORK").await);
            panic!("{left} runs do not end, e.g. {snapshot:#}\n{records:#?}\n{consumers:#?}");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Judges everything that stands in NATS once it has settled.
pub(crate) async fn judge(wire: &Wire, accepted: &[Accepted], ground: &Ground) -> Verdict {
    let (log, snapshots) = settled(wire).await;
    let ledger = ground.ledger();
    let mut begun: HashMap<&str, Vec<&Line>> = HashMap::new();
    for line in ledger.iter().filter(|line| line.word == "begins") {
        begun.entry(&line.id).or_default().push(line);
    }
    let owed: HashMap<&str, &str> =
        accepted.iter().map(|accepted| (accepted.run.as_str(), accepted.id.as_str())).collect();
    assert_eq!(owed.len(), accepted.len(), "each run was accepted once");
    let mut verdict = Verdict::default();
    for run in owed.keys() {
        assert!(log.contains_key(*run), "{run} was accepted and is lost");
        assert_eq!(snapshots[*run]["status"], "COMPLETED", "{run} as everybody sees it");
    }
    for (execution, records) in &log {
        is_in_order(execution, records);
        let is_hidden = records.iter().any(|record| record.annotations.contains(&Annotation::Hidden(true)));
        match (end(execution, records), owed.get(execution.as_str())) {
            (Some(EventType::ExecutionCompleted), Some(_)) => verdict.accepted += 1,
            (end, Some(_)) => panic!("{execution} was accepted, and its end is {end:?}"),
            (Some(EventType::ExecutionCompleted), None) => verdict.unanswered += 1,
            (Some(EventType::ExecutionCanceled), None) if is_hidden => verdict.taken_back += 1,
            (None, None) if !snapshots.contains_key(execution) && records.len() == 1 => verdict.unseen += 1,
            (end, None) => panic!("{execution} was not accepted, and its end is {end:?}: {records:#?}"),
        }
        if let Some(id) = id(records) {
            let begun = begun.get(id.as_str()).map(Vec::as_slice).unwrap_or_default();
            verdict.lost_attempts += bodies(execution, records, begun);
        }
    }
    verdict
}

/// What the ledger calls an execution. What stands in the place of one that was not accepted has no parameters.
fn id(records: &[Record]) -> Option<String> {
    let mut events = records.iter().flat_map(|record| &record.events);
    events.find_map(|envelope| {
        let Event::ExecutionCreated(created) = &envelope.event else { return None };
        let created = serde_json::to_value(created).unwrap();
        created["input"]["id"].as_str().map(str::to_owned)
    })
}

/// Records are numbered without a gap, and no holder writes after its successor has begun.
fn is_in_order(execution: &str, records: &[Record]) {
    let mut epoch = 0;
    for (number, record) in (1..).zip(records) {
        assert_eq!(record.seq.0, number, "{execution} has a gap");
        assert!(record.epoch.0 >= epoch, "{execution}: {} writes after {epoch} has begun", record.epoch.0);
        epoch = record.epoch.0.max(record.claim.as_ref().map_or(0, |claim| claim.epoch.0));
    }
}

/// Holds what the tasks wrote against the log: each body that ran is an attempt that the log knows, and none began after the
/// log had its success. Gives the attempts that came to nothing.
fn bodies(execution: &str, records: &[Record], begun: &[&Line]) -> usize {
    let (mut started, mut succeeded): (HashMap<&str, usize>, HashMap<&str, i64>) = Default::default();
    for record in records {
        for envelope in &record.events {
            if let Event::NodeStarted(event) = &envelope.event {
                *started.entry(event.node_id.as_str()).or_default() += 1;
            }
            if let Event::NodeSucceeded(event) = &envelope.event {
                let before = succeeded.insert(event.node_id.as_str(), record.at.as_micros());
                assert_eq!(before, None, "{execution}: {} succeeded twice", event.node_id);
            }
        }
    }
    for task in begun.iter().map(|line| line.task.as_str()) {
        assert!(started.contains_key(task), "{execution}: {task} ran, and the log knows nothing of it");
    }
    let mut lost = 0;
    for (task, attempts) in started.iter().filter(|(task, _)| TASKS.contains(task)) {
        let made: Vec<i64> = begun.iter().filter(|line| line.task == *task).map(|line| line.at).collect();
        assert!(
            made.len() <= *attempts,
            "{execution}: {task} ran {} times in {attempts} attempts",
            made.len()
        );
        if let Some(succeeded) = succeeded.get(task) {
            assert!(!made.is_empty(), "{execution}: {task} succeeded without having run");
            let late = made.iter().filter(|at| *at > succeeded).count();
            assert_eq!(late, 0, "{execution}: {task} ran again after it had succeeded");
            lost += attempts - 1;
        }
    }
    lost
}

/// The nodes that are tasks; forks and joins have no body.
const TASKS: [&str; 6] = ["first", "left", "right", "last", "slow", "after"];
