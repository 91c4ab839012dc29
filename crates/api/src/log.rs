//! The log of a job or run, page by page and line by line.

use pyoco_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Extra;

/// One line of a log. It keeps its number for ever.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LogEntry {
    /// Its number, from 1 on.
    #[schema(minimum = 1)]
    pub seq: u64,
    /// When it was written.
    #[schema(value_type = String, format = DateTime)]
    pub timestamp: Timestamp,
    /// The line. It is what a task wrote: not made safe for a terminal.
    #[schema(example = "Step 1 complete.")]
    pub message: String,
    /// Which task wrote it, or it is about; null if it is about the whole.
    #[serde(default)]
    pub task: Option<String>,
    /// In which attempt of the task; 0 if it is of none.
    #[serde(default)]
    pub attempt: u32,
    /// `stdout`, `stderr` or `engine`.
    #[schema(example = "stdout")]
    pub stream: String,
    /// What else the server says.
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

/// A page of a log, oldest line first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogPage {
    /// The lines. With a filter there may be none although there are more behind `nextToken`.
    pub entries: Vec<LogEntry>,
    /// What to send as `sinceToken` to go on behind this page. It is the one that was sent when there is nothing new.
    pub next_token: String,
    /// Everything up to this line was looked at.
    #[serde(default)]
    pub through_seq: u64,
    /// The last line that there was. When it was looked at there is nothing more for now.
    #[serde(default)]
    pub last_seq: u64,
}
