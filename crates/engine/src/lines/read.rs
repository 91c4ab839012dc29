//! Reading a log: its end, a page of it, a stretch of its text.

use futures_util::{Stream, stream};
use pyoco_core::ids::ExecutionId;
use pyoco_ports::{LogEnd, LogLine, LogStream};

use crate::{Engine, EngineError};

/// So many lines are read at once, and so much text.
pub(super) const LINES_AT_ONCE: usize = 1_000;
pub(super) const TEXT_AT_ONCE: usize = 1 << 20;
/// So many lines are looked at for one page: what a filter leaves out costs, too.
const LOOKED_AT: u64 = 10_000;

/// Which lines are wanted. Nothing set wants all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LineFilter {
    /// Of this task: the id of a node, or the last part of it.
    pub task: Option<String>,
    /// From this stream.
    pub stream: Option<LogStream>,
}

impl LineFilter {
    /// Whether a line is wanted.
    pub fn wants(&self, line: &LogLine) -> bool {
        let is_of = |task: &String| {
            let node = line.node.as_ref().map(|node| node.as_str());
            node.is_some_and(|node| node == task || node.rsplit('/').next() == Some(task))
        };
        self.stream.is_none_or(|stream| line.stream == stream) && self.task.as_ref().is_none_or(is_of)
    }

    /// Whether all lines are wanted.
    pub const fn is_empty(&self) -> bool {
        self.task.is_none() && self.stream.is_none()
    }
}

/// A page of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPage {
    /// The lines, with their numbers.
    pub lines: Vec<(u64, LogLine)>,
    /// Everything up to this line was looked at: the next page goes on behind it.
    pub reached: u64,
}

impl Engine {
    /// How far the log of an execution goes.
    pub async fn log_end(&self, execution: &ExecutionId) -> Result<LogEnd, EngineError> {
        Ok(self.store.log_end(execution).await?)
    }

    /// Lines behind one, oldest first, so many at most. A page may be short: it holds a bounded amount of text, and only so many
    /// lines are looked at. When it reaches no further than before there is nothing new.
    pub async fn log_page(
        &self,
        execution: &ExecutionId,
        after: u64,
        limit: usize,
        filter: &LineFilter,
    ) -> Result<LogPage, EngineError> {
        let mut page = LogPage { lines: Vec::new(), reached: after };
        let mut text = 0;
        while page.lines.len() < limit && text < TEXT_AT_ONCE && page.reached - after < LOOKED_AT {
            let wanted = if filter.is_empty() { limit - page.lines.len() } else { LINES_AT_ONCE };
            let read = self.store.read_lines(execution, page.reached, wanted.min(LINES_AT_ONCE)).await?;
            if read.is_empty() {
                break;
            }
            for (number, line) in read {
                if page.lines.len() >= limit {
                    break;
                }
                page.reached = number;
                if filter.wants(&line) {
                    text += line.text.len();
                    page.lines.push((number, line));
                }
            }
        }
        Ok(page)
    }

    /// The bytes of the text from one up to another, which is not one of them, in pieces. They are read as they are asked for.
    pub fn log_text(
        &self,
        execution: &ExecutionId,
        from: u64,
        until: u64,
    ) -> impl Stream<Item = Result<Vec<u8>, EngineError>> + Send + 'static {
        let text = Text { engine: self.clone(), execution: execution.clone(), from, until, after: None };
        stream::try_unfold(text, |mut text| async move { Ok(text.next().await?.map(|bytes| (bytes, text))) })
    }
}

/// A stretch of text that is being read.
struct Text {
    engine: Engine,
    execution: ExecutionId,
    /// The first byte that is still wanted, and the first one that is not.
    from: u64,
    until: u64,
    /// The last line that was read, and the byte behind it.
    after: Option<(u64, u64)>,
}

impl Text {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, EngineError> {
        if self.from >= self.until {
            return Ok(None);
        }
        let (after, begins) = match self.after {
            Some(known) => known,
            None => match self.engine.store.line_at(&self.execution, self.from).await? {
                Some(place) => (place.number - 1, place.first_byte),
                None => return Ok(None),
            },
        };
        let lines = self.engine.store.read_lines(&self.execution, after, LINES_AT_ONCE).await?;
        let Some((last, _)) = lines.last() else { return Ok(None) };
        let last = *last;
        let mut text = String::new();
        for (_, line) in &lines {
            line.write_to(&mut text);
        }
        let ends = begins + text.len() as u64;
        let skipped = usize::try_from(self.from.saturating_sub(begins)).unwrap_or(usize::MAX);
        let wanted = usize::try_from(self.until.min(ends).saturating_sub(begins)).unwrap_or(usize::MAX);
        let mut bytes = text.into_bytes();
        bytes.truncate(wanted);
        bytes.drain(..skipped.min(bytes.len()));
        self.from += bytes.len() as u64;
        self.after = Some((last, ends));
        Ok(Some(bytes))
    }
}
