//! One pull: a request for messages, and everything that may come back.
//!
//! A pull is a task of its own. Whoever asked may go away at any moment; what the server sends is then kept for the next one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::Subscriber;
use bytes::Bytes;
use futures_util::StreamExt as _;
use pyoco_ports::{Delivery, ErrorKind, StoreError};
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::lane::Lane;
use crate::connection::Connection;
use crate::place::Place;
use crate::post::Haste;

/// A pull that does not wait is answered at once, unless as many jobs are in hand as there may be: then the server keeps it
/// and says nothing until one comes back. We listen for so long, because a message may come.
const LINGER: Duration = Duration::from_secs(30);

/// After the first message of a pull the next one is not far, or does not come.
const NEXT: Duration = Duration::from_millis(50);

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Ask {
    /// What is there now, at most so many.
    Now(usize),
    /// The first one that comes within this time.
    Soon(Duration),
}

/// Why nothing more comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// Everything came, or there is no more.
    Over,
    /// The consumer is not there, or is led by another server now.
    Gone,
    /// The server does not want such a request.
    Refused(String),
    /// The connection was lost or closed, or the server does not speak.
    Lost(ErrorKind),
}

/// Where the answers to a pull come. To begin and end a subscription costs the servers more than a message does, and makes them look anew
/// at where others go; so one whose pull is over is used again.
pub(super) struct Inbox {
    name: String,
    messages: Subscriber,
    /// How often the line was lost before it was opened: what was owed on another line is not known.
    pub(super) lost: u64,
}

impl Inbox {
    async fn open(connection: &Connection, operation: &'static str, lost: u64) -> Result<Self, StoreError> {
        let name = connection.inbox();
        let messages = connection.subscribe(operation, &name).await?;
        Ok(Self { name, messages, lost })
    }
}

impl std::fmt::Debug for Inbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inbox").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What has come so far.
#[derive(Debug, Default)]
struct Progress {
    got: Vec<Delivery>,
    end: Option<End>,
    /// Somebody waits for it.
    is_wanted: bool,
}

/// A pull on its way.
#[derive(Debug, Default)]
pub(super) struct Pull {
    progress: Mutex<Progress>,
    changed: Notify,
}

impl Pull {
    /// Starts one whose messages are kept in the lane.
    pub(super) fn start(lane: &Arc<Lane>, ask: Ask) -> Arc<Self> {
        Self::begin(lane, ask, false)
    }

    fn begin(lane: &Arc<Lane>, ask: Ask, is_wanted: bool) -> Arc<Self> {
        let pull = Arc::new(Self::default());
        pull.lock().is_wanted = is_wanted;
        let (running, lane) = (pull.clone(), lane.clone());
        let tasks = lane.common().tasks.clone();
        tasks.spawn(async move {
            let end = running.run(&lane, ask).await.unwrap_or_else(|error| match error.kind {
                ErrorKind::TooLarge | ErrorKind::Internal | ErrorKind::Corrupt => {
                    End::Refused(error.to_string())
                }
                kind
                @ (ErrorKind::Unavailable | ErrorKind::Timeout | ErrorKind::Full | ErrorKind::Closed) => {
                    End::Lost(kind)
                }
            });
            running.lock().end = Some(end);
            running.changed.notify_waiters();
        });
        pull
    }

    async fn run(&self, lane: &Arc<Lane>, ask: Ask) -> Result<End, StoreError> {
        const OPERATION: &str = "take jobs";
        let connection = &lane.common().connection;
        let (mut left, limit, body) = match ask {
            Ask::Now(most) => (most, LINGER, json!({"batch": most, "no_wait": true})),
            Ask::Soon(patience) => {
                let expires = u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX);
                (1, patience + connection.patience(), json!({"batch": 1, "expires": expires}))
            }
        };
        let mut line = connection.line();
        let lost = line.borrow_and_update().lost;
        let mut inbox = match lane.inbox(lost) {
            Some(inbox) => inbox,
            None => Inbox::open(connection, OPERATION, lost).await?,
        };
        let body = Bytes::from(body.to_string());
        connection.send(Haste::Now, OPERATION, lane.next_subject(), Some(&inbox.name), body)?;
        let silence = tokio::time::sleep(limit);
        tokio::pin!(silence);
        while left > 0 {
            let message = tokio::select! {
                // What has arrived is looked at before anything else ends the pull.
                biased;
                message = inbox.messages.next() => message,
                () = &mut silence => None,
                _ = line.wait_for(|line| line.lost != lost) => None,
                () = connection.closing().cancelled() => None,
            };
            let Some(message) = message else {
                let is_closed = connection.closing().is_cancelled();
                return Ok(End::Lost(if is_closed { ErrorKind::Closed } else { ErrorKind::Unavailable }));
            };
            match message.status.map(|status| status.as_u16()) {
                None => {
                    left -= 1;
                    match delivery(lane, message) {
                        Some(delivery) => self.came(lane, delivery),
                        None => tracing::warn!(tag = %lane.tag(), "a job came without a way to answer it"),
                    }
                }
                // A sign of life.
                Some(100) => {}
                Some(404 | 408) => break,
                Some(409) => return Ok(refused(message.description.unwrap_or_default())),
                Some(503) => return Ok(End::Gone),
                Some(status) => {
                    return Ok(End::Refused(format!("{status} {}", message.description.unwrap_or_default())));
                }
            }
        }
        // The server owes nothing more to this one.
        lane.keep_inbox(inbox);
        Ok(End::Over)
    }

    fn came(&self, lane: &Arc<Lane>, delivery: Delivery) {
        let mut progress = self.lock();
        if progress.is_wanted {
            progress.got.push(delivery);
            drop(progress);
            self.changed.notify_waiters();
        } else {
            drop(progress);
            lane.keep(vec![delivery]);
        }
    }

    /// Returns when nothing more comes, and says why.
    pub(super) async fn ended(&self) -> End {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Listen first, then look.
            changed.as_mut().enable();
            if let Some(end) = &self.lock().end {
                return end.clone();
            }
            changed.await;
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.lock().end.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        // Each change is one step; a panic leaves nothing half done.
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A pull that somebody waits for. Dropped, it leaves to the lane what has come and what will.
#[derive(Debug)]
pub(super) struct Wanted {
    pull: Arc<Pull>,
    lane: Arc<Lane>,
}

impl Wanted {
    /// Asks for what is there now.
    pub(super) fn now(lane: &Arc<Lane>, most: usize) -> Self {
        Self { pull: Pull::begin(lane, Ask::Now(most), true), lane: lane.clone() }
    }

    /// Waits until it is known what is there. Without an end the server kept the request.
    pub(super) async fn answer(self) -> (Vec<Delivery>, Option<End>) {
        let mut patience = Instant::now() + self.lane.common().connection.patience();
        let mut seen = 0;
        loop {
            let changed = self.pull.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            {
                let mut progress = self.pull.lock();
                if progress.end.is_some() {
                    return (std::mem::take(&mut progress.got), progress.end.clone());
                }
                if progress.got.len() > seen {
                    seen = progress.got.len();
                    patience = Instant::now() + NEXT;
                }
            }
            if tokio::time::timeout_at(patience, changed).await.is_err() {
                let mut progress = self.pull.lock();
                return (std::mem::take(&mut progress.got), progress.end.clone());
            }
        }
    }
}

impl Drop for Wanted {
    fn drop(&mut self) {
        let mut progress = self.pull.lock();
        progress.is_wanted = false;
        let left = std::mem::take(&mut progress.got);
        drop(progress);
        self.lane.keep(left);
    }
}

/// What a server means by 409.
fn refused(why: String) -> End {
    match why.as_str() {
        "Consumer Deleted" | "Leadership Change" | "Server Shutdown" => End::Gone,
        "Batch Completed" => End::Over,
        _ => End::Refused(why),
    }
}

/// A message as a delivery; `None` if nobody could answer it.
fn delivery(lane: &Lane, message: async_nats::Message) -> Option<Delivery> {
    let reply = message.reply?;
    let place = Place::read(&reply)?;
    lane.common().carried.unpack(&place, &message.headers.into(), &message.payload);
    Some(Delivery {
        id: place.job()?,
        tag: lane.tag().clone(),
        number: place.number,
        body: message.payload.to_vec(),
        receipt: lane.common().receipt(&reply),
    })
}
