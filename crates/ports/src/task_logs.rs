//! What tasks write while they run.

use async_trait::async_trait;
use pyoco_core::ids::{Attempt, ExecutionId, NodeId};
use pyoco_core::time::Timestamp;

use crate::StoreError;

/// The lines of every execution, in the order in which they were written.
#[async_trait]
pub trait TaskLogs: Send + Sync {
    /// Adds lines to the log of an execution.
    ///
    /// - When it returns, the lines MUST survive the loss of the process. `[task-logs/write]`
    /// - MUST number the lines of an execution 1, 2, 3 … in the order of the calls. `[task-logs/order]`
    /// - Executions MUST NOT disturb each other, and the lines of one call MUST stay beside each other.
    ///   `[task-logs/isolation]`
    /// - A flood of lines MUST NOT delay the log of events; whoever writes them waits instead.
    async fn write_lines(&self, execution: &ExecutionId, lines: Vec<LogLine>) -> Result<(), StoreError>;

    /// The lines after a number, oldest first, at most `limit`. MUST see every line whose writing has returned.
    /// `[task-logs/read]`
    async fn read_lines(
        &self,
        execution: &ExecutionId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, LogLine)>, StoreError>;
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// Which node wrote it.
    pub node: NodeId,
    /// In which try.
    pub attempt: Attempt,
    /// Where to.
    pub stream: LogStream,
    /// When it was read.
    pub at: Timestamp,
    /// The text, without its line break.
    pub text: String,
}

/// Where a line came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogStream {
    /// The task's standard output.
    Stdout,
    /// Its standard error.
    Stderr,
    /// The engine, about the task.
    Engine,
}

impl LogStream {
    /// Its name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
            Self::Engine => "engine",
        }
    }
}
