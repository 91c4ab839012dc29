//! What tasks wrote, in a file of its own.

use async_trait::async_trait;
use pyoco_core::ids::{Attempt, ExecutionId, NodeId};
use pyoco_core::time::Timestamp;
use pyoco_ports::{Durability, LogLine, LogStream, StoreError, TaskLogs};
use rusqlite::{Connection, OptionalExtension as _, Row};

use crate::command::Terms;
use crate::{SqliteStore, error};

#[async_trait]
impl TaskLogs for SqliteStore {
    async fn write_lines(&self, execution: &ExecutionId, lines: Vec<LogLine>) -> Result<(), StoreError> {
        if lines.is_empty() {
            return Ok(());
        }
        let execution = execution.clone();
        // The loss of power may take the last lines; nothing is decided by them.
        let terms = Terms { operation: "write lines", durability: Durability::Process, wakes: None };
        let weight = weight(&lines);
        self.logs().write(terms, weight, move |connection| write(connection, &execution, &lines)).await
    }

    async fn read_lines(
        &self,
        execution: &ExecutionId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, LogLine)>, StoreError> {
        let execution = execution.clone();
        // No log is that long, so beyond it there is nothing.
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.logs()
            .read("read lines", move |connection| {
                let mut statement = connection.prepare_cached(READ)?;
                statement.query_map((execution.as_str(), after, limit), decode)?.collect()
            })
            .await
    }
}

/// How many KiB of the inbox lines take.
fn weight(lines: &[LogLine]) -> u32 {
    /// A line without its text.
    const LINE: usize = std::mem::size_of::<LogLine>();
    let bytes: usize = lines.iter().map(|line| LINE + line.text.len() + line.node.as_str().len()).sum();
    u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX)
}

// The order of the tables is given: from the execution along its lines, one look at the source of each.
const READ: &str = "SELECT number, node, attempt, stream, at, text FROM executions \
                    CROSS JOIN lines ON lines.execution = executions.id \
                    CROSS JOIN sources ON sources.id = lines.source \
                    WHERE executions.execution = ?1 AND number > ?2 ORDER BY number LIMIT ?3";

fn write(connection: &Connection, execution: &ExecutionId, lines: &[LogLine]) -> rusqlite::Result<()> {
    // The numbers of the whole batch are taken at once.
    let sql = "INSERT INTO executions (execution, lines) VALUES (?1, ?2) \
               ON CONFLICT (execution) DO UPDATE SET lines = lines + excluded.lines RETURNING id, lines - ?2";
    let count = i64::try_from(lines.len()).unwrap_or(i64::MAX);
    let (id, before): (i64, i64) = connection
        .prepare_cached(sql)?
        .query_row((execution.as_str(), count), |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut insert = connection.prepare_cached(
        "INSERT INTO lines (execution, number, source, at, text) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    let mut last: Option<(&LogLine, i64)> = None;
    for (line, number) in lines.iter().zip(before + 1..) {
        // Most lines come from where the one before them came from.
        let source = match last {
            Some((other, source)) if is_same_source(other, line) => source,
            Some(_) | None => source(connection, id, line)?,
        };
        insert.execute((id, number, source, line.at.as_micros(), &line.text))?;
        last = Some((line, source));
    }
    Ok(())
}

fn is_same_source(one: &LogLine, other: &LogLine) -> bool {
    (&one.node, one.attempt, one.stream) == (&other.node, other.attempt, other.stream)
}

/// The number of a line's source, which is given one if it has none.
fn source(connection: &Connection, execution: i64, line: &LogLine) -> rusqlite::Result<i64> {
    let known = "SELECT id FROM sources WHERE execution = ?1 AND node = ?2 AND attempt = ?3 AND stream = ?4";
    let new = "INSERT INTO sources (execution, node, attempt, stream) VALUES (?1, ?2, ?3, ?4) RETURNING id";
    let values = (execution, line.node.as_str(), line.attempt.0, number(line.stream));
    let known = connection.prepare_cached(known)?.query_row(values, |row| row.get(0)).optional()?;
    match known {
        Some(id) => Ok(id),
        None => connection.prepare_cached(new)?.query_row(values, |row| row.get(0)),
    }
}

fn decode(row: &Row<'_>) -> rusqlite::Result<(u64, LogLine)> {
    let node: String = row.get(1)?;
    let line = LogLine {
        node: NodeId::new(&node).map_err(|why| error::unreadable(1, why))?,
        attempt: Attempt(row.get(2)?),
        stream: stream(row.get(3)?).ok_or_else(|| error::unreadable(3, "there is no such stream"))?,
        at: Timestamp::from_micros(row.get(4)?),
        text: row.get(5)?,
    };
    Ok((row.get(0)?, line))
}

const fn number(stream: LogStream) -> i64 {
    match stream {
        LogStream::Stdout => 1,
        LogStream::Stderr => 2,
        LogStream::Engine => 3,
    }
}

const fn stream(number: i64) -> Option<LogStream> {
    match number {
        1 => Some(LogStream::Stdout),
        2 => Some(LogStream::Stderr),
        3 => Some(LogStream::Engine),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_along_their_key_and_nothing_is_sorted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        std::fs::write(&path, b"").unwrap();
        crate::connection::create(&path, &crate::schema::LOGS).unwrap();
        let connection = crate::connection::writer(&path).unwrap();
        let plan = crate::list::tests::plan(&connection, READ);
        assert!(plan.contains("lines USING PRIMARY KEY (execution=? AND number>?)"), "{plan}");
        assert!(!plan.contains("SCAN") && !plan.contains("TEMP B-TREE"), "{plan}");
    }

    #[test]
    fn each_stream_is_read_as_what_was_written() {
        for one in [LogStream::Stdout, LogStream::Stderr, LogStream::Engine] {
            assert_eq!(stream(number(one)), Some(one));
        }
        assert_eq!(stream(0), None);
    }
}
