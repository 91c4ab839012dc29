//! What tasks wrote: each message at the execution's subject holds the lines of one call, numbered in its headers.

use std::hash::{BuildHasher as _, RandomState};

use async_trait::async_trait;
use bytes::Bytes;
use pyoco_core::digest::Digest;
use pyoco_core::ids::{Attempt, ExecutionId, NodeId};
use pyoco_core::time::Timestamp;
use pyoco_ports::{ErrorKind, LogLine, LogStream, StoreError, TaskLogs};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use crate::error::{self, PublishError};
use crate::message::{Headers, Stored};
use crate::recent::Recent;
use crate::{NatsStore, names, resources};

/// A message is ended here. More than a worker writes in one call, so that the lines of a call stay beside each other whoever
/// else writes.
const MOST_BYTES: usize = 512 * 1024;
/// How many executions whose end is remembered.
const REMEMBERED: usize = 20_000;
/// How many messages are asked for at once.
const PAGE: usize = 100;
/// How often lines are offered that others were faster with.
const ATTEMPTS: usize = 20;
/// Calls of one execution wait for each other; so do those of few others.
const TURNS: usize = 256;

/// The number of the first line of a message.
const FIRST: &str = "Pyoco-First-Line";
/// The number of its last line.
const LAST: &str = "Pyoco-Last-Line";

const WRITE: &str = "write lines";
const READ: &str = "read lines";

/// The last line of an execution and the message it stands in.
#[derive(Debug, Clone, Copy)]
struct End {
    line: u64,
    sequence: u64,
}

/// Where the logs end that were written lately, and where readers stand.
#[derive(Debug)]
pub(crate) struct Ends {
    ends: Recent<ExecutionId, End>,
    /// The message in which the line after this one is to be looked for.
    places: Recent<(ExecutionId, u64), u64>,
    /// What was sent and not answered: whoever writes the same again may find it there.
    doubts: Recent<ExecutionId, Digest>,
    turns: Vec<Mutex<()>>,
    hasher: RandomState,
}

impl Ends {
    pub(crate) fn new() -> Self {
        Self {
            ends: Recent::new(REMEMBERED),
            places: Recent::new(REMEMBERED),
            doubts: Recent::new(REMEMBERED),
            turns: std::iter::repeat_with(Mutex::default).take(TURNS).collect(),
            hasher: RandomState::new(),
        }
    }

    fn turn(&self, execution: &ExecutionId) -> Option<&Mutex<()>> {
        let place = self.hasher.hash_one(execution) % TURNS as u64;
        self.turns.get(usize::try_from(place).unwrap_or(0))
    }
}

/// A line as it stands in a message.
#[derive(Serialize, Deserialize)]
struct Line {
    node: NodeId,
    attempt: Attempt,
    stream: String,
    at: Timestamp,
    text: String,
}

#[async_trait]
impl TaskLogs for NatsStore {
    /// After `Timeout` the lines may be there. Whoever writes the same again next is not given them twice, unless others wrote to
    /// the execution in between, or there were so many that they took several messages.
    async fn write_lines(&self, execution: &ExecutionId, lines: Vec<LogLine>) -> Result<(), StoreError> {
        let messages = encode(lines)?;
        let _turn = match self.task_logs.turn(execution) {
            Some(turn) => Some(turn.lock().await),
            None => None,
        };
        for (count, payload) in messages {
            let written = self.write_message(execution, count, payload).await;
            if written.is_err() {
                self.task_logs.ends.remove(execution);
            }
            written?;
        }
        Ok(())
    }

    async fn read_lines(
        &self,
        execution: &ExecutionId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, LogLine)>, StoreError> {
        let subject = names::logs(execution);
        let Some(last) = self.last_lines(READ, &subject).await? else {
            return Ok(Vec::new());
        };
        let (first_line, last_line) = numbers(&last)?;
        if last_line <= after || limit == 0 {
            return Ok(Vec::new());
        }
        let end = last.sequence;
        let mut lines = Vec::new();
        if first_line <= after.saturating_add(1) {
            take(&last, after, limit, &mut lines)?;
        } else {
            let mut from = self.place(execution, &subject, after, end).await?;
            while from <= end && lines.len() < limit {
                let most = PAGE.min(limit - lines.len());
                let is_direct = self.resources.is_logs_direct;
                let page = self.connection.page(READ, names::LOGS, &subject, from, most, is_direct).await?;
                let Some(reached) = page.last().map(|message| message.sequence) else { break };
                from = reached.saturating_add(1);
                for message in &page {
                    take(message, after, limit, &mut lines)?;
                    if lines.len() >= limit {
                        // The next page begins in this message or behind it.
                        from = message.sequence;
                        break;
                    }
                }
            }
            if let Some((number, _)) = lines.last() {
                self.task_logs.places.put((execution.clone(), *number), from);
            }
        }
        Ok(lines)
    }
}

impl NatsStore {
    /// Stores a message behind the last one; its lines go on where that one ended.
    async fn write_message(
        &self,
        execution: &ExecutionId,
        count: u64,
        payload: Bytes,
    ) -> Result<(), StoreError> {
        let subject = names::logs(execution);
        let mut known = self.task_logs.ends.get(execution);
        let doubt = self.task_logs.doubts.remove(execution);
        let mut is_made_again = false;
        for _ in 0..ATTEMPTS {
            let end = match known {
                Some(end) => end,
                None => match self.last_lines(WRITE, &subject).await? {
                    Some(last) => {
                        let end = End { line: numbers(&last)?.1, sequence: last.sequence };
                        if last.payload == payload && doubt == Some(Digest::of_bytes(&payload)) {
                            self.task_logs.ends.put(execution.clone(), end);
                            return Ok(());
                        }
                        end
                    }
                    None => End { line: 0, sequence: 0 },
                },
            };
            let line = end.line.saturating_add(count);
            let headers = Headers::new()
                .number(FIRST, end.line.saturating_add(1))
                .number(LAST, line)
                .after(end.sequence);
            match self.connection.publish(WRITE, names::LOGS, &subject, headers, payload.clone()).await {
                Ok(published) => {
                    let end = End { line, sequence: published.sequence };
                    self.task_logs.ends.put(execution.clone(), end);
                    return Ok(());
                }
                Err(PublishError::WrongLastSequence) => known = None,
                // Somebody may have deleted it; without a leader the next attempt says so.
                Err(PublishError::NoStream) if !is_made_again => {
                    resources::ensure_logs(&self.connection, &self.settings).await?;
                    (known, is_made_again) = (None, true);
                }
                Err(error) => {
                    let error = error.into_store(WRITE);
                    if error.kind == ErrorKind::Timeout {
                        self.task_logs.doubts.put(execution.clone(), Digest::of_bytes(&payload));
                    }
                    return Err(error);
                }
            }
        }
        Err(StoreError::new(ErrorKind::Unavailable, WRITE, "others write to the same execution all the time"))
    }

    /// The last message of an execution. A stream that somebody has deleted has none.
    async fn last_lines(&self, operation: &'static str, subject: &str) -> Result<Option<Stored>, StoreError> {
        match self.connection.last(operation, names::LOGS, subject).await {
            Err(error) if error::is_missing(&error) => Ok(None),
            found => found,
        }
    }

    /// The sequence of the message that holds the line after this one, which is before `end`: where a reader stopped, or by halves.
    async fn place(
        &self,
        execution: &ExecutionId,
        subject: &str,
        after: u64,
        end: u64,
    ) -> Result<u64, StoreError> {
        if after == 0 {
            return Ok(1);
        }
        if let Some(place) = self.task_logs.places.get(&(execution.clone(), after)) {
            return Ok(place);
        }
        let (mut low, mut high) = (1, end);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.connection.next(READ, names::LOGS, middle, subject).await? {
                Some(message) if numbers(&message)?.1 <= after => low = message.sequence.saturating_add(1),
                // From here to the message there is nothing of ours, so the one that is wanted is not behind it.
                Some(_) | None => high = middle,
            }
        }
        Ok(low)
    }
}

/// The numbers of the first and the last line of a message.
fn numbers(message: &Stored) -> Result<(u64, u64), StoreError> {
    match (message.headers.get_number(FIRST), message.headers.get_number(LAST)) {
        (Some(first), Some(last)) if first > 0 && first <= last => Ok((first, last)),
        (Some(_) | None, _) => {
            let why =
                format!("message {} at {} does not number its lines", message.sequence, message.subject);
            Err(error::corrupt(READ, why))
        }
    }
}

/// The lines of a message after a number, until there are enough.
fn take(
    message: &Stored,
    after: u64,
    limit: usize,
    lines: &mut Vec<(u64, LogLine)>,
) -> Result<(), StoreError> {
    let (first, last) = numbers(message)?;
    if last <= after {
        return Ok(());
    }
    let found: Vec<Line> =
        serde_json::from_slice(&message.payload).map_err(|why| error::corrupt(READ, why))?;
    for (number, line) in (first..=last).zip(found) {
        if number > after && lines.len() < limit {
            lines.push((number, decode(line)?));
        }
    }
    Ok(())
}

/// Messages of a bounded size, each with the number of its lines.
fn encode(lines: Vec<LogLine>) -> Result<Vec<(u64, Bytes)>, StoreError> {
    let mut messages = Vec::new();
    let (mut count, mut payload) = (0, Vec::new());
    let mut end = |count: &mut u64, payload: &mut Vec<u8>| {
        if *count > 0 {
            payload.push(b']');
            messages.push((std::mem::take(count), Bytes::from(std::mem::take(payload))));
        }
    };
    for line in lines {
        let LogLine { node, attempt, stream, at, text } = line;
        let line = Line { node, attempt, stream: stream.name().to_owned(), at, text };
        let line = serde_json::to_vec(&line).map_err(|error| error::internal(WRITE, error))?;
        if payload.len() + line.len() > MOST_BYTES {
            end(&mut count, &mut payload);
        }
        payload.push(if count == 0 { b'[' } else { b',' });
        payload.extend_from_slice(&line);
        count += 1;
    }
    end(&mut count, &mut payload);
    Ok(messages)
}

fn decode(line: Line) -> Result<LogLine, StoreError> {
    let Line { node, attempt, stream, at, text } = line;
    let stream = [LogStream::Stdout, LogStream::Stderr, LogStream::Engine]
        .into_iter()
        .find(|one| one.name() == stream)
        .ok_or_else(|| error::corrupt(READ, format!("there is no stream {stream:?}")))?;
    Ok(LogLine { node, attempt, stream, at, text })
}
