//! The jobs of one tag as this process sees them: its consumer, its pulls, and what has come before anybody asked for it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use pyoco_core::ids::Tag;
use pyoco_ports::{Delivery, ErrorKind, StoreError};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::consumer::Consumer;
use super::pull::{Ask, End, Inbox, Pull, Wanted};
use crate::carried::Carried;
use crate::connection::Connection;
use crate::message::Headers;
use crate::post::Haste;
use crate::{Settings, resources};

/// A message that came and that nobody takes goes back after this time, long before its lease is over.
const UNWANTED_AFTER: Duration = Duration::from_secs(1);

/// What the lanes of a store share.
#[derive(Debug)]
pub(super) struct Common {
    pub(super) connection: Arc<Connection>,
    pub(super) settings: Arc<Settings>,
    pub(super) carried: Arc<Carried>,
    /// Something came that was not asked for at that moment.
    pub(super) arrived: Notify,
    /// Pulls on their way, and messages on their way back.
    pub(super) tasks: TaskTracker,
    /// Which stream of the name it is: when it was made, as far as we know.
    stream: AtomicI64,
}

impl Common {
    pub(super) fn new(connection: Arc<Connection>, settings: Arc<Settings>, carried: Arc<Carried>) -> Self {
        Self {
            connection,
            settings,
            carried,
            arrived: Notify::new(),
            tasks: TaskTracker::new(),
            stream: AtomicI64::new(0),
        }
    }

    /// What is needed to answer a message: of which stream it is, and where the answer goes.
    pub(super) fn receipt(&self, reply: &str) -> String {
        format!("{} {reply}", self.stream.load(Ordering::Relaxed))
    }

    /// Says that a message is done, and waits for nobody: lost, the job comes again and is found to be done. What was said before the
    /// connection is closed is sent.
    pub(super) async fn done(&self, operation: &'static str, delivery: &Delivery) -> Result<(), StoreError> {
        match self.way_back(delivery) {
            Some(reply) => {
                self.connection.send(Haste::Later, operation, reply, None, Bytes::from_static(b"+ACK"))
            }
            None => Ok(()),
        }
    }

    /// Answers a message and waits until the server has heard it.
    pub(super) async fn answer(
        &self,
        operation: &'static str,
        delivery: &Delivery,
        word: impl Into<Bytes> + Send,
    ) -> Result<(), StoreError> {
        match self.way_back(delivery) {
            Some(reply) => {
                self.connection.request(operation, reply, Headers::new(), word.into()).await.map(|_| ())
            }
            None => Ok(()),
        }
    }

    /// Where an answer to a message goes.
    fn way_back<'a>(&self, delivery: &'a Delivery) -> Option<&'a str> {
        // One that this store did not give out is nobody's.
        let (stream, reply) = delivery.receipt.split_once(' ')?;
        // A stream that was made anew counts from 1 again: the answer would be taken for one to another message.
        (stream == self.stream.load(Ordering::Relaxed).to_string()).then_some(reply)
    }

    /// Makes sure that the stream is there.
    pub(super) async fn find_stream(&self) -> Result<(), StoreError> {
        let stream = resources::ensure_work(&self.connection, &self.settings).await?;
        self.stream.store(stream.created.as_micros(), Ordering::Relaxed);
        Ok(())
    }
}

/// The jobs of a tag.
#[derive(Debug)]
pub(super) struct Lane {
    common: Arc<Common>,
    tag: Tag,
    next_subject: String,
    /// Whether the consumer was there when we looked.
    is_ready: tokio::sync::Mutex<bool>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// What has come, oldest first, and since when it is here.
    kept: VecDeque<(Delivery, Instant)>,
    /// Somebody looks after what is kept.
    is_watched: bool,
    /// The pull that waits for the next message.
    waiting: Option<Arc<Pull>>,
    /// Those of pulls that are over.
    inboxes: Vec<Inbox>,
    /// Nobody will ask any more.
    is_closed: bool,
}

impl Lane {
    pub(super) fn new(common: Arc<Common>, tag: Tag) -> Self {
        let (stream, consumer) = (&common.settings.work_stream, Settings::work_consumer(&tag));
        let next_subject = format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}");
        Self { common, tag, next_subject, is_ready: tokio::sync::Mutex::default(), state: Mutex::default() }
    }

    pub(super) fn common(&self) -> &Common {
        &self.common
    }

    pub(super) fn tag(&self) -> &Tag {
        &self.tag
    }

    pub(super) fn next_subject(&self) -> &str {
        &self.next_subject
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Each change is one step; a panic leaves nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes sure that the tag has a stream and a consumer. Asked once, and again when they turn out to be gone.
    pub(super) async fn ready(&self) -> Result<(), StoreError> {
        let mut is_ready = self.is_ready.lock().await;
        if *is_ready {
            return Ok(());
        }
        let Common { connection, settings, .. } = &*self.common;
        self.common.find_stream().await?;
        if Consumer::find(connection, settings, &self.tag).await?.is_none() {
            let made = Consumer::make(connection, settings, &self.tag).await;
            made.map_err(|error| error.into_store("make a queue"))?;
        }
        *is_ready = true;
        Ok(())
    }

    /// Up to `most` messages that are there now, with one request.
    pub(super) async fn pull(self: &Arc<Self>, most: usize) -> Result<Vec<Delivery>, StoreError> {
        const OPERATION: &str = "take jobs";
        let (mut most, mut has_healed) = (most, false);
        loop {
            self.ready().await?;
            let (got, end) = Wanted::now(self, most).answer().await;
            if !got.is_empty() {
                return Ok(got);
            }
            match end {
                Some(End::Over) => return Ok(got),
                Some(End::Gone) if !has_healed => {
                    *self.is_ready.lock().await = false;
                    has_healed = true;
                }
                Some(End::Gone) => {
                    *self.is_ready.lock().await = false;
                    return Err(StoreError::new(
                        ErrorKind::Unavailable,
                        OPERATION,
                        "the queue has no leader",
                    ));
                }
                // Perhaps an operator has limited how many may be asked for at once.
                Some(End::Refused(_)) if most > 1 => most = 1,
                Some(End::Refused(why)) => {
                    return Err(StoreError::new(ErrorKind::Unavailable, OPERATION, why));
                }
                Some(End::Lost(kind)) => {
                    return Err(StoreError::new(kind, OPERATION, "there is no connection to NATS"));
                }
                // Either as many are in hand as there may be, or the server does not speak to anybody.
                None => {
                    Consumer::find(&self.common.connection, &self.common.settings, &self.tag).await?;
                    return Ok(got);
                }
            }
        }
    }

    /// The pull that waits for the next message; there is one at a time.
    pub(super) fn waiting(self: &Arc<Self>, patience: Duration) -> Arc<Pull> {
        let mut state = self.lock();
        match &state.waiting {
            Some(pull) if !pull.has_ended() => pull.clone(),
            _ => {
                let pull = Pull::start(self, Ask::Soon(patience));
                state.waiting = Some(pull.clone());
                pull
            }
        }
    }

    /// An inbox that nobody uses now, of the line that was lost so often.
    pub(super) fn inbox(&self, lost: u64) -> Option<Inbox> {
        let mut state = self.lock();
        state.inboxes.retain(|inbox| inbox.lost == lost);
        state.inboxes.pop()
    }

    /// Keeps an inbox for the next pull.
    pub(super) fn keep_inbox(&self, inbox: Inbox) {
        let mut state = self.lock();
        if !state.is_closed {
            state.inboxes.push(inbox);
        }
    }

    /// Keeps messages for whoever takes next.
    pub(super) fn keep(self: &Arc<Self>, deliveries: Vec<Delivery>) {
        if deliveries.is_empty() {
            return;
        }
        let mut state = self.lock();
        let now = Instant::now();
        state.kept.extend(deliveries.into_iter().map(|delivery| (delivery, now)));
        if !std::mem::replace(&mut state.is_watched, true) {
            let lane = self.clone();
            self.common.tasks.spawn(async move { lane.watch().await });
        }
        drop(state);
        self.common.arrived.notify_waiters();
    }

    /// Up to `most` of what is kept.
    pub(super) fn kept(&self, most: usize) -> Vec<Delivery> {
        let mut state = self.lock();
        let most = most.min(state.kept.len());
        state.kept.drain(..most).map(|(delivery, _)| delivery).collect()
    }

    pub(super) fn has_kept(&self) -> bool {
        !self.lock().kept.is_empty()
    }

    /// Gives back what nobody takes, until nothing is left.
    async fn watch(self: Arc<Self>) {
        loop {
            let step = {
                let mut state = self.lock();
                let is_closed = state.is_closed;
                match state.kept.pop_front() {
                    None => {
                        state.is_watched = false;
                        return;
                    }
                    Some((delivery, since)) if !is_closed && since.elapsed() < UNWANTED_AFTER => {
                        state.kept.push_front((delivery, since));
                        Err(since + UNWANTED_AFTER)
                    }
                    Some((delivery, _)) => Ok(delivery),
                }
            };
            match step {
                Ok(delivery) => {
                    // Lost with the connection, it comes back when its lease is over.
                    if let Err(error) = self.common.answer("give a job back", &delivery, "-NAK").await {
                        tracing::debug!(%error, job = %delivery.id, "a job was not given back");
                    }
                }
                Err(due) => tokio::select! {
                    () = tokio::time::sleep_until(due) => {}
                    // Closing calls everybody.
                    () = self.common.arrived.notified() => {}
                },
            }
        }
    }

    /// From here on everything that comes goes back.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        state.inboxes.clear();
        drop(state);
        self.common.arrived.notify_waiters();
    }
}
