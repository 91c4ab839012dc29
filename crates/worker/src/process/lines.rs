//! What a process writes, as lines: read while it runs, stored in batches, never more in memory than a few reads.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;

use pyoco_core::ids::{Attempt, ExecutionId, NodeId};
use pyoco_engine::{Clock, Lines};
use pyoco_ports::{LogLine, LogStream};
use tokio::net::unix::pipe::{self, Receiver};
use tokio_util::sync::CancellationToken;

/// A longer line is split.
const LONGEST_LINE: usize = 64 * 1024;
/// One read, and when lines that are waiting are stored although more could be read.
const READ: usize = 64 * 1024;
const BATCH: usize = 64 * 1024;
/// The same for many short lines, of which each is more in memory than its text.
const MOST_LINES: usize = 4_000;
/// So much is made lines of before they are counted.
const PIECE: usize = 4 * 1024;
/// After the end of an attempt at most so much is still read: a pipe holds less, unless somebody goes on writing.
const LEFT_OVER: usize = 2 << 20;
/// Lines that an error message may quote.
const KEPT_LINES: usize = 20;
const KEPT_BYTES: usize = 400;

/// A pipe: the end that a process writes to, and ours.
pub(crate) fn pipe() -> io::Result<(OwnedFd, Pipe)> {
    let (sender, receiver) = pipe::pipe()?;
    let now = File::from(receiver.as_fd().try_clone_to_owned()?);
    Ok((sender.into_blocking_fd()?, Pipe { receiver, now, buffer: Vec::new() }))
}

/// Our end of a process's stdout or stderr.
#[derive(Debug)]
pub(crate) struct Pipe {
    receiver: Receiver,
    /// The same pipe, for asking it at once: the receiver knows only what the runtime has noticed so far.
    now: File,
    buffer: Vec<u8>,
}

impl Pipe {
    /// Reads until the writers are gone, or until `done`; what was written before `done` is read to the end.
    pub(crate) async fn pump(&mut self, scribe: &mut Scribe<'_>, done: &CancellationToken) {
        loop {
            tokio::select! {
                // First, so that a child which goes on writing does not hold its parent's attempt.
                biased;
                () = done.cancelled() => break,
                ready = self.receiver.readable() => if ready.is_err() { break },
            }
            self.buffer.resize(READ, 0);
            match self.receiver.try_read(&mut self.buffer) {
                Ok(0) => break,
                Ok(size) => {
                    scribe.listen(self.buffer.get(..size).unwrap_or_default()).await;
                    self.drain(scribe, BATCH.saturating_sub(size)).await;
                    scribe.store().await;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => break,
            }
        }
        // A child that goes on writing is not listened to for ever.
        let mut left = LEFT_OVER;
        while left > 0 {
            let read = self.drain(scribe, BATCH.min(left)).await;
            scribe.store().await;
            if read == 0 {
                break;
            }
            left = left.saturating_sub(read);
        }
        scribe.finish();
        scribe.store().await;
    }

    /// Reads what is there now, and says how much it was. A process that has answered wrote everything before, so nothing of it is
    /// missed.
    async fn drain(&mut self, scribe: &mut Scribe<'_>, limit: usize) -> usize {
        let mut total = 0;
        self.buffer.resize(READ, 0);
        while total < limit {
            match self.now.read(&mut self.buffer) {
                Ok(0) => break,
                Ok(size) => {
                    scribe.listen(self.buffer.get(..size).unwrap_or_default()).await;
                    total += size;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        total
    }
}

/// Whose lines they are, and where they go.
pub(crate) struct TaskLines {
    pub(crate) logs: Lines,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) task: String,
    /// Without an attempt (modules that are imported while a flow is loaded) lines are told to the operator only.
    pub(crate) attempt: Option<(ExecutionId, NodeId, Attempt)>,
}

/// Makes lines of bytes.
pub(crate) struct Scribe<'a> {
    whose: &'a TaskLines,
    stream: LogStream,
    partial: Vec<u8>,
    /// The last byte was a carriage return, and it ended a line.
    returned: bool,
    lines: Vec<LogLine>,
    /// The log takes no more. The task is still listened to, so that it can go on.
    is_full: bool,
    last: VecDeque<String>,
    kept: VecDeque<u8>,
    keep: usize,
    total: usize,
}

impl TaskLines {
    fn run_id(&self) -> &str {
        self.attempt.as_ref().map_or("", |(execution, _, _)| execution.as_str())
    }
}

impl<'a> Scribe<'a> {
    pub(crate) fn new(whose: &'a TaskLines, stream: LogStream) -> Self {
        let (lines, last, kept) = (Vec::new(), VecDeque::new(), VecDeque::new());
        let (partial, returned, is_full) = (Vec::new(), false, false);
        Self { whose, stream, partial, returned, lines, is_full, last, kept, keep: 0, total: 0 }
    }

    /// Keeps the last bytes for `kept`.
    pub(crate) fn keeping(self, bytes: usize) -> Self {
        Self { keep: bytes, ..self }
    }

    /// The kept text without the line breaks at its end, and whether something before it was left out.
    pub(crate) fn kept(&mut self) -> (String, bool) {
        let text = String::from_utf8_lossy(self.kept.make_contiguous());
        (text.trim_end_matches(['\n', '\r']).to_owned(), self.total > self.keep)
    }

    /// The last lines, for an error message.
    pub(crate) fn last_lines(&self) -> String {
        self.last.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }

    /// Hears bytes, and stores lines in between when they become many.
    async fn listen(&mut self, bytes: &[u8]) {
        for piece in bytes.chunks(PIECE) {
            self.hear(piece);
            if self.lines.len() >= MOST_LINES {
                self.store().await;
            }
        }
    }

    fn hear(&mut self, mut bytes: &[u8]) {
        if self.keep > 0 {
            self.total += bytes.len();
            self.kept.extend(bytes.get(bytes.len().saturating_sub(self.keep)..).unwrap_or_default());
            self.kept.drain(..self.kept.len().saturating_sub(self.keep));
        }
        // Progress bars go back to the beginning of their line: each state of one is a line.
        while let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (line, rest) = bytes.split_at(end);
            self.extend(line);
            let is_return = rest.first() == Some(&b'\r');
            let was_returned = std::mem::replace(&mut self.returned, false);
            match (is_return, self.partial.is_empty()) {
                // The second half of a line break, or a way back to where one is already.
                (false, true) if was_returned && line.is_empty() => {}
                (true, true) => self.returned = was_returned && line.is_empty(),
                (false, _) => self.end_line(),
                (true, false) => {
                    self.end_line();
                    self.returned = true;
                }
            }
            bytes = rest.get(1..).unwrap_or_default();
        }
        if !bytes.is_empty() {
            self.returned = false;
        }
        self.extend(bytes);
    }

    /// Adds to the line that is not finished, and splits it where it becomes too long.
    fn extend(&mut self, mut bytes: &[u8]) {
        while self.partial.len() + bytes.len() > LONGEST_LINE {
            let (now, later) = bytes.split_at(LONGEST_LINE - self.partial.len());
            self.partial.extend_from_slice(now);
            let whole = whole_characters(&self.partial);
            let cut = self.partial.split_off(whole);
            self.end_line();
            self.partial = cut;
            bytes = later;
        }
        self.partial.extend_from_slice(bytes);
    }

    fn end_line(&mut self) {
        let text = String::from_utf8_lossy(&self.partial).into_owned();
        self.partial.clear();
        if !self.is_full {
            let (run_id, task, stream) = (self.whose.run_id(), &self.whose.task, self.stream.name());
            tracing::info!(target: "pyoco_server.task", run_id, task, stream, "{text}");
        }
        if self.last.len() == KEPT_LINES {
            self.last.pop_front();
        }
        let kept = text.get(..text.floor_char_boundary(KEPT_BYTES)).unwrap_or_default();
        self.last.push_back(kept.to_owned());
        if let Some((_, node, attempt)) = self.whose.attempt.as_ref().filter(|_| !self.is_full) {
            let (node, at) = (Some(node.clone()), self.whose.clock.now());
            self.lines.push(LogLine { node, attempt: *attempt, stream: self.stream, at, text });
        }
    }

    /// A line need not be finished to be one.
    fn finish(&mut self) {
        if !self.partial.is_empty() {
            self.end_line();
        }
    }

    /// Stores what was heard. Whoever writes faster than that waits at its pipe.
    async fn store(&mut self) {
        let Some((run_id, _, _)) = self.whose.attempt.as_ref().filter(|_| !self.lines.is_empty()) else {
            return;
        };
        // The task is worth more than its words. Who writes them has said what became of them.
        if let Ok(end) = self.whose.logs.write(run_id, std::mem::take(&mut self.lines)).await {
            self.is_full = end.is_cut || end.is_closed;
        }
    }
}

/// How many of these bytes there are before a character that only begins at their end.
fn whole_characters(bytes: &[u8]) -> usize {
    // No character has more than four bytes: looking at the last three tells.
    let tail = bytes.len().saturating_sub(3);
    let begins = bytes.iter().enumerate().skip(tail).rev().find(|(_, byte)| **byte & 0xc0 != 0x80);
    match begins {
        Some((at, first)) => {
            let wanted = match first.leading_ones() {
                2..=4 => first.leading_ones() as usize,
                _ => 1,
            };
            if at + wanted > bytes.len() { at } else { bytes.len() }
        }
        None => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Noon;

    impl Clock for Noon {
        fn now(&self) -> pyoco_core::time::Timestamp {
            pyoco_core::time::Timestamp::from_micros(0)
        }
    }

    fn lines_of(chunks: &[&[u8]]) -> Vec<String> {
        let whose = TaskLines {
            logs: Lines::new(Arc::new(pyoco_store_memory::MemoryStore::new()), u64::MAX),
            clock: Arc::new(Noon),
            task: "t".to_owned(),
            attempt: Some((ExecutionId::new("e-1").unwrap(), NodeId::new("t").unwrap(), Attempt(1))),
        };
        let mut scribe = Scribe::new(&whose, LogStream::Stdout);
        for chunk in chunks {
            scribe.hear(chunk);
        }
        scribe.finish();
        scribe.lines.into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn lines_are_found_wherever_the_reads_fall() {
        assert_eq!(lines_of(&[b"one\ntw", b"o\r\n", b"\nthree"]), ["one", "two", "", "three"]);
        assert_eq!(lines_of(&[]), [""; 0]);
    }

    #[test]
    fn each_state_of_a_progress_bar_is_a_line() {
        assert_eq!(lines_of(&[b"\r10%\r20%", b"\r30%\ndone\n"]), ["10%", "20%", "30%", "done"]);
        assert_eq!(lines_of(&[b"10%\r", b"20%\r", b"\n", b"\r\n\nx\r\r\n"]), ["10%", "20%", "", "", "x"]);
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        assert_eq!(lines_of(&[b"a\xffb\n"]), ["a\u{fffd}b"]);
    }

    #[test]
    fn a_long_line_with_bytes_that_are_no_text_is_split_between_characters_too() {
        let mut bytes = b"\xffx".to_vec();
        bytes.extend("é".repeat(LONGEST_LINE).bytes());
        let lines = lines_of(&[&bytes, b"\n"]);
        assert_eq!(lines.concat(), format!("\u{fffd}x{}", "é".repeat(LONGEST_LINE)));
    }

    #[test]
    fn a_long_line_is_split_between_characters() {
        let text = format!("x{}", "é".repeat(LONGEST_LINE));
        let lines = lines_of(&[text.as_bytes(), b"\n"]);
        assert_eq!(lines.concat(), text);
        assert!(lines.len() == 3 && lines.iter().all(|line| line.len() <= LONGEST_LINE));
    }
}
