//! How a run stands in its bucket: the contract's JSON, and in a member of its own what only our index wants.
//!
//! A snapshot that another implementation wrote has no such member. One that it has read, changed and written back (as its
//! gateway does to cancel) still has it, but the seal in it does not fit any more.

use bytes::Bytes;
use pyoco_core::digest::Digest;
use pyoco_core::ids::{ExecutionId, NodeId, Tag, Version};
use pyoco_core::time::Timestamp;
use pyoco_core::view::{RunStatus, RunSummary};
use pyoco_ports::{IndexRow, StoreError, Wait};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error;

/// The member of ours.
const MEMBER: &str = "index";
/// The member of the contract that holds the fingerprint of the submitted flow.
const WORKFLOW: &str = "workflow_yaml_sha256";

/// The members of the contract that say when, as seconds since 1970.
const STARTED: &str = "start_time";
const ENDED: &str = "end_time";
const CANCEL_REQUESTED: &str = "cancel_requested_at";

/// What was found in the bucket.
#[derive(Debug, Clone, PartialEq)]
pub enum Snapshot {
    /// Written by us.
    Ours(IndexRow),
    /// Written by us and changed by another implementation: the row that it was, and the snapshot that it is.
    Changed(IndexRow, Value),
    /// Written by another implementation.
    Foreign(Value),
}

/// What a row has that the contract's members do not say. Times are microseconds since 1970.
#[derive(Serialize, Deserialize)]
struct Member {
    version: Version,
    /// Where it is routed, also if the submitter did not say.
    tag: Option<Tag>,
    created_at: i64,
    updated_at: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    started_at: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ended_at: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cancel_requested_at: Option<i64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    hidden: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next_timer: Option<i64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    wants_job: bool,
    /// Nodes that wait for somebody, and since when.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    waits: Vec<(NodeId, i64)>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    has_waited: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    archived: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    foreign: bool,
    /// Of everything else in the snapshot.
    seal: String,
}

/// What begins our member, which is the last one of a snapshot. No text in it can hold this: its quotes would be escaped.
const BEGINS: &[u8] = b",\"index\":";

/// A snapshot with what its row needs.
pub fn with_row(snapshot: &[u8], row: &IndexRow) -> Result<Bytes, StoreError> {
    const OPERATION: &str = "write a snapshot";
    let open = snapshot.strip_suffix(b"}").filter(|open| open.len() > 1 && open.starts_with(b"{"));
    let open = open.ok_or_else(|| error::internal(OPERATION, "a snapshot is an object"))?;
    let member = Member {
        version: row.version,
        tag: row.summary.tag.clone(),
        created_at: row.created_at.as_micros(),
        updated_at: row.updated_at.as_micros(),
        started_at: row.started_at.map(Timestamp::as_micros),
        ended_at: row.ended_at.map(Timestamp::as_micros),
        cancel_requested_at: row.cancel_requested_at.map(Timestamp::as_micros),
        hidden: row.hidden,
        next_timer: row.next_timer.map(Timestamp::as_micros),
        wants_job: row.wants_job,
        waits: row.waits.iter().map(|wait| (wait.node.clone(), wait.since.as_micros())).collect(),
        has_waited: row.has_waited,
        archived: row.is_archived,
        foreign: row.is_foreign,
        seal: seal(open),
    };
    let mut text = Vec::with_capacity(open.len() + 256);
    text.extend_from_slice(open);
    text.extend_from_slice(BEGINS);
    serde_json::to_writer(&mut text, &member).map_err(|error| error::internal(OPERATION, error))?;
    text.push(b'}');
    Ok(text.into())
}

/// What a text of the bucket is, and of which run it says to be; `None` if it is no snapshot at all.
pub fn read(text: &[u8]) -> Option<(ExecutionId, Snapshot)> {
    if let Some(row) = untouched(text) {
        return Some((row.execution.clone(), Snapshot::Ours(row)));
    }
    let mut snapshot: Value = serde_json::from_slice(text).ok()?;
    let member = snapshot.as_object_mut()?.shift_remove(MEMBER);
    let execution = ExecutionId::new(snapshot.get("run_id")?.as_str()?).ok()?;
    let member = member.and_then(|member| serde_json::from_value(member).ok());
    let found = match member.and_then(|member| row(&execution, &snapshot, member)) {
        None => Snapshot::Foreign(snapshot),
        Some((row, true)) => Snapshot::Ours(row),
        Some((row, false)) => Snapshot::Changed(row, snapshot),
    };
    Some((execution, found))
}

/// The row of a snapshot that is to the letter as it was written; most are, and need not be taken apart.
fn untouched(text: &[u8]) -> Option<IndexRow> {
    #[derive(Deserialize)]
    struct Told {
        run_id: ExecutionId,
        workflow_yaml_sha256: Option<String>,
        start_time: Option<f64>,
        end_time: Option<f64>,
        cancel_requested_at: Option<f64>,
    }
    let (open, member) =
        text.split_at_checked(text.windows(BEGINS.len()).rposition(|begin| begin == BEGINS)?)?;
    let member: Member = serde_json::from_slice(member.strip_prefix(BEGINS)?.strip_suffix(b"}")?).ok()?;
    if member.seal != seal(open) {
        return None;
    }
    let (told, summary): (Told, RunSummary) =
        (serde_json::from_slice(text).ok()?, serde_json::from_slice(text).ok()?);
    let when = |carried: Option<i64>, told: Option<f64>| {
        carried.map(Timestamp::from_micros).or_else(|| Timestamp::from_unix_seconds(told?))
    };
    let times = Times {
        started_at: when(member.started_at, told.start_time),
        ended_at: when(member.ended_at, told.end_time),
        cancel_requested_at: when(member.cancel_requested_at, told.cancel_requested_at),
    };
    Some(member.row(told.run_id, summary, told.workflow_yaml_sha256, times))
}

/// A snapshot without our own member; `None` if it is no snapshot at all.
pub(crate) fn body(text: &[u8]) -> Option<Value> {
    let mut snapshot: Value = serde_json::from_slice(text).ok()?;
    snapshot.as_object_mut()?.shift_remove(MEMBER);
    Some(snapshot)
}

/// The row of a run that has no record of ours.
pub fn foreign_row(execution: &ExecutionId, snapshot: &Value) -> Option<IndexRow> {
    let summary = RunSummary::deserialize(snapshot).ok()?;
    let updated_at = Timestamp::from_unix_seconds(summary.updated_at?)?;
    Some(IndexRow {
        execution: execution.clone(),
        version: Version(0),
        created_at: updated_at,
        updated_at,
        started_at: time(snapshot, STARTED),
        ended_at: time(snapshot, ENDED),
        cancel_requested_at: time(snapshot, CANCEL_REQUESTED),
        workflow_sha256: snapshot.get(WORKFLOW).and_then(Value::as_str).map(str::to_owned),
        hidden: false,
        next_timer: None,
        wants_job: false,
        waits: Vec::new(),
        has_waited: false,
        is_archived: false,
        is_foreign: true,
        summary,
    })
}

/// When a run began and ended, and when it was asked to stop.
#[derive(Clone, Copy)]
struct Times {
    started_at: Option<Timestamp>,
    ended_at: Option<Timestamp>,
    cancel_requested_at: Option<Timestamp>,
}

impl Member {
    fn row(
        self,
        execution: ExecutionId,
        mut summary: RunSummary,
        workflow_sha256: Option<String>,
        times: Times,
    ) -> IndexRow {
        summary.tag = self.tag;
        let wait = |(node, since)| Wait { node, since: Timestamp::from_micros(since) };
        IndexRow {
            execution,
            version: self.version,
            summary,
            created_at: Timestamp::from_micros(self.created_at),
            updated_at: Timestamp::from_micros(self.updated_at),
            started_at: times.started_at,
            ended_at: times.ended_at,
            cancel_requested_at: times.cancel_requested_at,
            workflow_sha256,
            hidden: self.hidden,
            next_timer: self.next_timer.map(Timestamp::from_micros),
            wants_job: self.wants_job,
            waits: self.waits.into_iter().map(wait).collect(),
            has_waited: self.has_waited,
            is_archived: self.archived,
            is_foreign: self.foreign,
        }
    }
}

/// The row of a snapshot, and whether the snapshot says what was written.
fn row(execution: &ExecutionId, snapshot: &Value, member: Member) -> Option<(IndexRow, bool)> {
    let summary = RunSummary::deserialize(snapshot).ok()?;
    let text = serde_json::to_vec(snapshot).ok()?;
    let is_whole = text.strip_suffix(b"}").is_some_and(|open| member.seal == seal(open));
    // Who changed it may have cancelled or ended the run.
    let when = |carried: Option<i64>, name| {
        let (carried, told) = (carried.map(Timestamp::from_micros), time(snapshot, name));
        if is_whole { carried.or(told) } else { told.or(carried) }
    };
    let times = Times {
        started_at: when(member.started_at, STARTED),
        ended_at: when(member.ended_at, ENDED),
        cancel_requested_at: when(member.cancel_requested_at, CANCEL_REQUESTED),
    };
    let workflow = snapshot.get(WORKFLOW).and_then(Value::as_str).map(str::to_owned);
    Some((member.row(execution.clone(), summary, workflow, times), is_whole))
}

/// An instant that a member of the contract names, if it does.
fn time(snapshot: &Value, name: &str) -> Option<Timestamp> {
    Timestamp::from_unix_seconds(snapshot.get(name)?.as_f64()?)
}

/// Changes with every change of a snapshot, which is given without its last brace. Who reads and writes it back with other spaces between its members
/// has changed nothing: `row` sees that.
fn seal(open: &[u8]) -> String {
    let mut digest = String::from(Digest::of_bytes(open));
    // It guards against oversight, not against malice: whoever can write there can write anything.
    digest.truncate(16);
    digest
}

/// Whether a run of this status changes no more.
pub(crate) const fn is_ended(status: RunStatus) -> bool {
    match status {
        RunStatus::Pending | RunStatus::Running | RunStatus::Cancelling => false,
        RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled => true,
    }
}

#[cfg(test)]
mod tests {
    use pyoco_core::ids::{TenantId, WorkerId};
    use serde_json::json;

    use super::*;

    fn sample() -> (IndexRow, Value) {
        let summary = RunSummary {
            run_id: "e".to_owned(),
            flow_name: "main \"ünï\"".to_owned(),
            tag: Some(Tag::default()),
            tags: vec!["ünï".to_owned()],
            tenant_id: Some(TenantId::new("team").unwrap()),
            api_key_id: Some("k".to_owned()),
            status: RunStatus::Running,
            updated_at: Some(1_700_000_000.123_456),
            heartbeat_at: Some(1.5),
            worker_id: Some(WorkerId::new("host-1:2").unwrap()),
            error: Some("\u{7f}\n".to_owned()),
        };
        let mut snapshot = serde_json::to_value(&summary).unwrap();
        snapshot["tag"] = Value::Null;
        snapshot["workflow_yaml_sha256"] = json!("abc");
        snapshot["params"] = json!({"big": 1e300, "small": 0.1, "deep": [{"a": null}], "n": u64::MAX});
        snapshot["version"] = json!(7);
        let row = IndexRow {
            execution: ExecutionId::new("e").unwrap(),
            version: Version(7),
            summary,
            created_at: Timestamp::from_micros(1_699_999_999_999_999),
            updated_at: Timestamp::from_micros(1_700_000_000_123_456),
            started_at: Some(Timestamp::from_micros(1_700_000_000_000_001)),
            ended_at: Some(Timestamp::from_micros(1_700_000_000_123_455)),
            cancel_requested_at: Some(Timestamp::from_micros(1_700_000_000_000_003)),
            workflow_sha256: Some("abc".to_owned()),
            hidden: true,
            next_timer: Some(Timestamp::from_micros(1_700_000_009_000_001)),
            wants_job: true,
            waits: vec![Wait {
                node: NodeId::new("retry/2/ünï").unwrap(),
                since: Timestamp::from_micros(1_700_000_000_000_007),
            }],
            has_waited: true,
            is_archived: true,
            is_foreign: true,
        };
        (row, snapshot)
    }

    fn found(text: &[u8]) -> Option<Snapshot> {
        let (execution, snapshot) = read(text)?;
        assert_eq!(execution.as_str(), "e");
        Some(snapshot)
    }

    #[test]
    fn a_row_comes_back_from_its_snapshot() {
        let (mut row, snapshot) = sample();
        let text = serde_json::to_vec(&snapshot).unwrap();
        assert_eq!(found(&with_row(&text, &row).unwrap()), Some(Snapshot::Ours(row.clone())));
        row.waits.clear();
        assert_eq!(found(&with_row(&text, &row).unwrap()), Some(Snapshot::Ours(row.clone())));
        (row.hidden, row.wants_job, row.next_timer, row.has_waited) = (false, false, None, false);
        (row.is_archived, row.is_foreign) = (false, false);
        (row.started_at, row.ended_at, row.cancel_requested_at) = (None, None, None);
        assert_eq!(found(&with_row(&text, &row).unwrap()), Some(Snapshot::Ours(row)));
    }

    #[test]
    fn a_snapshot_from_before_there_were_waits_is_read() {
        let (mut row, snapshot) = sample();
        let written = with_row(&serde_json::to_vec(&snapshot).unwrap(), &row).unwrap();
        let mut written: Value = serde_json::from_slice(&written).unwrap();
        let member = written[MEMBER].as_object_mut().unwrap();
        assert!(member.remove("waits").is_some() && member.remove("has_waited").is_some());
        (row.waits, row.has_waited) = (Vec::new(), false);
        assert_eq!(found(&serde_json::to_vec(&written).unwrap()), Some(Snapshot::Ours(row)));
    }

    #[test]
    fn a_snapshot_from_before_rows_had_times_has_those_of_the_contract() {
        let (mut row, mut snapshot) = sample();
        let times = (row.started_at, row.ended_at, row.cancel_requested_at);
        snapshot["start_time"] = json!(1_700_000_000.000_001);
        snapshot["end_time"] = json!(1_700_000_000.123_455);
        snapshot["cancel_requested_at"] = json!(1_700_000_000.000_003);
        (row.started_at, row.ended_at, row.cancel_requested_at) = (None, None, None);
        let written = with_row(&serde_json::to_vec(&snapshot).unwrap(), &row).unwrap();
        (row.started_at, row.ended_at, row.cancel_requested_at) = times;
        assert_eq!(found(&written), Some(Snapshot::Ours(row.clone())));
        let foreign = foreign_row(&row.execution, &snapshot).unwrap();
        assert_eq!((foreign.started_at, foreign.ended_at, foreign.cancel_requested_at), times);
        snapshot["start_time"] = json!("soon");
        snapshot["end_time"] = json!(1e300);
        let foreign = foreign_row(&row.execution, &snapshot).unwrap();
        assert_eq!((foreign.started_at, foreign.ended_at), (None, None));
    }

    #[test]
    fn every_member_of_the_contract_stays_as_it_is() {
        let (row, snapshot) = sample();
        let written = with_row(&serde_json::to_vec(&snapshot).unwrap(), &row).unwrap();
        let mut written: Value = serde_json::from_slice(&written).unwrap();
        assert!(written.as_object_mut().unwrap().remove(MEMBER).is_some());
        assert_eq!(written, snapshot);
    }

    #[test]
    fn what_another_implementation_read_and_wrote_back_is_told_apart() {
        let (row, snapshot) = sample();
        let written = with_row(&serde_json::to_vec(&snapshot).unwrap(), &row).unwrap();
        let mut cancelled: Value = serde_json::from_slice(&written).unwrap();
        // Written with other spaces it is the same.
        let spaced = serde_json::to_vec_pretty(&cancelled).unwrap();
        assert_eq!(found(&spaced), Some(Snapshot::Ours(row)));
        cancelled["status"] = json!("CANCELLING");
        cancelled["cancel_requested_at"] = json!(1_700_000_001.5);
        let found = found(&serde_json::to_vec(&cancelled).unwrap());
        let Some(Snapshot::Changed(row, snapshot)) = found else { panic!("{found:?}") };
        assert_eq!((row.version, row.summary.status), (Version(7), RunStatus::Cancelling));
        assert_eq!(snapshot["cancel_requested_at"], json!(1_700_000_001.5));
        assert_eq!(row.cancel_requested_at, Timestamp::from_unix_seconds(1_700_000_001.5));
        assert_eq!(row.started_at, sample().0.started_at);
    }

    #[test]
    fn a_snapshot_without_our_member_is_foreign_and_nonsense_is_nothing() {
        let (_, mut snapshot) = sample();
        for member in [None, Some(json!(null)), Some(json!({"version": -1})), Some(json!("x"))] {
            if let Some(member) = member {
                snapshot[MEMBER] = member;
            }
            let found = found(&serde_json::to_vec(&snapshot).unwrap());
            assert!(matches!(found, Some(Snapshot::Foreign(_))), "{found:?}");
        }
        for text in ["", "{", "[]", "null", "{}", r#"{"run_id": 1}"#, r#"{"run_id": "a.b"}"#] {
            assert_eq!(read(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_snapshot_that_is_no_object_is_not_written() {
        let (row, _) = sample();
        for text in ["", "[]", "{"] {
            assert!(with_row(text.as_bytes(), &row).is_err(), "{text}");
        }
    }
}
