//! What tasks wrote, in a file of its own.

use async_trait::async_trait;
use pyoco_core::ids::{Attempt, ExecutionId, NodeId};
use pyoco_core::time::Timestamp;
use pyoco_ports::{
    Durability, LinePlace, LogEnd, LogLine, LogStream, LogTerms, StoreError, TaskLogs, Written,
};
use rusqlite::{Connection, OptionalExtension as _, Row};

use crate::command::Terms;
use crate::retention::Progress;
use crate::{SqliteStore, error};

/// A page of lines ends with the one that makes its text as long as this.
const PAGE_BYTES: usize = 1024 * 1024;

#[async_trait]
impl TaskLogs for SqliteStore {
    async fn write_lines(
        &self,
        execution: &ExecutionId,
        lines: Vec<LogLine>,
        terms: LogTerms,
    ) -> Result<Written, StoreError> {
        if lines.is_empty() && !terms.closes {
            return Ok(Written { lines: Vec::new(), end: self.log_end(execution).await? });
        }
        let execution = execution.clone();
        // The loss of power may take the last lines; nothing is decided by them.
        let how = Terms { operation: "write lines", durability: Durability::Process, wakes: None };
        let weight = weight(&lines);
        self.logs().write(how, weight, move |connection| write(connection, &execution, &lines, terms)).await
    }

    async fn log_end(&self, execution: &ExecutionId) -> Result<LogEnd, StoreError> {
        let execution = execution.clone();
        let known = self.logs().read("look at a log", move |connection| log(connection, &execution)).await?;
        Ok(known.unwrap_or_default().end)
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
        self.logs().read("read lines", move |connection| read(connection, &execution, after, limit)).await
    }

    async fn line_at(&self, execution: &ExecutionId, byte: u64) -> Result<Option<LinePlace>, StoreError> {
        let execution = execution.clone();
        self.logs()
            .read("find a line", move |connection| match log(connection, &execution)? {
                Some(log) if byte < log.end.bytes => find(connection, log, byte).map(Some),
                Some(_) | None => Ok(None),
            })
            .await
    }
}

/// Removes the lines of a log from its beginning on, and when none are left the log.
pub(crate) fn remove(
    connection: &Connection,
    execution: &ExecutionId,
    room: u64,
) -> rusqlite::Result<Progress> {
    let Some(Log { id, .. }) = log(connection, execution)? else { return Ok(Progress::Done(0)) };
    let first = "SELECT number FROM lines WHERE execution = ?1 ORDER BY number LIMIT 1";
    let mut first = connection.prepare_cached(first)?;
    let mut first = || first.query_row([id], |row| row.get::<_, u64>(0)).optional();
    let mut rows = 1;
    if let Some(number) = first()? {
        let sql = "DELETE FROM lines WHERE execution = ?1 AND number < ?2";
        rows += connection.prepare_cached(sql)?.execute((id, number.saturating_add(room)))? as u64;
        if first()?.is_some() {
            return Ok(Progress::More);
        }
    }
    for sql in ["DELETE FROM sources WHERE execution = ?1", "DELETE FROM executions WHERE id = ?1"] {
        connection.prepare_cached(sql)?.execute([id])?;
    }
    Ok(Progress::Done(rows))
}

/// How many KiB of the inbox lines take.
fn weight(lines: &[LogLine]) -> u32 {
    /// A line without its text.
    const LINE: usize = std::mem::size_of::<LogLine>();
    let bytes: usize = lines.iter().map(|line| LINE + line.text.len() + node(line).len()).sum();
    u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX)
}

/// The node of a line as it is stored.
fn node(line: &LogLine) -> &str {
    line.node.as_ref().map_or("", NodeId::as_str)
}

/// A log that somebody wrote to.
#[derive(Debug, Clone, Copy, Default)]
struct Log {
    id: i64,
    end: LogEnd,
}

fn log(connection: &Connection, execution: &ExecutionId) -> rusqlite::Result<Option<Log>> {
    connection
        .prepare_cached(LOG)?
        .query_row([execution.as_str()], |row| {
            let end = LogEnd {
                lines: row.get(1)?,
                bytes: row.get(2)?,
                is_cut: row.get(3)?,
                is_closed: row.get(4)?,
            };
            Ok(Log { id: row.get(0)?, end })
        })
        .optional()
}

const LOG: &str = "SELECT id, lines, bytes, cut, closed FROM executions WHERE execution = ?1";

fn read(
    connection: &Connection,
    execution: &ExecutionId,
    after: i64,
    limit: i64,
) -> rusqlite::Result<Vec<(u64, LogLine)>> {
    let mut statement = connection.prepare_cached(READ)?;
    let mut rows = statement.query((execution.as_str(), after, limit))?;
    let (mut lines, mut bytes) = (Vec::new(), 0);
    while bytes < PAGE_BYTES
        && let Some(row) = rows.next()?
    {
        let (number, line) = decode(row)?;
        bytes += line.text.len();
        lines.push((number, line));
    }
    Ok(lines)
}

// The order of the tables is given: from the execution along its lines, one look at the source of each.
const READ: &str = "SELECT number, node, attempt, stream, at, text FROM executions \
                    CROSS JOIN lines ON lines.execution = executions.id \
                    CROSS JOIN sources ON sources.id = lines.source \
                    WHERE executions.execution = ?1 AND number > ?2 ORDER BY number LIMIT ?3";

/// The line of a byte that the log has: by halves, so of all the other lines a few are looked at, and no text.
fn find(connection: &Connection, log: Log, byte: u64) -> rusqlite::Result<LinePlace> {
    let mut statement = connection.prepare_cached(ENDS)?;
    // It is one of the lines behind `before`, up to `last`.
    let (mut before, mut first_byte, mut last) = (0, 0, log.end.lines);
    while before + 1 < last {
        let middle = before + (last - before) / 2;
        let ends: u64 = statement.query_row((log.id, middle), |row| row.get(0))?;
        if ends <= byte {
            (before, first_byte) = (middle, ends);
        } else {
            last = middle;
        }
    }
    Ok(LinePlace { number: last, first_byte })
}

const ENDS: &str = "SELECT ends FROM lines WHERE execution = ?1 AND number = ?2";

fn write(
    connection: &Connection,
    execution: &ExecutionId,
    lines: &[LogLine],
    terms: LogTerms,
) -> rusqlite::Result<Written> {
    let known = log(connection, execution)?;
    let before = known.unwrap_or_default().end;
    // This may have to be done again, so the lines stay.
    let written = before.take(lines.to_vec(), terms);
    if written.end == before {
        return Ok(written);
    }
    let id = keep_end(connection, execution, known, written.end)?;
    let mut insert = connection.prepare_cached(
        "INSERT INTO lines (execution, number, source, at, ends, text) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    let mut ends = before.bytes;
    let mut last: Option<(&LogLine, i64)> = None;
    for (number, line) in &written.lines {
        // Most lines come from where the one before them came from.
        let source = match last {
            Some((other, source)) if is_same_source(other, line) => source,
            Some(_) | None => source(connection, id, line)?,
        };
        ends += line.text_bytes();
        insert.execute((id, number, source, line.at.as_micros(), ends, &line.text))?;
        last = Some((line, source));
    }
    Ok(written)
}

/// Writes how far a log goes now, and gives its number.
fn keep_end(
    connection: &Connection,
    execution: &ExecutionId,
    known: Option<Log>,
    end: LogEnd,
) -> rusqlite::Result<i64> {
    let LogEnd { lines, bytes, is_cut, is_closed } = end;
    match known {
        Some(Log { id, .. }) => {
            let sql = "UPDATE executions SET lines = ?2, bytes = ?3, cut = ?4, closed = ?5 WHERE id = ?1";
            connection.prepare_cached(sql)?.execute((id, lines, bytes, is_cut, is_closed))?;
            Ok(id)
        }
        None => {
            let sql = "INSERT INTO executions (execution, lines, bytes, cut, closed) VALUES (?1, ?2, ?3, ?4, ?5) \
                       RETURNING id";
            let values = (execution.as_str(), lines, bytes, is_cut, is_closed);
            connection.prepare_cached(sql)?.query_row(values, |row| row.get(0))
        }
    }
}

fn is_same_source(one: &LogLine, other: &LogLine) -> bool {
    (&one.node, one.attempt, one.stream) == (&other.node, other.attempt, other.stream)
}

/// The number of a line's source, which is given one if it has none.
fn source(connection: &Connection, execution: i64, line: &LogLine) -> rusqlite::Result<i64> {
    let known = "SELECT id FROM sources WHERE execution = ?1 AND node = ?2 AND attempt = ?3 AND stream = ?4";
    let new = "INSERT INTO sources (execution, node, attempt, stream) VALUES (?1, ?2, ?3, ?4) RETURNING id";
    let values = (execution, node(line), line.attempt.0, number(line.stream));
    let known = connection.prepare_cached(known)?.query_row(values, |row| row.get(0)).optional()?;
    match known {
        Some(id) => Ok(id),
        None => connection.prepare_cached(new)?.query_row(values, |row| row.get(0)),
    }
}

fn decode(row: &Row<'_>) -> rusqlite::Result<(u64, LogLine)> {
    let node = match row.get_ref(1)?.as_str()? {
        "" => None,
        node => Some(NodeId::new(node).map_err(|why| error::unreadable(1, why))?),
    };
    let line = LogLine {
        node,
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
        let connection = crate::connection::writer(&path, &crate::schema::LOGS).unwrap();
        for (sql, walks) in [
            (READ, "lines USING PRIMARY KEY (execution=? AND number>?)"),
            (ENDS, "lines USING PRIMARY KEY (execution=? AND number=?)"),
            (LOG, "executions USING INDEX sqlite_autoindex_executions_1 (execution=?)"),
        ] {
            let plan = crate::list::tests::plan(&connection, sql);
            assert!(plan.contains(walks), "{sql}: {plan}");
            assert!(!plan.contains("SCAN") && !plan.contains("TEMP B-TREE"), "{sql}: {plan}");
        }
    }

    #[test]
    fn each_stream_is_read_as_what_was_written() {
        for one in [LogStream::Stdout, LogStream::Stderr, LogStream::Engine] {
            assert_eq!(stream(number(one)), Some(one));
        }
        assert_eq!(stream(0), None);
    }
}
