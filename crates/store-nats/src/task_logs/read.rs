//! Finds lines by their number or by a byte of the text: the place by halves, then page by page.

use pyoco_core::ids::ExecutionId;
use pyoco_ports::{LinePlace, LogLine, StoreError};

use super::piece::{self, Piece};
use super::{READ, last};
use crate::message::Stored;
use crate::stream::Most;
use crate::{NatsStore, names};

/// How many messages are asked for at once, and how many bytes of them: more than one message of any size.
const PAGE: usize = 100;
const PAGE_BYTES: usize = 2 << 20;
/// With so much text a reader has enough.
const ENOUGH: usize = 1 << 20;

/// Lines for a reader.
struct Page {
    after: u64,
    limit: usize,
    lines: Vec<(u64, LogLine)>,
    bytes: usize,
}

impl Page {
    const fn is_full(&self) -> bool {
        self.lines.len() >= self.limit || self.bytes >= ENOUGH
    }

    /// Takes what is wanted of a message.
    fn take(&mut self, message: &Stored) -> Result<(), StoreError> {
        let piece = Piece::of(message)?;
        if piece.end.lines <= self.after {
            return Ok(());
        }
        for line in piece.lines(message)? {
            let (number, line) = line?;
            if number > self.after && !self.is_full() {
                self.bytes += line.text.len();
                self.lines.push((number, line));
            }
        }
        Ok(())
    }
}

impl NatsStore {
    pub(super) async fn lines_after(
        &self,
        execution: &ExecutionId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, LogLine)>, StoreError> {
        let subject = names::logs(execution);
        let mut page = Page { after, limit, lines: Vec::new(), bytes: 0 };
        let Some(last) = last(&self.connection, READ, &subject).await? else { return Ok(page.lines) };
        let piece = Piece::of(&last)?;
        if piece.end.lines <= after || limit == 0 {
            return Ok(page.lines);
        }
        if piece.first_line <= after.saturating_add(1) {
            page.take(&last)?;
            return Ok(page.lines);
        }
        let end = last.sequence;
        let mut from = match self.task_logs.places.get(&(execution.clone(), after)) {
            _ if after == 0 => 1,
            Some(place) if place <= end => place,
            // Not known, or the stream was made anew.
            Some(_) | None => self.first(&subject, last, |piece| piece.end.lines > after).await?.sequence,
        };
        while from <= end && !page.is_full() {
            let most = Most { messages: PAGE.min(limit - page.lines.len()), bytes: PAGE_BYTES };
            let is_direct = self.resources.is_logs_direct;
            let messages = self.connection.page(READ, names::LOGS, &subject, from, most, is_direct).await?;
            let Some(reached) = messages.last().map(|message| message.sequence) else { break };
            from = reached.saturating_add(1);
            for message in &messages {
                page.take(message)?;
                if page.is_full() {
                    // The next page begins in this message or behind it.
                    from = message.sequence;
                    break;
                }
            }
        }
        if let Some((number, _)) = page.lines.last() {
            self.task_logs.places.put((execution.clone(), *number), from);
        }
        Ok(page.lines)
    }

    pub(super) async fn line_with(
        &self,
        execution: &ExecutionId,
        byte: u64,
    ) -> Result<Option<LinePlace>, StoreError> {
        let subject = names::logs(execution);
        let Some(last) = last(&self.connection, READ, &subject).await? else { return Ok(None) };
        let piece = Piece::of(&last)?;
        if piece.end.bytes <= byte {
            return Ok(None);
        }
        let message = if piece.first_byte <= byte {
            last
        } else {
            self.first(&subject, last, |piece| piece.end.bytes > byte).await?
        };
        let piece = Piece::of(&message)?;
        let mut first_byte = piece.first_byte;
        for line in piece.lines(&message)? {
            let (number, line) = line?;
            let end = first_byte.saturating_add(line.text_bytes());
            if byte < end {
                // Whoever asks reads on from here.
                self.task_logs.places.put((execution.clone(), number.saturating_sub(1)), message.sequence);
                return Ok(Some(LinePlace { number, first_byte }));
            }
            first_byte = end;
        }
        Err(piece::nonsense(&message))
    }

    /// The first message of a log with which something is so, and stays so; it is so with the last one.
    async fn first(
        &self,
        subject: &str,
        last: Stored,
        is_so: impl Fn(&Piece) -> bool + Send + Sync,
    ) -> Result<Stored, StoreError> {
        let (mut low, mut high) = (1, last.sequence);
        // The first one from `high` on.
        let mut found = last;
        while low < high {
            let middle = low + (high - low) / 2;
            match self.connection.next(READ, names::LOGS, middle, subject).await? {
                Some(message) if !is_so(&Piece::of(&message)?) => low = message.sequence.saturating_add(1),
                Some(message) => (high, found) = (middle, message),
                None => high = middle,
            }
        }
        Ok(found)
    }
}
