//! What tasks write while they run, and what the engine says about them: the log of an execution that people read.
//!
//! It is not the truth (the log of events is), but it only ever grows: a line keeps its number and its place in the text for
//! ever, so that whoever has read so far can go on from there. `line` is one line and its text, `end` how far a log goes.

mod end;
mod line;

use async_trait::async_trait;
use pyoco_core::ids::ExecutionId;

pub use end::{LogEnd, LogTerms, Written};
pub use line::{LinePlace, LogLine, LogStream};

use crate::StoreError;

/// The lines of every execution, in the order in which they were written.
#[async_trait]
pub trait TaskLogs: Send + Sync {
    /// Adds lines to the log of an execution, and says which of them were kept: `LogEnd::take` is the rule.
    ///
    /// - When it returns, the lines MUST survive the loss of the process. `[task-logs/write]`
    /// - MUST number the lines of an execution 1, 2, 3 … in the order of the calls. `[task-logs/order]`
    /// - Executions MUST NOT disturb each other, and the lines of one call MUST stay beside each other.
    ///   `[task-logs/isolation]`
    /// - MUST keep nothing beyond the limit but the mark of it, and nothing after the log was closed, whoever writes.
    ///   `[task-logs/limit]`
    /// - A flood of lines MUST NOT delay the log of events; whoever writes them waits instead.
    async fn write_lines(
        &self,
        execution: &ExecutionId,
        lines: Vec<LogLine>,
        terms: LogTerms,
    ) -> Result<Written, StoreError>;

    /// How far the log of an execution goes. MUST see every line whose writing has returned, and MUST NOT cost more because the
    /// log is longer. `[task-logs/end]`
    async fn log_end(&self, execution: &ExecutionId) -> Result<LogEnd, StoreError>;

    /// The lines after a number, oldest first, at most `limit`. MUST see every line whose writing has returned.
    /// `[task-logs/read]` MAY give fewer once they hold a MiB of text, but not none if there are any.
    async fn read_lines(
        &self,
        execution: &ExecutionId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, LogLine)>, StoreError>;

    /// The line in whose text this byte of the log stands, counted from 0; `None` behind the end. MUST NOT read the lines before it.
    /// `[task-logs/place]`
    async fn line_at(&self, execution: &ExecutionId, byte: u64) -> Result<Option<LinePlace>, StoreError>;

    /// Listens to what other processes write to the log of one execution, for as long as the listener is kept. `None` if nobody
    /// else can write to it.
    async fn hear_lines(
        &self,
        _execution: &ExecutionId,
    ) -> Result<Option<Box<dyn HearingLines>>, StoreError> {
        Ok(None)
    }
}

/// Hears how the log of one execution grows.
#[async_trait]
pub trait HearingLines: Send {
    /// The end of the log when somebody has written to it; nothing when the store is closed. May be dropped and called again. What
    /// is written after `hear_lines` returned is told within a tenth of a second while the store can be reached, and as soon as it
    /// can be reached again otherwise; the same end may be told twice.
    async fn next(&mut self) -> Option<LogEnd>;
}
