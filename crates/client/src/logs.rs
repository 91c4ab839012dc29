//! Logs: what the tasks of an execution write and what the engine says about them, in pages and as it happens.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::Stream;
use futures_util::stream::BoxStream;
use pyoco_api::{LogEntry, LogPage};
use reqwest::Method;

use crate::answer::Answer;
use crate::error::{Call, Error};
use crate::executions::filled;
use crate::resume::{Heard, Source};
use crate::sse::Frame;
use crate::transport::{Client, Outgoing, bad_answer};

/// The name of an event that holds a line.
const LINE: &str = "logEntry";
/// The name of the event that says that nothing more will come.
const END: &str = "status";

/// Whose log. A job is a run: both show the same lines, but a job that was deleted has none to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogOf {
    /// Of a job, by its id.
    Job(String),
    /// Of a run, by its id.
    Run(String),
}

impl LogOf {
    const fn place(&self) -> [&str; 2] {
        match self {
            Self::Job(id) => ["jobs", id.as_str()],
            Self::Run(id) => ["runs", id.as_str()],
        }
    }
}

/// Which lines of a log, and from where on. Empty texts count as not given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogFilter {
    /// Only lines of this task.
    pub task: Option<String>,
    /// `stdout`, `stderr` or `engine`: only lines of this stream.
    pub stream: Option<String>,
    /// Only lines behind this `nextToken`.
    pub since_token: Option<String>,
}

impl LogFilter {
    fn query(&self) -> Vec<(&'static str, String)> {
        filled([("task", &self.task), ("stream", &self.stream), ("sinceToken", &self.since_token)])
    }

    fn is_whole(&self) -> bool {
        self.query().is_empty()
    }
}

/// The lines of a log as they are written, a [`Stream`]. It ends when the execution has ended, or after an error.
pub struct LogStream {
    lines: BoxStream<'static, Result<Answer<LogEntry>, Error>>,
}

impl std::fmt::Debug for LogStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogStream").finish_non_exhaustive()
    }
}

impl Stream for LogStream {
    type Item = Result<Answer<LogEntry>, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.lines.as_mut().poll_next(context)
    }
}

impl Client {
    /// Reads a page of a log, oldest line first. Its `nextToken` is where to go on, now or later: a page that has no lines and the
    /// token that was sent says that there is nothing new. With filters a page may be empty and go on all the same.
    pub async fn get_log(
        &self,
        of: &LogOf,
        filter: &LogFilter,
        limit: Option<i64>,
    ) -> Result<Answer<LogPage>, Error> {
        let [kind, id] = of.place();
        let mut query = filter.query();
        query.extend(limit.map(|limit| ("limit", limit.to_string())));
        let outgoing = self.request(&Method::GET, &[kind, id, "logs"])?;
        self.json(outgoing.with(|call| call.query(&query))).await
    }

    /// Follows a log until its execution has ended: the lines that were written, then each as it is written. A gateway that is away
    /// is waited for, but for no longer than `patience`.
    pub async fn follow_log(
        &self,
        of: &LogOf,
        filter: &LogFilter,
        patience: Duration,
    ) -> Result<LogStream, Error> {
        let lines = Lines { of: of.clone(), filter: filter.clone(), last: None };
        Ok(LogStream { lines: self.follow(lines, patience).await? })
    }
}

struct Lines {
    of: LogOf,
    filter: LogFilter,
    /// The number of the last line that was given out.
    last: Option<u64>,
}

impl Lines {
    /// Whether this line may come next. With filters only the gateway knows which one does.
    fn is_next(&self, line: u64) -> bool {
        match self.last {
            None if self.filter.is_whole() => line == 1,
            None => line > 0,
            Some(last) if self.filter.task.is_none() && self.filter.stream.is_none() => line == last + 1,
            Some(last) => line > last,
        }
    }
}

impl Source for Lines {
    type Item = Answer<LogEntry>;

    fn request(&self, client: &Client) -> Result<Outgoing, Error> {
        let [kind, id] = self.of.place();
        let outgoing = client.request(&Method::GET, &[kind, id, "logs", "stream"])?;
        // A number wins over the token with which it all began.
        let outgoing = outgoing.with(|call| call.query(&self.filter.query()));
        Ok(match self.last {
            None => outgoing,
            Some(last) => outgoing.with(|call| call.header("last-event-id", last)),
        })
    }

    fn understand(&mut self, frame: &Frame, call: &Call) -> Result<Heard<Self::Item>, Error> {
        match frame.name.as_str() {
            LINE => {}
            END => return Ok(Heard::End),
            _ => return Ok(Heard::Nothing),
        }
        let json = serde_json::from_str(&frame.data);
        let line: Answer<LogEntry> = json
            .and_then(Answer::read)
            .map_err(|error| bad_answer(call, format!("a line has another form: {error}")))?;
        if self.last.is_some_and(|last| line.seq <= last) {
            return Ok(Heard::Nothing);
        }
        if !self.is_next(line.seq) {
            let last = self.last.unwrap_or(0);
            return Err(bad_answer(call, format!("line {} follows line {last}", line.seq)));
        }
        self.last = Some(line.seq);
        Ok(Heard::Item(line))
    }
}
