//! Adds the lines of one call to a log.
//!
//! Several processes write to one log. What is kept of a call is decided on the end that was seen last, and stored only if that still
//! is the end: nothing is stored twice or beyond the limit, whoever was faster. Whoever was slower looks and decides again.

use std::time::Duration;

use pyoco_core::digest::Digest;
use pyoco_core::ids::ExecutionId;
use pyoco_ports::{ErrorKind, LogEnd, LogLine, LogTerms, StoreError, Written};

use super::piece::{self, Piece};
use super::{Known, WRITE, last, unless_missing};
use crate::error::PublishError;
use crate::message::Stored;
use crate::post::Haste;
use crate::{NatsStore, names, resources};

/// How often lines are offered that others were faster with. Without pauses: whoever looks and then writes is slower than whoever
/// remembers the end and only writes, and has to be there when that one makes room.
const ATTEMPTS: u32 = 1_000;
/// After so many messages without a look whoever writes makes room for others, for long enough that they look and write.
const MOST_IN_A_ROW: u32 = 128;
const ROOM_FOR_OTHERS: Duration = Duration::from_millis(2);
/// Between two looks at a call that somebody else has not finished, and how many looks without a change mean that nobody will.
const TURN_PAUSE: Duration = Duration::from_millis(1);
const TURN_LOOKS: u32 = 300;
/// What the protocol and our headers need beside the lines.
const ROOM: usize = 4 * 1024;

/// A call that failed when a part of it was stored, or may have been. Whoever tries again says the same again.
#[derive(Debug, Clone)]
pub(super) struct Unfinished {
    call: Digest,
    /// The messages that are stored.
    stored: Vec<u64>,
    sent: Option<Sent>,
}

/// A message that was sent and not answered. If it was stored, it stands right behind the one that it was decided on.
#[derive(Debug, Clone)]
struct Sent {
    behind: u64,
    payload: Digest,
}

/// A call on its way.
struct Call<'a> {
    store: &'a NatsStore,
    execution: &'a ExecutionId,
    subject: String,
    lines: &'a [LogLine],
    terms: LogTerms,
    /// What is stored of it: the first so many of its lines, and perhaps the mark of the limit.
    written: Vec<(u64, LogLine)>,
    stored: Vec<u64>,
    sent: Option<Sent>,
}

impl NatsStore {
    pub(super) async fn write_call(
        &self,
        execution: &ExecutionId,
        lines: Vec<LogLine>,
        terms: LogTerms,
    ) -> Result<Written, StoreError> {
        let _turn = self.task_logs.turn(execution).await;
        let mut call = Call {
            store: self,
            execution,
            subject: names::logs(execution),
            lines: &lines,
            terms,
            written: Vec::new(),
            stored: Vec::new(),
            sent: None,
        };
        let unfinished = &self.task_logs.unfinished;
        if let Some(before) = unfinished.get(execution)
            && before.call == call.name()
        {
            // When this fails it stays unfinished as it was.
            call.take_up(before).await?;
        }
        let end = call.write().await;
        match end {
            Ok(end) => {
                unfinished.remove(execution);
                Ok(Written { lines: call.written, end })
            }
            Err(error) => {
                self.task_logs.ends.remove(execution);
                unfinished.remove(execution);
                if !call.stored.is_empty() || call.sent.is_some() {
                    let name = call.name();
                    let Call { stored, sent, .. } = call;
                    unfinished.put(execution.clone(), Unfinished { call: name, stored, sent });
                }
                Err(error)
            }
        }
    }
}

impl Call<'_> {
    /// The same for the same lines under the same terms.
    fn name(&self) -> Digest {
        Digest::of_bytes(format!("{:?} {:?}", self.terms, self.lines).as_bytes())
    }

    /// Goes on where the same call failed.
    async fn take_up(&mut self, before: Unfinished) -> Result<(), StoreError> {
        for sequence in before.stored {
            let found = self.store.connection.at(WRITE, names::LOGS, sequence).await;
            match unless_missing(found)? {
                Some(message) if message.subject == self.subject => self.found(&message)?,
                // The stream was made anew: nothing of it is there.
                Some(_) | None => {
                    (self.written, self.stored) = (Vec::new(), Vec::new());
                    return Ok(());
                }
            }
        }
        self.sent = before.sent;
        Ok(())
    }

    /// A message of this call is stored.
    fn found(&mut self, message: &Stored) -> Result<(), StoreError> {
        for line in Piece::of(message)?.lines(message)? {
            self.written.push(line?);
        }
        self.stored.push(message.sequence);
        Ok(())
    }

    /// Stores what is not stored yet, and gives the end of the log after it.
    async fn write(&mut self) -> Result<LogEnd, StoreError> {
        let mut is_made_again = false;
        let says_something = !self.lines.is_empty() || self.terms.closes;
        let is_new = self.stored.is_empty() && self.sent.is_none();
        // What was remembered will do to write behind: if it is old, the server says so. It will not do to be told. Where nothing is
        // remembered there is mostly no log yet.
        let remembered = self.store.task_logs.ends.get(self.execution).unwrap_or_default();
        let mut known = Some(remembered).filter(|_| says_something && is_new);
        if known.is_some_and(|known| known.in_a_row >= MOST_IN_A_ROW) {
            self.look().await?;
            tokio::time::sleep(ROOM_FOR_OTHERS).await;
            known = None;
        }
        // Who follows a run has heard of its end by then. Whoever others were faster than is in a hurry.
        let mut haste = if self.terms.closes { Haste::Later } else { Haste::Now };
        for _ in 0..ATTEMPTS {
            let behind = match known.take() {
                Some(known) => known,
                None => self.look().await?,
            };
            let rest = self.lines.get(self.written.len()..).unwrap_or_default().to_vec();
            let Written { lines: kept, end } = behind.end.take(rest, self.terms);
            if end == behind.end {
                self.store.task_logs.ends.put(self.execution.clone(), behind);
                return Ok(end);
            }
            match self.store(haste, behind, kept, end).await {
                Ok(()) => return Ok(end),
                // Somebody was faster, or a cluster is still at work on a neighbour, which a look does not show yet.
                Err(PublishError::WrongLastSequence) => haste = Haste::Now,
                // Somebody may have deleted it; without a leader the next attempt says so.
                Err(PublishError::NoStream) if !is_made_again => {
                    resources::ensure_logs(&self.store.connection, &self.store.settings).await?;
                    is_made_again = true;
                }
                Err(error) => return Err(error.into_store(WRITE)),
            }
        }
        Err(StoreError::new(ErrorKind::Unavailable, WRITE, "others write to the same execution all the time"))
    }

    /// Stores lines behind an end, in as many messages as they take.
    async fn store(
        &mut self,
        haste: Haste,
        mut behind: Known,
        kept: Vec<(u64, LogLine)>,
        end: LogEnd,
    ) -> Result<(), PublishError> {
        let connection = &self.store.connection;
        let most = piece::USUAL_BYTES.min(connection.max_payload().saturating_sub(ROOM));
        let pieces = piece::split(behind.end, &kept, end, most)?;
        let mut kept = kept.into_iter();
        for (piece, payload) in pieces {
            let headers = piece.headers().after(behind.sequence);
            let published =
                connection.publish_with(haste, WRITE, names::LOGS, &self.subject, headers, payload.clone());
            match published.await {
                Ok(published) => {
                    let in_a_row = behind.in_a_row.saturating_add(1);
                    behind = Known { end: piece.end, sequence: published.sequence, in_a_row };
                    self.store.task_logs.ends.put(self.execution.clone(), behind);
                    let count = usize::try_from(piece.count()).unwrap_or(usize::MAX);
                    self.written.extend(kept.by_ref().take(count));
                    self.stored.push(published.sequence);
                    self.sent = None;
                }
                Err(PublishError::Store(error)) if error.kind == ErrorKind::Timeout => {
                    self.sent = Some(Sent { behind: behind.sequence, payload: Digest::of_bytes(&payload) });
                    return Err(error.into());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The end of the log as the leader has it. A call that somebody else has not finished is waited for, unless nobody is at it.
    async fn look(&mut self) -> Result<Known, StoreError> {
        let (mut seen, mut looks) = (0, 0);
        loop {
            self.look_for_sent().await?;
            let Some(last) = last(&self.store.connection, WRITE, &self.subject).await? else {
                return Ok(Known::default());
            };
            let piece = Piece::of(&last)?;
            let is_ours = self.stored.last() == Some(&last.sequence);
            looks = if seen == last.sequence { looks + 1 } else { 0 };
            if !piece.has_more || is_ours || looks > TURN_LOOKS {
                return Ok(Known::of(piece, &last));
            }
            seen = last.sequence;
            tokio::time::sleep(TURN_PAUSE).await;
        }
    }

    /// What became of a message that was not answered: stored, or refused because another one stands there. If neither is, it may
    /// still come, and be refused if ours is faster.
    async fn look_for_sent(&mut self) -> Result<(), StoreError> {
        let Some(sent) = &self.sent else { return Ok(()) };
        let from = sent.behind.saturating_add(1);
        let found = self.store.connection.next(WRITE, names::LOGS, from, &self.subject).await;
        if let Some(message) = unless_missing(found)? {
            let is_it = Digest::of_bytes(&message.payload) == sent.payload;
            self.sent = None;
            if is_it {
                self.found(&message)?;
            }
        }
        Ok(())
    }
}
