//! Logs of jobs: how fast lines get into them and out of them. The same for the embedded store and for NATS.

mod ages;
mod lines;
mod unchanged;

use std::fmt;

use crate::Failure;
use crate::figures::{Figures, Metric};
use crate::http::Address;
use crate::stats::Figure;
use crate::subject::Stack;

/// How many follow one log.
pub(crate) const FOLLOWERS: usize = 50;
/// How many lines that log has.
pub(crate) const FOLLOWED_ROWS: usize = 50_000;
/// How many lines the log has that does not change. They are short: all of them are within the limit of a log.
pub(crate) const LONG_ROWS: usize = 1_000_000;

/// What writes lines as fast as it can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Writer {
    Command,
    Python,
}

impl Writer {
    /// How many it writes.
    pub(crate) fn rows(self) -> usize {
        match self {
            Self::Command => 200_000,
            Self::Python => 100_000,
        }
    }
}

impl fmt::Display for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Command => "one command",
            Self::Python => "one Python task",
        })
    }
}

/// How somebody reads a log while it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reader {
    Sse,
    WebSocket,
    Polling,
}

impl fmt::Display for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sse => "SSE",
            Self::WebSocket => "WebSocket",
            Self::Polling => "asking every 200 ms",
        })
    }
}

/// Lines a second: of one task into the store, and on to many who follow.
pub(crate) async fn lines(stack: &Stack, figures: &mut Figures) -> Result<(), Failure> {
    lines::warm_up(stack.address).await?;
    for writer in [Writer::Command, Writer::Python] {
        figures.keep(Metric::LogLines { writer }, lines::stored(stack.address, writer).await);
    }
    figures.keep(Metric::LogLinesFollowed, lines::followed(stack).await);
    Ok(())
}

/// How old lines are when they are seen.
pub(crate) async fn ages(stack: &Stack, figures: &mut Figures) -> Result<(), Failure> {
    for (reader, ages) in ages::measure(stack).await? {
        figures.keep(Metric::LogAge { reader }, Ok(Figure::of(ages, 0)));
    }
    Ok(())
}

/// How long it takes to be told that a long log has not changed.
pub(crate) async fn not_modified(stack: &Stack) -> Result<Option<Figure>, Failure> {
    unchanged::measure(stack.address).await
}

/// The same of a log that is there already.
pub(crate) async fn unchanged(address: Address, path: &str, times: usize) -> Result<Option<Figure>, Failure> {
    unchanged::ask(address, path, times).await
}
