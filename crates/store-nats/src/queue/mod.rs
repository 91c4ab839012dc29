//! The work queue: the stream of jobs, and one durable consumer a tag that all workers share.
//!
//! The lease of a job is the consumer's `ack_wait`, and time is the server's. None of the answers is fenced: whoever answers
//! an old delivery answers the current one. The claim in the log is what fences, the queue is a hint.

mod consumer;
mod lane;
mod parked;
mod pull;
mod sent;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::select_all;
use pyoco_core::ids::{ExecutionId, Tag, WorkerId};
use pyoco_core::time::{Millis, Timestamp};
use pyoco_ports::{Delivery, Job, StoreError, WorkQueue};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use self::consumer::Consumer;
use self::lane::{Common, Lane};
use self::pull::End;
use self::sent::Sent;
use crate::carried::{About, Carried};
use crate::connection::Connection;
use crate::error::{self, PublishError};
use crate::message::Headers;
use crate::place::Place;
use crate::{NatsStore, Settings};

/// Less is not worth a request.
const SHORTEST_WAIT: Duration = Duration::from_millis(10);

/// So often and so far apart is looked whether a consumer has heard of every message.
const LOOKS: u32 = 5;
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// The queue of a store.
#[derive(Debug)]
pub(crate) struct Queue {
    common: Arc<Common>,
    lanes: Mutex<HashMap<Tag, Arc<Lane>>>,
    sent: Sent,
    /// Which tag is asked first; each has its turn.
    turn: AtomicUsize,
    /// Removes what was delivered too often, as long as there is a queue.
    _parked: AbortOnDropHandle<()>,
}

impl Queue {
    /// The queue behind a connection. Nothing is asked before somebody wants something.
    pub(crate) fn new(
        connection: &Arc<Connection>,
        settings: &Arc<Settings>,
        carried: &Arc<Carried>,
    ) -> Self {
        let parked = tokio::spawn(parked::remove(connection.clone(), settings.clone()));
        Self {
            common: Arc::new(Common::new(connection.clone(), settings.clone(), carried.clone())),
            lanes: Mutex::default(),
            sent: Sent::default(),
            turn: AtomicUsize::new(0),
            _parked: AbortOnDropHandle::new(parked),
        }
    }

    /// Gives back everything that nobody has taken, and waits for what is still on its way. To be called before the connection
    /// is closed.
    pub(crate) async fn close(&self) {
        for lane in self.lanes.lock().unwrap_or_else(PoisonError::into_inner).values() {
            lane.close();
        }
        self.common.tasks.close();
        // What takes longer comes back to somebody when its lease is over.
        let _ = tokio::time::timeout(self.common.connection.patience(), self.common.tasks.wait()).await;
    }

    /// The lanes of tags, each once, beginning with the one whose turn it is.
    fn lanes(&self, tags: &[Tag]) -> Vec<Arc<Lane>> {
        let mut lanes: Vec<Arc<Lane>> = Vec::with_capacity(tags.len());
        let mut known = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        for tag in tags {
            if lanes.iter().all(|lane| lane.tag() != tag) {
                let make = || Arc::new(Lane::new(self.common.clone(), tag.clone()));
                lanes.push(known.entry(tag.clone()).or_insert_with(make).clone());
            }
        }
        if !lanes.is_empty() {
            let first = self.turn.fetch_add(1, Ordering::Relaxed) % lanes.len();
            lanes.rotate_left(first);
        }
        lanes
    }

    async fn take(&self, tags: &[Tag], most: usize) -> Result<Vec<Delivery>, StoreError> {
        let lanes = self.lanes(tags);
        let mut hand = Hand { lanes: &lanes, got: Vec::new() };
        for lane in &lanes {
            hand.got.extend(lane.kept(most.saturating_sub(hand.got.len())));
        }
        for lane in &lanes {
            let free = most.saturating_sub(hand.got.len());
            if free == 0 {
                break;
            }
            let pulled = tokio::select! {
                biased;
                pulled = lane.pull(free) => Some(pulled),
                // What an earlier pull brings is as good. The server may keep this one until somebody answers that.
                () = self.kept(&lanes) => None,
            };
            match pulled {
                Some(Ok(got)) => hand.got.extend(got),
                // What came is not lost because another tag's queue fails.
                Some(Err(_)) if !hand.got.is_empty() => break,
                Some(Err(error)) => return Err(error),
                None => {
                    for lane in &lanes {
                        hand.got.extend(lane.kept(most.saturating_sub(hand.got.len())));
                    }
                }
            }
        }
        let mut got = hand.into_got();
        got.sort_by_cached_key(sequence);
        Ok(got)
    }

    /// Returns when something is kept in one of the lanes.
    async fn kept(&self, lanes: &[Arc<Lane>]) {
        loop {
            let arrived = self.common.arrived.notified();
            tokio::pin!(arrived);
            // Listen first, then look: what comes in between is seen or heard.
            arrived.as_mut().enable();
            if lanes.iter().any(|lane| lane.has_kept()) {
                return;
            }
            arrived.await;
        }
    }

    async fn wait(&self, tags: &[Tag], patience: Duration) -> Result<(), StoreError> {
        let lanes = self.lanes(tags);
        let deadline = Instant::now() + patience;
        if lanes.is_empty() {
            tokio::time::sleep_until(deadline).await;
            return Ok(());
        }
        loop {
            if lanes.iter().any(|lane| lane.has_kept()) {
                return Ok(());
            }
            for lane in &lanes {
                lane.ready().await?;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let pulls: Vec<_> = lanes.iter().map(|lane| lane.waiting(left.max(SHORTEST_WAIT))).collect();
            let ended = select_all(pulls.iter().map(|pull| Box::pin(pull.ended())));
            let end = tokio::select! {
                () = self.kept(&lanes) => return Ok(()),
                () = tokio::time::sleep_until(deadline) => return Ok(()),
                (end, ..) = ended => end,
            };
            match end {
                End::Over if deadline.saturating_duration_since(Instant::now()) > SHORTEST_WAIT => {}
                // Whoever takes now finds out what is wrong, and heals it or says so.
                End::Over | End::Gone | End::Lost(_) => return Ok(()),
                End::Refused(why) => {
                    tracing::debug!(why, "waiting for jobs was refused");
                    tokio::time::sleep_until(deadline).await;
                    return Ok(());
                }
            }
        }
    }

    async fn enqueue(&self, job: Job) -> Result<(), StoreError> {
        const OPERATION: &str = "enqueue";
        let Common { connection, settings, .. } = &*self.common;
        let (stream, subject, body) = (&settings.work_stream, settings.work(&job.tag), Bytes::from(job.body));
        let publish =
            |headers| connection.publish(OPERATION, stream, subject.as_str(), headers, body.clone());
        let published = match publish(self.common.carried.pack(&job.execution)).await {
            // Somebody has removed the stream: the queue is only a hint, and this is a new one. What it does not bring is looked up.
            Err(PublishError::NoStream) => {
                Box::pin(self.common.find_stream()).await?;
                publish(Headers::new()).await
            }
            published => published,
        };
        let published = published.map_err(|error| error.into_store(OPERATION))?;
        self.sent.note(job.execution, job.tag, published.sequence, &body);
        Ok(())
    }

    async fn drop_waiting(&self, execution: &ExecutionId) -> Result<(), StoreError> {
        const OPERATION: &str = "drop jobs";
        let Common { connection, settings, .. } = &*self.common;
        for message in self.sent.forget(execution) {
            // One that was in a hand may be in one now: it stays, and whoever has it finds that nobody wants it.
            let consumer = Consumer::find(connection, settings, &message.tag).await?;
            if consumer.is_some_and(|consumer| consumer.has_delivered(message.sequence)) {
                continue;
            }
            // In a stream that was made anew the number is another message's.
            let stored = connection.at(OPERATION, &settings.work_stream, message.sequence).await?;
            if stored.is_some_and(|stored| message.is(&stored.payload)) {
                connection.delete(OPERATION, &settings.work_stream, message.sequence).await?;
            }
        }
        Ok(())
    }

    async fn queued(&self, tag: &Tag) -> Result<Vec<ExecutionId>, StoreError> {
        const OPERATION: &str = "list jobs";
        let Common { connection, settings, .. } = &*self.common;
        let (stream, subject) = (&settings.work_stream, settings.work(tag));
        let consumer = Consumer::find(connection, settings, tag).await?;
        let (mut found, mut from) = (Vec::new(), 1);
        loop {
            let stored = match connection.next(OPERATION, stream, from, &subject).await {
                Err(error) if error::is_missing(&error) => None,
                stored => stored?,
            };
            let Some(stored) = stored else { return Ok(found) };
            from = stored.sequence.saturating_add(1);
            if consumer.as_ref().is_some_and(|consumer| consumer.has_parked(stored.sequence)) {
                // It was said once that nobody gets it, and nobody of us heard it.
                connection.delete(OPERATION, stream, stored.sequence).await?;
                continue;
            }
            // One that cannot be read is nobody's; whoever takes it says so.
            found.extend(serde_json::from_slice(&stored.payload).map(|about: About| about.run_id));
        }
    }

    /// How many jobs of a tag were never delivered. One that comes back is not among them.
    async fn waiting(&self, tag: &Tag) -> Result<u64, StoreError> {
        let Common { connection, settings, .. } = &*self.common;
        match Consumer::find(connection, settings, tag).await? {
            Some(consumer) => Ok(consumer.waiting()),
            None => self.depth(tag).await,
        }
    }

    async fn depth(&self, tag: &Tag) -> Result<u64, StoreError> {
        let Common { connection, settings, .. } = &*self.common;
        let subject = settings.work(tag);
        let info = connection.info("count jobs", &settings.work_stream, Some(&subject)).await?;
        let subjects = info.and_then(|info| info.state.subjects).unwrap_or_default();
        let in_stream = subjects.get(&subject).copied().unwrap_or(0);
        let mut looks = 0;
        loop {
            // Without a consumer no worker has ever asked for this tag.
            let consumer = Consumer::find(connection, settings, tag).await?;
            let depth = consumer.map_or(in_stream, |consumer| consumer.depth());
            looks += 1;
            // The consumer hears of a message a moment after the stream has it. What it never hears of is parked.
            if depth >= in_stream || looks == LOOKS {
                return Ok(depth);
            }
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
    }
}

/// What a taker has so far. Dropped on the way, it goes back to where it was.
struct Hand<'a> {
    lanes: &'a [Arc<Lane>],
    got: Vec<Delivery>,
}

impl Hand<'_> {
    fn into_got(mut self) -> Vec<Delivery> {
        std::mem::take(&mut self.got)
    }
}

impl Drop for Hand<'_> {
    fn drop(&mut self) {
        for lane in self.lanes {
            lane.keep(self.got.extract_if(.., |delivery| delivery.tag == *lane.tag()).collect());
        }
    }
}

/// The place of a delivery in the stream.
fn sequence(delivery: &Delivery) -> Option<u64> {
    let (_, reply) = delivery.receipt.split_once(' ')?;
    Place::read(reply).map(|place| place.sequence)
}

#[async_trait]
impl WorkQueue for NatsStore {
    async fn enqueue(&self, job: Job, _now: Timestamp) -> Result<(), StoreError> {
        self.queue.enqueue(job).await
    }

    async fn take(
        &self,
        tags: &[Tag],
        _worker: &WorkerId,
        most: usize,
        _lease: Millis,
        _now: Timestamp,
    ) -> Result<Vec<Delivery>, StoreError> {
        self.queue.take(tags, most).await
    }

    async fn wait(&self, tags: &[Tag], patience: Duration) -> Result<(), StoreError> {
        self.queue.wait(tags, patience).await
    }

    async fn extend(&self, delivery: &Delivery, _lease: Millis, _now: Timestamp) -> Result<(), StoreError> {
        self.queue.common.answer("extend a lease", delivery, "+WPI").await
    }

    async fn ack(&self, delivery: &Delivery) -> Result<(), StoreError> {
        self.queue.common.done("acknowledge a job", delivery).await
    }

    async fn nak(&self, delivery: &Delivery, delay: Millis, _now: Timestamp) -> Result<(), StoreError> {
        let nanoseconds = delay.0.saturating_mul(1_000_000);
        self.queue
            .common
            .answer("give a job back", delivery, format!("-NAK {{\"delay\": {nanoseconds}}}"))
            .await
    }

    async fn refuse(&self, delivery: &Delivery) -> Result<(), StoreError> {
        self.queue.common.answer("refuse a job", delivery, "+TERM").await
    }

    async fn drop_waiting(&self, execution: &ExecutionId) -> Result<(), StoreError> {
        self.queue.drop_waiting(execution).await
    }

    async fn queued(&self, tag: &Tag) -> Result<Vec<ExecutionId>, StoreError> {
        self.queue.queued(tag).await
    }

    async fn depth(&self, tag: &Tag) -> Result<u64, StoreError> {
        self.queue.depth(tag).await
    }

    async fn waiting(&self, tag: &Tag) -> Result<u64, StoreError> {
        self.queue.waiting(tag).await
    }
}
