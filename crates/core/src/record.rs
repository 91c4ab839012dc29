//! The unit of the log: what one command, or several that came together, wrote about an execution.
//!
//! Records are numbered without a gap and chained by fingerprint, so that a changed or missing one is
//! found. A record may hold no event but a claim, a release or an annotation. How records are stored is
//! the stores' business.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::event::{Actor, EventEnvelope};
use crate::ids::{CommandId, Epoch, EventSeq, ExecutionId, Version};
use crate::json::{self, JsonError, Limits};
use crate::kept::Kept;
use crate::outcome::Outcome;
use crate::plan::Plan;
use crate::state::{Claim, State};
use crate::time::Timestamp;
use crate::wheels::UsedWheel;

/// The version of the record format.
pub const FORMAT: u32 = 1;

/// One record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The version of the format.
    pub v: u32,
    /// Its number, from 1.
    pub seq: Version,
    /// The number of its first event (or of the next one, when it has none).
    pub first_event: EventSeq,
    /// The fingerprint of the record before it.
    pub prev_hash: Digest,
    /// The claim under which it was written.
    pub epoch: Epoch,
    /// Who wrote it.
    pub actor: Actor,
    /// When.
    pub at: Timestamp,
    /// The commands behind it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<CommandRecord>,
    /// A plan that is fixed from here on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Arc<Plan>>,
    /// The text of a submitted flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<Arc<str>>,
    /// What is kept of the execution that this one repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Arc<Kept>>,
    /// The wheels that it runs with from here on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wheels: Option<Arc<[UsedWheel]>>,
    /// Who holds the execution from here on; counts before the events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// The claim is let go, after so many of its events. Nothing but the release's own consequences follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<u32>,
    /// What is said about the execution.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub annotations: Vec<Annotation>,
    /// What happened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventEnvelope>,
}

/// A command and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandRecord {
    /// The key of a repeatable command.
    pub id: CommandId,
    /// The fingerprint of its input.
    pub digest: Digest,
    /// Whether a worker asked: its keys are kept only until its next record.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub worker: bool,
    /// The caller's thread through several commands: a repeat is answered with the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// What its issuer learnt.
    pub result: Outcome,
}

/// Something said about an execution that is not part of what happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Annotation {
    /// A label more.
    AddLabel(String),
    /// A label less.
    RemoveLabel(String),
    /// Left out of lists, or shown again.
    Hidden(bool),
    /// The execution that repeats this one.
    RetriedBy(ExecutionId),
}

/// Why a log cannot be folded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// The bytes are not a record.
    #[error("record {seq} cannot be read: {error}")]
    Unreadable {
        /// The number it should have.
        seq: Version,
        /// Why.
        error: JsonError,
    },
    /// Written by a newer version.
    #[error("record {seq} has format {format}, this version reads up to {FORMAT}")]
    NewerFormat {
        /// Its number.
        seq: Version,
        /// Its format.
        format: u32,
    },
    /// A record is missing, or stands twice.
    #[error("record {expected} is wanted, {found} was found")]
    Gap {
        /// The number that comes next.
        expected: Version,
        /// The number that came.
        found: Version,
    },
    /// A record before this one is not the one it was written after.
    #[error("record {seq} does not follow the record before it: the log was changed")]
    BrokenChain {
        /// Its number.
        seq: Version,
    },
    /// An event of another execution.
    #[error("record {seq} speaks of another execution")]
    Misplaced {
        /// Its number.
        seq: Version,
    },
}

impl Record {
    /// The bytes that are stored.
    pub fn encode(&self) -> Vec<u8> {
        // Room for most, taken once.
        let mut bytes = Vec::with_capacity(1024);
        // Records hold strings, numbers and lists only, so they always have a JSON form.
        let _ = serde_json::to_writer(&mut bytes, self);
        bytes
    }

    /// Reads stored bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, JsonError> {
        json::decode(bytes, Limits::RECORD)
    }
}

impl State {
    /// Folds a whole log, given as stored bytes.
    pub fn from_log<'a>(
        id: ExecutionId,
        records: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Self, LogError> {
        let mut state = Self::absent(id);
        for bytes in records {
            state.fold(bytes)?;
        }
        Ok(state)
    }

    /// Folds one more record, given as stored bytes.
    pub fn fold(&mut self, bytes: &[u8]) -> Result<Record, LogError> {
        let seq = self.version.next();
        let record = Record::decode(bytes).map_err(|error| unreadable(bytes, seq, error))?;
        self.follow(&record, Digest::of_bytes(bytes))?;
        Ok(record)
    }

    /// Folds a log up to an event, also one in the middle of a record; `None` if there is no such event.
    pub fn as_of<'a>(
        id: ExecutionId,
        records: impl IntoIterator<Item = &'a [u8]>,
        event: EventSeq,
    ) -> Result<Option<Self>, LogError> {
        let mut state = Self::absent(id);
        for bytes in records {
            let seq = state.version.next();
            let record = Record::decode(bytes).map_err(|error| unreadable(bytes, seq, error))?;
            let wanted = usize::try_from(event.0.saturating_sub(state.events.0)).unwrap_or(usize::MAX);
            if wanted < record.events.len() {
                if let Some(last) = wanted.checked_sub(1).and_then(|last| record.events.get(last)) {
                    state.check(&record)?;
                    state.take_over(&record, wanted);
                    state.updated_at = Some(last.occurred_at);
                }
                break;
            }
            // Records without an event belong to the event before them.
            state.follow(&record, Digest::of_bytes(bytes))?;
        }
        Ok((state.events == event && event > EventSeq(0)).then_some(state))
    }

    /// Takes a decoded record over, given the fingerprint of its stored bytes, if it is the one that comes next.
    pub fn follow(&mut self, record: &Record, hash: Digest) -> Result<(), LogError> {
        self.check(record)?;
        self.take_over(record, record.events.len());
        for annotation in &record.annotations {
            self.annotate(annotation);
        }
        self.recorded(record, hash);
        Ok(())
    }

    /// Whether it is the record that comes next.
    fn check(&self, record: &Record) -> Result<(), LogError> {
        let expected = self.version.next();
        if record.v > FORMAT {
            return Err(LogError::NewerFormat { seq: expected, format: record.v });
        }
        if record.seq != expected || record.first_event != self.events.next() {
            return Err(LogError::Gap { expected, found: record.seq });
        }
        if record.prev_hash != self.last_hash {
            return Err(LogError::BrokenChain { seq: expected });
        }
        if record.events.iter().any(|event| event.execution_id != self.id) {
            return Err(LogError::Misplaced { seq: expected });
        }
        Ok(())
    }

    /// Takes the first so many events over, and what counts before them.
    fn take_over(&mut self, record: &Record, events: usize) {
        if let Some(workflow) = &record.workflow {
            self.keep_workflow(workflow.clone());
        }
        if let Some(plan) = &record.plan {
            self.fix_plan(plan.clone());
        }
        if let Some(kept) = &record.kept {
            self.keep(kept.clone());
        }
        if let Some(wheels) = &record.wheels {
            self.use_wheels(wheels.clone());
        }
        if let Some(claim) = &record.claim {
            self.take(claim.clone());
        }
        for (number, envelope) in (0_u32..).zip(record.events.iter().take(events)) {
            if record.release == Some(number) {
                self.let_go(record.at);
            }
            self.apply(&envelope.event, envelope.occurred_at);
        }
        if events == record.events.len() && record.release.is_some_and(|after| after as usize >= events) {
            self.let_go(record.at);
        }
    }
}

/// A record of a newer format may well have fields that this version does not know.
fn unreadable(bytes: &[u8], seq: Version, error: JsonError) -> LogError {
    #[derive(Deserialize)]
    struct FormatOnly {
        v: u32,
    }
    match serde_json::from_slice::<FormatOnly>(bytes) {
        Ok(FormatOnly { v: format }) if format > FORMAT => LogError::NewerFormat { seq, format },
        Ok(_) | Err(_) => LogError::Unreadable { seq, error },
    }
}
