//! What a job carries with it, so that whoever takes it need not ask: the first record of its run's log, and the place of its snapshot.
//!
//! Both are what stood there when the job was put into the queue, so both may be old. Nothing rests on them alone: a record is appended
//! behind the one that was carried, a snapshot is written behind the one that was carried, and the server refuses what others were faster with.

use std::sync::Arc;

use bytes::Bytes;
use pyoco_core::ids::ExecutionId;
use pyoco_core::time::Timestamp;
use serde::Deserialize;

use crate::index::{LocalIndex, Revision};
use crate::message::Headers;
use crate::place::Place;
use crate::recent::Recent;

/// The first record of the log, and its number in the stream.
const RECORD: &str = "Pyoco-Record";
const RECORD_SEQUENCE: &str = "Pyoco-Record-Sequence";
/// The number of the snapshot in its bucket.
const SNAPSHOT: &str = "Pyoco-Snapshot";

/// A longer record is cheaper to read when it is wanted than to store twice.
const LONGEST: usize = 4 * 1024;
/// Between its append and its job a record waits for a snapshot to be written; between the take and the claim for nothing.
const MOST: usize = 2_000;
/// Whoever cancels a run by its snapshot so soon after its submission comes too late to be asked for before it begins: gateways of ours
/// put that into the log, and a worker hears of it while the run goes on.
const YOUNG_MICROS: u64 = 1_000_000;

/// The first record of a log.
#[derive(Debug, Clone)]
pub(crate) struct First {
    pub(crate) sequence: u64,
    pub(crate) bytes: Bytes,
}

/// What is about to be carried, and what has just come.
#[derive(Debug)]
pub(crate) struct Carried {
    index: LocalIndex,
    going: Recent<ExecutionId, First>,
    came: Recent<ExecutionId, First>,
    /// When the job was stored: soon after that nobody need look at the snapshot.
    stored: Recent<ExecutionId, Timestamp>,
}

/// The member of a job that says which run it is about.
#[derive(Deserialize)]
pub(crate) struct About {
    pub(crate) run_id: ExecutionId,
}

impl Carried {
    pub(crate) fn new(index: &LocalIndex) -> Arc<Self> {
        let (going, came, stored) = (Recent::new(MOST), Recent::new(MOST), Recent::new(MOST));
        Arc::new(Self { index: index.clone(), going, came, stored })
    }

    /// A log was begun; its job will want the record.
    pub(crate) fn begun(&self, execution: &ExecutionId, sequence: u64, bytes: &Bytes) {
        if bytes.len() <= LONGEST {
            self.going.put(execution.clone(), First { sequence, bytes: bytes.clone() });
        }
    }

    /// What the first job of a run takes along. Later jobs go alone: there are more records by then.
    pub(crate) fn pack(&self, execution: &ExecutionId) -> Headers {
        let (Some(first), Some(revision)) = (self.going.remove(execution), self.index.mine(execution)) else {
            return Headers::new();
        };
        Headers::new()
            .long(RECORD, &first.bytes)
            .number(RECORD_SEQUENCE, first.sequence)
            .number(SNAPSHOT, revision)
    }

    /// Keeps what a job brought for whoever asks for it. A job that comes again is too late for that.
    pub(crate) fn unpack(&self, place: &Place, headers: &Headers, body: &[u8]) {
        let Some((first, revision)) = contents(headers).filter(|_| place.number == 1) else { return };
        let Ok(About { run_id }) = serde_json::from_slice(body) else { return };
        self.index.told(&run_id, revision);
        self.stored.put(run_id.clone(), place.time());
        self.came.put(run_id, first);
    }

    /// The first record of a log, if its job brought it; given once.
    pub(crate) fn record(&self, execution: &ExecutionId) -> Option<First> {
        self.came.remove(execution)
    }

    /// Whether a run came so soon after its submission that its snapshot need not be looked at; said once.
    /// Where the clocks differ by more than that, nobody is young.
    pub(crate) fn is_young(&self, execution: &ExecutionId, now: Timestamp) -> bool {
        let stored = self.stored.remove(execution);
        stored.is_some_and(|stored| now.as_micros().abs_diff(stored.as_micros()) < YOUNG_MICROS)
    }
}

/// What headers say, if they say all of it.
fn contents(headers: &Headers) -> Option<(First, Revision)> {
    let bytes = headers.get_long(RECORD)?.into();
    let first = First { sequence: headers.get_number(RECORD_SEQUENCE)?, bytes };
    Some((first, headers.get_number(SNAPSHOT)?))
}
