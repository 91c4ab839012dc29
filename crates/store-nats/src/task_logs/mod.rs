//! What tasks wrote: messages at the execution's subject, each with lines and, in its headers, where they stand in the log.
//!
//! `piece` is one such message, `write` adds them, `read` finds lines in them, `hear` tells when others add some. The last message of a
//! subject says how far the log goes, so nothing depends on how long it is.

mod hear;
mod piece;
mod read;
mod write;

use std::hash::{BuildHasher as _, RandomState};

use async_trait::async_trait;
use pyoco_core::ids::ExecutionId;
use pyoco_ports::{HearingLines, LinePlace, LogEnd, LogLine, LogTerms, StoreError, TaskLogs, Written};
use tokio::sync::{Mutex, MutexGuard};

use self::piece::Piece;
use self::write::Unfinished;
use crate::connection::Connection;
use crate::message::Stored;
use crate::recent::Recent;
use crate::{NatsStore, error, names};

/// How many executions whose end is remembered.
const REMEMBERED: usize = 20_000;
/// Calls of one execution wait for each other; so do those of few others.
const TURNS: usize = 256;

const WRITE: &str = "write lines";
const READ: &str = "read lines";
const HEAR: &str = "hear of lines";

/// How far a log goes, and the message that says so; 0 if there is none.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    end: LogEnd,
    sequence: u64,
    /// How many messages this process has written since it looked.
    in_a_row: u32,
}

impl Known {
    /// As the last message says.
    const fn of(piece: Piece, last: &Stored) -> Self {
        Self { end: piece.end, sequence: last.sequence, in_a_row: 0 }
    }
}

/// Where the logs end that were written lately, and where readers stand.
#[derive(Debug)]
pub(crate) struct Ends {
    ends: Recent<ExecutionId, Known>,
    /// The message in which the line after this one is to be looked for.
    places: Recent<(ExecutionId, u64), u64>,
    /// Calls that failed when a part of them was stored, or may have been.
    unfinished: Recent<ExecutionId, Unfinished>,
    turns: Vec<Mutex<()>>,
    hasher: RandomState,
}

impl Ends {
    pub(crate) fn new() -> Self {
        Self {
            ends: Recent::new(REMEMBERED),
            places: Recent::new(REMEMBERED),
            unfinished: Recent::new(REMEMBERED),
            turns: std::iter::repeat_with(Mutex::default).take(TURNS).collect(),
            hasher: RandomState::new(),
        }
    }

    async fn turn(&self, execution: &ExecutionId) -> Option<MutexGuard<'_, ()>> {
        let place = self.hasher.hash_one(execution) % TURNS as u64;
        match self.turns.get(usize::try_from(place).unwrap_or(0)) {
            Some(turn) => Some(turn.lock().await),
            None => None,
        }
    }
}

#[async_trait]
impl TaskLogs for NatsStore {
    /// After `Timeout` the lines may be there. Whoever writes the same again next is not given them twice.
    async fn write_lines(
        &self,
        execution: &ExecutionId,
        lines: Vec<LogLine>,
        terms: LogTerms,
    ) -> Result<Written, StoreError> {
        self.write_call(execution, lines, terms).await
    }

    async fn log_end(&self, execution: &ExecutionId) -> Result<LogEnd, StoreError> {
        let last = last(&self.connection, READ, &names::logs(execution)).await?;
        last.map_or(Ok(LogEnd::default()), |last| Ok(Piece::of(&last)?.end))
    }

    async fn read_lines(
        &self,
        execution: &ExecutionId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, LogLine)>, StoreError> {
        self.lines_after(execution, after, limit).await
    }

    async fn line_at(&self, execution: &ExecutionId, byte: u64) -> Result<Option<LinePlace>, StoreError> {
        self.line_with(execution, byte).await
    }

    async fn hear_lines(&self, execution: &ExecutionId) -> Result<Option<Box<dyn HearingLines>>, StoreError> {
        let told = hear::start(&self.connection, execution).await?;
        Ok(Some(Box::new(told)))
    }
}

impl NatsStore {
    /// Removes the log of an execution.
    pub(crate) async fn remove_lines(&self, execution: &ExecutionId) -> Result<(), StoreError> {
        let _turn = self.task_logs.turn(execution).await;
        self.task_logs.ends.remove(execution);
        self.task_logs.unfinished.remove(execution);
        self.connection.purge("remove lines", names::LOGS, &names::logs(execution), None).await.map(|_| ())
    }
}

/// The last message of a log, as the leader has it.
async fn last(
    connection: &Connection,
    operation: &'static str,
    subject: &str,
) -> Result<Option<Stored>, StoreError> {
    unless_missing(connection.last(operation, names::LOGS, subject).await)
}

/// A stream that somebody has deleted has no message.
fn unless_missing(found: Result<Option<Stored>, StoreError>) -> Result<Option<Stored>, StoreError> {
    match found {
        Err(error) if error::is_missing(&error) => Ok(None),
        found => found,
    }
}
