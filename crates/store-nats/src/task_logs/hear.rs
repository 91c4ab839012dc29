//! Listens to one log: a plain subscription to its subject, which costs the servers nothing when nobody listens, and tells at once when
//! something is sent there.
//!
//! What is heard is what a writer sent, at the moment when the stream gets it: it may not be stored yet, and may be refused. So it is
//! never told; it is a reason to look at the stream. It names the message that it is to follow, though, and as soon as anything stands
//! behind that one it is decided: either it was stored, or it never will be. Until then there is another look, less and less often.
//!
//! A consumer would tell only what is stored, but the servers would have to keep one for each log that somebody follows; having the
//! stream republish what it stored would cost something for every line that nobody follows.
//!
//! The servers do not promise that what is sent is heard. After every new connection there is a look, and two more because the servers of
//! a cluster tell each other a little later who listens. What is lost between two of them is found by a rare look.

use std::sync::Arc;
use std::time::Duration;

use async_nats::Subscriber;
use async_trait::async_trait;
use futures_util::StreamExt as _;
use pyoco_core::ids::ExecutionId;
use pyoco_ports::{HearingLines, LogEnd, StoreError};
use tokio::sync::watch;
use tokio::time::sleep;

use super::piece::Piece;
use super::{HEAR, Known, last};
use crate::connection::{Connection, Line};
use crate::message::Headers;
use crate::names;

/// The looks after something was heard: the first when it should be stored, and late enough for many to be heard of together; then
/// for as long as anybody may wait for it to be stored.
const HEARD: [Duration; 14] =
    millis([5, 5, 10, 20, 40, 80, 160, 320, 640, 1_000, 2_000, 5_000, 10_000, 20_000]);
/// The looks after a connection was made.
const CONNECTED: [Duration; 3] = millis([0, 50, 1_000]);
/// After a look that failed; nothing is sent while there is no connection.
const FAILED: Duration = Duration::from_millis(50);
/// A look when nothing was heard for so long.
const SILENCE: Duration = Duration::from_secs(15);

const fn millis<const N: usize>(numbers: [u64; N]) -> [Duration; N] {
    let mut pauses = [Duration::ZERO; N];
    let mut at = 0;
    while at < N {
        pauses[at] = Duration::from_millis(numbers[at]);
        at += 1;
    }
    pauses
}

/// The newest end that is stored, for as long as this is kept.
pub(super) struct Told(watch::Receiver<LogEnd>);

#[async_trait]
impl HearingLines for Told {
    async fn next(&mut self) -> Option<LogEnd> {
        self.0.changed().await.ok()?;
        Some(*self.0.borrow_and_update())
    }
}

/// Listens, in a task of its own: what is heard must not wait for whoever is told.
struct Hearing {
    connection: Arc<Connection>,
    subject: String,
    told: watch::Sender<LogEnd>,
    /// The last message of the log that was seen.
    seen: u64,
    /// Looks are due until there is a message behind this one.
    awaited: Option<u64>,
    /// The pauses before the looks that are due.
    due: &'static [Duration],
}

/// Begins to listen. When it returns, the server knows that somebody does.
pub(super) async fn start(connection: &Arc<Connection>, execution: &ExecutionId) -> Result<Told, StoreError> {
    let subject = names::logs(execution);
    let mut line = connection.line();
    line.mark_unchanged();
    let messages = connection.subscribe(HEAR, &subject).await?;
    // On the same connection as the subscription, and answered after it.
    let Known { end, sequence, .. } = look(connection, &subject).await?;
    let (told, receiver) = watch::channel(end);
    let hearing = Hearing {
        connection: Arc::clone(connection),
        subject,
        told,
        seen: sequence,
        awaited: None,
        due: CONNECTED.get(1..).unwrap_or_default(),
    };
    tokio::spawn(hearing.run(messages, line));
    Ok(Told(receiver))
}

/// What stands in the stream.
async fn look(connection: &Connection, subject: &str) -> Result<Known, StoreError> {
    let last = last(connection, HEAR, subject).await?;
    last.map_or(Ok(Known::default()), |last| Ok(Known::of(Piece::of(&last)?, &last)))
}

impl Hearing {
    async fn run(mut self, mut messages: Subscriber, mut line: watch::Receiver<Line>) {
        let closing = self.connection.closing().clone();
        let mut timer = Box::pin(sleep(self.pause()));
        loop {
            tokio::select! {
                () = closing.cancelled() => return,
                () = self.told.closed() => return,
                message = messages.next() => {
                    let Some(message) = message else { return };
                    if self.is_undecided(&Headers::from(message.headers)) {
                        self.due = &HEARD;
                        let soon = sleep(self.pause());
                        // Never later: many that are heard are one reason to look.
                        if soon.deadline() < timer.deadline() {
                            timer.set(soon);
                        }
                    }
                }
                changed = line.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    self.due = &CONNECTED;
                    timer.set(sleep(self.pause()));
                }
                () = &mut timer => {
                    let pause = self.look().await;
                    timer.set(sleep(pause));
                }
            }
        }
    }

    /// Whether something that was sent may still be stored, as far as was seen. If so it is awaited.
    fn is_undecided(&mut self, headers: &Headers) -> bool {
        let follows = headers.follows().unwrap_or(self.seen);
        let is_undecided = follows >= self.seen;
        if is_undecided {
            self.awaited = self.awaited.max(Some(follows));
        }
        is_undecided
    }

    /// Looks, and says how long to wait for the next one.
    async fn look(&mut self) -> Duration {
        match look(&self.connection, &self.subject).await {
            Ok(Known { end, sequence, .. }) => {
                self.seen = sequence;
                if self.awaited.is_some_and(|awaited| awaited < sequence) {
                    (self.awaited, self.due) = (None, &[]);
                }
                self.told.send_if_modified(|told| std::mem::replace(told, end) != end);
                self.pause()
            }
            Err(error) => {
                tracing::debug!(subject = self.subject, %error, "the end of a log could not be read");
                if error.kind.is_retryable() { FAILED } else { SILENCE }
            }
        }
    }

    /// The pause before the next look.
    fn pause(&mut self) -> Duration {
        match self.due {
            [pause, rest @ ..] => {
                self.due = rest;
                *pause
            }
            [] => {
                self.awaited = None;
                SILENCE
            }
        }
    }
}
