//! One consumer of one bucket, or of the graphs, for as long as the store is open.
//!
//! The consumer has a name of its own, so that there is never a second one: whenever anything is in doubt (the line was lost, a
//! number is missing, the server is silent), it is removed and made again behind the last message that was taken. It lives in
//! the server's memory and acknowledges nothing; if this process dies, the server removes it after a minute.

use std::sync::Arc;
use std::time::Duration;

use async_nats::{Message, Subscriber};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _};
use pyoco_core::time::Timestamp;
use pyoco_ports::{ErrorKind, StoreError};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::connection::Connection;
use crate::error::{self, Refusal};
use crate::message::{Headers, Stored};
use crate::place::Place;
use crate::post::Haste;
use crate::{Settings, names, resources};

const OPERATION: &str = "follow a bucket";
/// So many messages are asked for at a time, and so many are handed on at most,
const BATCH: usize = 512;
/// but only so many of those that are yet to come: if they have come within a moment, the next ones are gathered for as long.
const FEW: usize = 32;
const MOMENT: Duration = Duration::from_millis(5);
/// And so many bytes at least; never less than two of the largest messages.
const BYTES: usize = 8 * 1024 * 1024;
/// If so many messages that come are this process's own, again and again for so long, it asks for none of them: it has written them. Not
/// sooner, because a consumer that goes and comes is work for all servers of a cluster.
const MANY: u64 = 32;
const LASTING: Duration = Duration::from_millis(500);
/// After so long it is another flood.
const EBB: Duration = Duration::from_millis(100);
/// Without a consumer it looks so often how far it has come, and stops when it got nowhere so many times in a row.
const LOOK: Duration = Duration::from_millis(10);
const STILL: u32 = 2;
/// How long a request stands.
const EXPIRES: Duration = Duration::from_secs(30);
/// How often the server says that it is still there.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// Silence for so long means that it is not: in a cluster the server with the consumer may be gone, and the line be whole.
const SILENCE: Duration = Duration::from_millis(3_500);
/// The server removes a consumer that nobody asks for so long.
const INACTIVE: Duration = Duration::from_secs(60);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(250);
/// A question to a cluster that has lost its leader is answered by nobody, not even when there is a new one: it is asked again after so
/// long, so that the new one hears it soon.
const HURRY: Duration = Duration::from_secs(1);
/// After so many attempts it is the server that is slow, and it gets its time.
const HURRIED: u32 = 12;
/// So many attempts in vain are told.
const WORTH_A_WORD: u32 = 20;

/// Where the messages of a bucket go.
#[async_trait]
pub(super) trait Sink: Send + Sync {
    /// The bucket is read from its beginning, for the first time or because it is another one than before.
    fn begin(&self);

    /// Takes messages, in their order. After an error they come again.
    async fn take(&self, messages: Vec<Stored>) -> Result<(), StoreError>;

    /// Up to which message this process has written everything behind one, so that nobody need take it.
    fn written_here(&self, behind: u64) -> u64 {
        behind
    }

    /// Everything that stood in the bucket has been taken; told again now and then.
    fn caught_up(&self) {}
}

/// Why a session has ended.
enum Ended {
    /// The line was lost.
    Lost,
    /// This process alone writes a flood.
    Alone,
}

/// A flood that this process alone writes: when it began, and when it was seen last.
#[derive(Default)]
struct Flood(Option<(Instant, Instant)>);

impl Flood {
    /// Looks what stands behind a message. Says whether this process alone has written floods for a while.
    fn is_ours(&mut self, sink: &dyn Sink, behind: u64) -> bool {
        if sink.written_here(behind) < behind.saturating_add(MANY) {
            return false;
        }
        let now = Instant::now();
        let begun =
            self.0.filter(|(_, seen)| now.duration_since(*seen) < EBB).map_or(now, |(begun, _)| begun);
        self.0 = Some((begun, now));
        now.duration_since(begun) >= LASTING
    }
}

/// A bucket and the consumer on it.
pub(super) struct Bucket {
    connection: Arc<Connection>,
    settings: Arc<Settings>,
    stream: String,
    subjects: String,
    consumer: String,
}

/// How far a bucket has been taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Position {
    /// When the bucket was made: another one of the same name counts from 1 again.
    created: Timestamp,
    /// The last message that was taken.
    sequence: u64,
}

impl Bucket {
    pub(super) fn new(
        connection: &Arc<Connection>,
        settings: &Arc<Settings>,
        bucket: &str,
        instance: &str,
    ) -> Self {
        let (stream, subjects) = (names::bucket_stream(bucket), names::bucket_subjects(bucket));
        let consumer = Settings::index_consumer(instance);
        Self { connection: connection.clone(), settings: settings.clone(), stream, subjects, consumer }
    }

    /// The stream of graphs, which is followed in the same way.
    pub(super) fn graphs(connection: &Arc<Connection>, settings: &Arc<Settings>, instance: &str) -> Self {
        let (stream, subjects) = (names::GRAPHS.to_owned(), names::ALL_GRAPHS.to_owned());
        let consumer = Settings::index_consumer(instance);
        Self { connection: connection.clone(), settings: settings.clone(), stream, subjects, consumer }
    }

    /// Follows until the store is closed; tells whether everything that stood there is taken.
    pub(super) fn follow(self, sink: Arc<dyn Sink>) -> watch::Receiver<bool> {
        let (caught_up, told) = watch::channel(false);
        tokio::spawn(async move {
            let closing = self.connection.closing().clone();
            tokio::select! {
                () = self.keep_following(sink.as_ref(), &caught_up) => {}
                () = closing.cancelled() => {}
            }
        });
        told
    }

    async fn keep_following(&self, sink: &dyn Sink, caught_up: &watch::Sender<bool>) {
        let mut line = self.connection.line();
        let mut position = None;
        let mut in_vain = 0;
        loop {
            line.mark_unchanged();
            let before = position;
            // Reading a bucket from its beginning takes the server a while.
            let is_short = before.is_some() && in_vain < HURRIED;
            let ended = self.session(sink, caught_up, &mut position, is_short.then_some(HURRY)).await;
            in_vain = if position == before { in_vain + 1 } else { 0 };
            match ended {
                Ok(Ended::Alone) => {
                    self.skip(sink, &mut position).await;
                    continue;
                }
                Ok(Ended::Lost) => {}
                Err(error) => {
                    // That the line was lost is told by the connection; what goes away by itself is not worth a word.
                    if self.connection.is_connected() && in_vain % WORTH_A_WORD == WORTH_A_WORD - 1 {
                        tracing::warn!(stream = self.stream, %error, "the bucket cannot be followed; trying again");
                    } else {
                        tracing::debug!(stream = self.stream, %error, "the bucket is followed anew");
                    }
                }
            }
            tokio::select! {
                () = tokio::time::sleep(PAUSE) => {}
                // Whoever waits for a connection goes on when there is one.
                _ = line.changed() => {}
            }
        }
    }

    /// Goes past what this process writes, without a consumer, until it writes nothing any more or somebody else has written. The next session
    /// begins behind it.
    async fn skip(&self, sink: &dyn Sink, position: &mut Option<Position>) {
        let mut line = self.connection.line();
        let lost = line.borrow_and_update().lost;
        // If it stays, the next session removes it.
        let _ = in_time(Some(HURRY), self.remove()).await;
        let mut still = 0;
        while let Some(place) = position
            && still < STILL
        {
            let until = sink.written_here(place.sequence);
            still = if until > place.sequence { 0 } else { still + 1 };
            place.sequence = until;
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                _ = line.wait_for(|line| line.lost != lost) => return,
            }
        }
    }

    /// Makes the consumer and takes what it delivers, until something is in doubt or there is nothing to hear.
    async fn session(
        &self,
        sink: &dyn Sink,
        caught_up: &watch::Sender<bool>,
        position: &mut Option<Position>,
        hurry: Option<Duration>,
    ) -> Result<Ended, StoreError> {
        let mut line = self.connection.line();
        let lost = line.borrow_and_update().lost;
        in_time(hurry, self.remove()).await?;
        let mut start = in_time(hurry, self.start(sink, position)).await?;
        let inbox = self.connection.inbox();
        let mut messages = self.connection.subscribe(OPERATION, &inbox).await?;
        if in_time(hurry, self.make(start.sequence)).await? == 0 {
            told(sink, caught_up);
        }
        let mut delivered = 0;
        let mut flood = Flood::default();
        let mut asking = Asking::begun(self, inbox)?;
        loop {
            let chunk = tokio::select! {
                biased;
                chunk = next_chunk(&mut messages) => chunk?,
                _ = line.wait_for(|line| line.lost != lost) => return Ok(Ended::Lost),
                () = asking.due() => {
                    if flood.is_ours(sink, start.sequence) {
                        return Ok(Ended::Alone);
                    }
                    asking.ask(Manner::Gathering)?;
                    continue;
                }
            };
            asking.is_answered = true;
            let mut batch = Vec::with_capacity(chunk.len());
            let mut pending = None;
            for message in chunk {
                match message.status.map(|status| status.as_u16()) {
                    None => {
                        let place = message.reply.as_deref().and_then(Place::read);
                        let place =
                            place.ok_or_else(|| error::internal(OPERATION, "a message without a place"))?;
                        delivered += 1;
                        asking.left = asking.left.saturating_sub(1);
                        if place.delivered != delivered {
                            return Err(StoreError::new(
                                ErrorKind::Unavailable,
                                OPERATION,
                                "messages were lost",
                            ));
                        }
                        pending = Some(place.pending);
                        batch.push(stored(message, &place));
                    }
                    // A sign of life.
                    Some(100) => {}
                    // Nothing was there, or came.
                    Some(404 | 408) => asking.ask(Manner::Standing)?,
                    Some(409) if is_over(&message) => asking.left = 0,
                    Some(status) => {
                        let why = format!("{status} {}", message.description.unwrap_or_default());
                        return Err(StoreError::new(ErrorKind::Unavailable, OPERATION, why));
                    }
                }
            }
            // The server goes on while these are taken.
            asking.go_on()?;
            if let Some(last) = batch.last().map(|stored| stored.sequence) {
                sink.take(batch).await?;
                start.sequence = last;
                *position = Some(start);
                if asking.manner == Manner::Gathering && flood.is_ours(sink, last) {
                    return Ok(Ended::Alone);
                }
            }
            if pending == Some(0) {
                told(sink, caught_up);
            }
        }
    }

    /// Where to go on. The bucket is made again if somebody has removed it.
    async fn start(&self, sink: &dyn Sink, position: &mut Option<Position>) -> Result<Position, StoreError> {
        let mut info = self.connection.info(OPERATION, &self.stream, None).await?;
        if info.is_none() {
            if self.stream == names::GRAPHS {
                resources::ensure_graphs(&self.connection, &self.settings).await?;
            } else {
                resources::ensure_buckets(&self.connection, &self.settings).await?;
            }
            info = self.connection.info(OPERATION, &self.stream, None).await?;
        }
        let Some(info) = info else {
            return Err(StoreError::new(ErrorKind::Unavailable, OPERATION, "there is no bucket"));
        };
        // A bucket that was restored from a copy is another one too.
        let is_same =
            |known: &Position| known.created == info.created && known.sequence <= info.state.last_seq;
        match position.filter(is_same) {
            Some(known) => Ok(known),
            None => {
                sink.begin();
                let start = Position { created: info.created, sequence: 0 };
                *position = Some(start);
                Ok(start)
            }
        }
    }

    /// Makes the consumer behind a message, and says how many it has to deliver.
    async fn make(&self, after: u64) -> Result<u64, StoreError> {
        #[derive(Deserialize)]
        struct Made {
            num_pending: u64,
        }
        let mut config = json!({
            "name": self.consumer, "filter_subject": self.subjects,
            "ack_policy": "none", "replay_policy": "instant", "mem_storage": true, "num_replicas": 1,
            "inactive_threshold": nanoseconds(INACTIVE), "max_waiting": 8,
        });
        if after == 0 {
            config["deliver_policy"] = json!("last_per_subject");
        } else {
            config["deliver_policy"] = json!("by_start_sequence");
            config["opt_start_seq"] = json!(after.saturating_add(1));
        }
        let wanted = json!({"stream_name": self.stream, "action": "create", "config": config});
        let subject = format!("CONSUMER.CREATE.{}.{}.{}", self.stream, self.consumer, self.subjects);
        let made: Made = self
            .connection
            .api(OPERATION, &subject, &wanted)
            .await
            .map_err(|error| error.into_store(OPERATION))?;
        Ok(made.num_pending)
    }

    /// Removes the consumer, if it is there.
    async fn remove(&self) -> Result<(), StoreError> {
        let subject = format!("CONSUMER.DELETE.{}.{}", self.stream, self.consumer);
        match self.connection.api::<Value>(OPERATION, &subject, &json!({})).await {
            Ok(_) => Ok(()),
            Err(error) if error.is(Refusal::NO_CONSUMER) || error.is(Refusal::NO_STREAM) => Ok(()),
            Err(error) => Err(error.into_store(OPERATION)),
        }
    }

    /// Asks for messages: for those that come, or for those that are there.
    fn pull(&self, inbox: &str, manner: Manner) -> Result<(), StoreError> {
        let bytes = BYTES.max(self.connection.max_payload().saturating_mul(2));
        let mut body = json!({"batch": manner.most(), "max_bytes": bytes});
        match manner {
            Manner::Standing => {
                body["expires"] = json!(nanoseconds(EXPIRES));
                body["idle_heartbeat"] = json!(nanoseconds(HEARTBEAT));
            }
            Manner::Gathering => body["no_wait"] = json!(true),
        }
        let subject = format!("$JS.API.CONSUMER.MSG.NEXT.{}.{}", self.stream, self.consumer);
        self.connection.send(Haste::Now, OPERATION, &subject, Some(inbox), Bytes::from(body.to_string()))
    }
}

/// How messages are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// Each as soon as it comes.
    Standing,
    /// Those that are there, at once. The server has less to do for each, and so have we.
    Gathering,
}

impl Manner {
    /// How many one request brings at most.
    const fn most(self) -> usize {
        match self {
            Self::Standing => FEW,
            Self::Gathering => BATCH,
        }
    }
}

/// The request for messages that is under way. Where few come, each is heard at once; where many do, those of a moment are.
struct Asking<'a> {
    bucket: &'a Bucket,
    inbox: String,
    manner: Manner,
    /// How many it may still bring.
    left: usize,
    /// When it was sent.
    at: Instant,
    /// Something has come since: who is not answered asks no more, and notices the silence.
    is_answered: bool,
}

impl<'a> Asking<'a> {
    fn begun(bucket: &'a Bucket, inbox: String) -> Result<Self, StoreError> {
        let (manner, at) = (Manner::Standing, Instant::now());
        let mut asking = Self { bucket, inbox, manner, left: 0, at, is_answered: false };
        asking.ask(Manner::Standing)?;
        Ok(asking)
    }

    fn ask(&mut self, manner: Manner) -> Result<(), StoreError> {
        self.bucket.pull(&self.inbox, manner)?;
        (self.manner, self.left, self.at) = (manner, manner.most(), Instant::now());
        self.is_answered = false;
        Ok(())
    }

    /// Asks for more when everything that was asked for has come.
    fn go_on(&mut self) -> Result<(), StoreError> {
        if self.left > 0 {
            return Ok(());
        }
        if self.manner == Manner::Standing && self.at.elapsed() < MOMENT {
            // Nothing is asked for until the moment is over.
            (self.manner, self.left) = (Manner::Gathering, BATCH);
            return Ok(());
        }
        self.ask(self.manner)
    }

    /// Returns when it is time to look what is there.
    async fn due(&self) {
        match self.manner {
            Manner::Gathering if self.is_answered => tokio::time::sleep_until(self.at + MOMENT).await,
            Manner::Gathering | Manner::Standing => std::future::pending().await,
        }
    }
}

/// An answer, or none after so long. Whatever was asked may still be done: the consumer has one name, and the next attempt removes it first.
async fn in_time<T>(
    hurry: Option<Duration>,
    answer: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let Some(hurry) = hurry else { return answer.await };
    let unanswered = |_| StoreError::new(ErrorKind::Timeout, OPERATION, "the server does not answer");
    tokio::time::timeout(hurry, answer).await.map_err(unanswered)?
}

/// Everything that has arrived, or the next thing that does.
async fn next_chunk(messages: &mut Subscriber) -> Result<Vec<Message>, StoreError> {
    let mut chunk = match tokio::time::timeout(SILENCE, messages.next()).await {
        Ok(Some(message)) => vec![message],
        Ok(None) => return Err(StoreError::plain(ErrorKind::Closed, OPERATION)),
        Err(_) => return Err(StoreError::new(ErrorKind::Timeout, OPERATION, "the server is silent")),
    };
    // Room is made for what there is: mostly that is little.
    while chunk.len() < BATCH
        && let Some(Some(message)) = messages.next().now_or_never()
    {
        chunk.push(message);
    }
    Ok(chunk)
}

fn told(sink: &dyn Sink, caught_up: &watch::Sender<bool>) {
    sink.caught_up();
    if !*caught_up.borrow() {
        caught_up.send_replace(true);
    }
}

/// Whether a 409 only ends a request.
fn is_over(message: &Message) -> bool {
    matches!(message.description.as_deref(), Some("Batch Completed" | "Message Size Exceeds MaxBytes"))
}

fn stored(message: Message, place: &Place) -> Stored {
    Stored {
        sequence: place.sequence,
        subject: message.subject.into_string(),
        headers: Headers::from(message.headers),
        payload: message.payload,
        time: place.time(),
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
