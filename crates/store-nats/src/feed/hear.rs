//! Listens to one run while somebody has it in hand: a plain subscription, which costs the servers nothing when nothing is
//! written, and tells at once when something is. A run that is over in a moment is only looked at once.

use std::sync::Arc;
use std::time::Duration;

use async_nats::Subscriber;
use futures_util::StreamExt as _;
use pyoco_core::ids::{ExecutionId, Version};
use pyoco_core::time::Timestamp;
use pyoco_ports::{Heard, News};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::NatsStore;
use crate::connection::{Connection, Line};
use crate::index::{Found, LocalIndex};
use crate::snapshot::{self, Snapshot};

/// Between two looks at what the server may not have stored yet, or could not tell.
const PAUSE: Duration = Duration::from_millis(20);
/// A run is listened to from so long after its beginning on: most are over by then, and to begin and end a subscription costs the servers as
/// much as several messages. What was written before is found by a look.
const YOUNG: Duration = Duration::from_millis(20);
/// Nobody stores a snapshot so late: it was refused.
const LOOKS: u32 = 50;

/// What is written about one run, for as long as this is kept.
pub struct Hearing {
    execution: ExecutionId,
    index: LocalIndex,
    connection: Arc<Connection>,
    subject: String,
    ear: Ear,
    line: watch::Receiver<Line>,
    closing: CancellationToken,
    /// The last foreign snapshot that was told.
    told: u64,
    /// The last version of ours that was told.
    version: Version,
    /// So many looks at the bucket are due: something may have been missed.
    looks: u32,
}

enum Ear {
    /// Opened at this instant.
    Closed(Instant),
    Open(Subscriber),
}

impl NatsStore {
    /// Listens to a run. What stands in the bucket already is told first, unless it was submitted a moment ago.
    pub fn hear(&self, execution: &ExecutionId, now: Timestamp) -> Hearing {
        let mut line = self.connection.line();
        line.mark_unchanged();
        Hearing {
            execution: execution.clone(),
            index: self.index.clone(),
            connection: self.connection.clone(),
            subject: self.settings.run(execution),
            ear: Ear::Closed(Instant::now() + YOUNG),
            line,
            closing: self.connection.closing().clone(),
            told: 0,
            version: Version(0),
            looks: u32::from(!self.carried.is_young(execution, now)),
        }
    }
}

impl Hearing {
    /// The next thing that somebody writes; nothing when the store is closed. May be dropped and called again.
    pub async fn next(&mut self) -> Option<Heard> {
        loop {
            if self.looks > 0 {
                if let Some(heard) = self.look().await {
                    return Some(heard);
                }
                continue;
            }
            let messages = match &mut self.ear {
                Ear::Open(messages) => messages,
                Ear::Closed(until) => {
                    tokio::select! {
                        () = tokio::time::sleep_until(*until) => self.open().await,
                        () = self.closing.cancelled() => return None,
                    }
                    continue;
                }
            };
            tokio::select! {
                message = messages.next() => {
                    let Some((execution, snapshot)) = snapshot::read(&message?.payload) else { continue };
                    match snapshot {
                        _ if execution != self.execution => {}
                        Snapshot::Ours(row) if row.version <= self.version => {}
                        Snapshot::Ours(row) => {
                            self.version = row.version;
                            return Some(Heard { execution, news: News::Ours(row.version) });
                        }
                        // Which one it is, only the stream can tell.
                        Snapshot::Changed(..) | Snapshot::Foreign(_) => self.looks = LOOKS,
                    }
                }
                // What was written while there was no line came to nobody.
                changed = self.line.changed() => match changed {
                    Ok(()) => self.looks = self.looks.max(1),
                    Err(_) => return None,
                },
                () = self.closing.cancelled() => return None,
            }
        }
    }

    /// Begins to listen, and sees to it that what was written until now is found.
    async fn open(&mut self) {
        match self.connection.subscribe("hear of a run", &self.subject).await {
            Ok(messages) => (self.ear, self.looks) = (Ear::Open(messages), 1),
            Err(error) => {
                tracing::debug!(execution = %self.execution, %error, "the run is not listened to yet");
                self.ear = Ear::Closed(Instant::now() + PAUSE * 10);
            }
        }
    }

    /// Looks once at what stands in the bucket; gives it if it was not told.
    async fn look(&mut self) -> Option<Heard> {
        // Whoever is about to write there waits for it, and need not look then.
        let turn = self.index.turn(&self.execution).await;
        let looked = self.index.look(&self.execution).await;
        drop(turn);
        match looked {
            Ok(Some(found)) if self.is_new(&found) => return Some(super::heard(found)),
            Ok(_) => self.looks -= 1,
            // It stays due. Without a connection the line tells when to go on.
            Err(error) => {
                tracing::debug!(execution = %self.execution, %error, "the snapshot could not be read");
                tokio::select! {
                    () = tokio::time::sleep(PAUSE * 10) => {}
                    () = self.closing.cancelled() => self.looks = 0,
                }
            }
        }
        if self.looks > 0 {
            tokio::time::sleep(PAUSE).await;
        }
        None
    }

    /// Whether it was not told; from now on it was.
    fn is_new(&mut self, found: &Found) -> bool {
        match &found.snapshot {
            Snapshot::Ours(row) => {
                // The foreign one that made us look may come yet: looking goes on.
                let is_new = row.version > self.version;
                self.version = self.version.max(row.version);
                self.looks -= u32::from(is_new);
                is_new
            }
            Snapshot::Changed(..) | Snapshot::Foreign(_) => {
                let is_new = found.revision != self.told;
                if is_new {
                    self.told = found.revision;
                    self.looks = 0;
                }
                is_new
            }
        }
    }
}

impl std::fmt::Debug for Hearing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hearing").field("execution", &self.execution).finish_non_exhaustive()
    }
}
