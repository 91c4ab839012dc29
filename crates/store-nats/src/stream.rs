//! What JetStream is asked about streams: storing a message, reading messages, removing one.
//!
//! Reads are answered by the stream's leader, so whoever reads after a write sees it. Only `batch` may be answered by another
//! server of the cluster, which may lag; its callers know where the end is and ask the leader for what is missing.

use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use pyoco_core::time::Timestamp;
use pyoco_ports::{ErrorKind, StoreError};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::connection::Connection;
use crate::error::{self, ApiError, PublishError, Refusal};
use crate::message::{Headers, Stored, Told};
use crate::post::Haste;

/// A message was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Published {
    /// Its number in the stream.
    pub(crate) sequence: u64,
    /// It was there already, by its `Nats-Msg-Id`.
    pub(crate) is_duplicate: bool,
}

/// How much one request may bring.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Most {
    /// So many messages.
    pub(crate) messages: usize,
    /// So many bytes of them; more than one message of any size.
    pub(crate) bytes: usize,
}

impl Most {
    /// So many messages, and no more of them than a process can hold.
    pub(crate) const fn messages(messages: usize) -> Self {
        Self { messages, bytes: 16 << 20 }
    }
}

/// A stream as it stands.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct StreamInfo {
    /// How it was made.
    pub(crate) config: StreamConfig,
    /// What it holds.
    pub(crate) state: StreamState,
    /// When it was made: another stream of the same name has another time.
    pub(crate) created: Timestamp,
    /// What the server's clock showed when it said so.
    pub(crate) ts: Option<Timestamp>,
}

/// How a stream was made, as far as it matters here.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
pub(crate) struct StreamConfig {
    pub(crate) subjects: Vec<String>,
    pub(crate) retention: String,
    pub(crate) discard: String,
    pub(crate) storage: String,
    pub(crate) persist_mode: Option<String>,
    #[serde(deserialize_with = "nanoseconds")]
    pub(crate) max_age: Duration,
    pub(crate) max_msgs: i64,
    pub(crate) max_bytes: i64,
    pub(crate) max_msgs_per_subject: i64,
    pub(crate) num_replicas: usize,
    pub(crate) allow_direct: bool,
    pub(crate) no_ack: bool,
    pub(crate) sealed: bool,
}

impl Default for StreamConfig {
    /// What a server means by leaving something out.
    fn default() -> Self {
        Self {
            subjects: Vec::new(),
            retention: "limits".to_owned(),
            discard: "old".to_owned(),
            storage: "file".to_owned(),
            persist_mode: None,
            max_age: Duration::ZERO,
            max_msgs: -1,
            max_bytes: -1,
            max_msgs_per_subject: -1,
            num_replicas: 1,
            allow_direct: false,
            no_ack: false,
            sealed: false,
        }
    }
}

fn nanoseconds<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let nanoseconds = i64::deserialize(deserializer)?;
    Ok(Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(0)))
}

/// What a stream holds.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct StreamState {
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
    pub(crate) first_seq: u64,
    pub(crate) last_seq: u64,
    /// How many messages a subject has, of those that were asked for.
    pub(crate) subjects: Option<std::collections::HashMap<String, u64>>,
}

impl Connection {
    /// Stores a message in a stream and waits until it is. `headers` say what must hold for it.
    pub(crate) async fn publish(
        &self,
        operation: &'static str,
        stream: &str,
        subject: impl Into<String> + Send,
        headers: Headers,
        payload: Bytes,
    ) -> Result<Published, PublishError> {
        self.publish_with(Haste::Now, operation, stream, subject, headers, payload).await
    }

    /// The same, with more or less haste.
    pub(crate) async fn publish_with(
        &self,
        haste: Haste,
        operation: &'static str,
        stream: &str,
        subject: impl Into<String> + Send,
        headers: Headers,
        payload: Bytes,
    ) -> Result<Published, PublishError> {
        #[derive(Deserialize)]
        struct Answer {
            error: Option<Refusal>,
            seq: Option<u64>,
            #[serde(default)]
            duplicate: bool,
        }
        let headers = headers.into_stream(stream);
        let answer = match self.request_with(haste, operation, subject, headers, payload).await {
            Ok(answer) => answer,
            // There is a connection and nobody at the subject: the stream is not there, or has no leader.
            Err(error) if error.kind == ErrorKind::Unavailable && self.is_connected() => {
                return Err(PublishError::NoStream);
            }
            Err(error) => return Err(error.into()),
        };
        let answer: Answer =
            serde_json::from_slice(&answer.payload).map_err(|error| error::internal(operation, error))?;
        match (answer.error, answer.seq) {
            (Some(refusal), _) if Refusal::WRONG_LAST_SEQUENCE.contains(&refusal.err_code) => {
                Err(PublishError::WrongLastSequence)
            }
            (Some(refusal), _) => Err(refusal.into_store(operation).into()),
            (None, Some(sequence)) => Ok(Published { sequence, is_duplicate: answer.duplicate }),
            (None, None) => Err(error::internal(operation, "the answer names no sequence").into()),
        }
    }

    /// The last message of a subject.
    pub(crate) async fn last(
        &self,
        operation: &'static str,
        stream: &str,
        subject: &str,
    ) -> Result<Option<Stored>, StoreError> {
        self.message(operation, stream, json!({"last_by_subj": subject})).await
    }

    /// The last message of a subject as one of the servers that hold it has it, which may lag behind the leader. The stream must allow direct
    /// reads. It comes as it is stored, not as JSON in base64.
    pub(crate) async fn nearest(
        &self,
        operation: &'static str,
        stream: &str,
        subject: &str,
    ) -> Result<Option<Stored>, StoreError> {
        let place = format!("$JS.API.DIRECT.GET.{stream}.{subject}");
        let answer = self.request(operation, &place, Headers::new(), Bytes::new()).await?;
        // A status means that there is none, or that it cannot be told.
        Ok(if answer.status.is_none() { Stored::direct(answer) } else { None })
    }

    /// The first message of a subject that is not before a sequence.
    pub(crate) async fn next(
        &self,
        operation: &'static str,
        stream: &str,
        from: u64,
        subject: &str,
    ) -> Result<Option<Stored>, StoreError> {
        self.message(operation, stream, json!({"seq": from.max(1), "next_by_subj": subject})).await
    }

    /// The first message of a subject that was stored at an instant or later.
    pub(crate) async fn first_since(
        &self,
        operation: &'static str,
        stream: &str,
        subject: &str,
        since: Timestamp,
    ) -> Result<Option<Stored>, StoreError> {
        let which = json!({"start_time": since, "next_by_subj": subject});
        let found = self.message(operation, stream, which).await?;
        // Where there is none so new, the server tells the first one of all.
        Ok(found.filter(|message| message.time >= since))
    }

    /// The message with a sequence.
    pub(crate) async fn at(
        &self,
        operation: &'static str,
        stream: &str,
        sequence: u64,
    ) -> Result<Option<Stored>, StoreError> {
        self.message(operation, stream, json!({"seq": sequence})).await
    }

    async fn message(
        &self,
        operation: &'static str,
        stream: &str,
        which: Value,
    ) -> Result<Option<Stored>, StoreError> {
        #[derive(Deserialize)]
        struct Answer {
            message: Told,
        }
        match self.ask::<Answer>(operation, &format!("STREAM.MSG.GET.{stream}"), &which).await {
            Ok(answer) => {
                Stored::try_from(answer.message).map(Some).map_err(|error| error::corrupt(operation, error))
            }
            Err(error) if error.is(Refusal::NO_MESSAGE) => Ok(None),
            Err(error) => Err(error.into_store(operation)),
        }
    }

    /// Removes a message; `false` if it is not there. It need not be overwritten on the disk.
    pub(crate) async fn delete(
        &self,
        operation: &'static str,
        stream: &str,
        sequence: u64,
    ) -> Result<bool, StoreError> {
        let which = json!({"seq": sequence, "no_erase": true});
        match self.api::<Value>(operation, &format!("STREAM.MSG.DELETE.{stream}"), &which).await {
            Ok(_) => Ok(true),
            // The server has two words for it.
            Err(error) if error.is(Refusal::NO_MESSAGE) || error.is(Refusal::NOT_DELETED) => Ok(false),
            Err(error) => Err(error.into_store(operation)),
        }
    }

    /// Removes the messages of a subject, all or those before a sequence; says how many. A stream that is not there has none.
    pub(crate) async fn purge(
        &self,
        operation: &'static str,
        stream: &str,
        subject: &str,
        before: Option<u64>,
    ) -> Result<u64, StoreError> {
        #[derive(Deserialize)]
        struct Answer {
            purged: u64,
        }
        let mut which = json!({"filter": subject});
        if let Some(before) = before {
            which["seq"] = json!(before);
        }
        match self.api::<Answer>(operation, &format!("STREAM.PURGE.{stream}"), &which).await {
            Ok(answer) => Ok(answer.purged),
            Err(error) if error.is(Refusal::NO_STREAM) => Ok(0),
            Err(error) => Err(error.into_store(operation)),
        }
    }

    /// A stream, or nothing if it is not there; with the number of messages of each subject that matches `subjects`.
    pub(crate) async fn info(
        &self,
        operation: &'static str,
        stream: &str,
        subjects: Option<&str>,
    ) -> Result<Option<StreamInfo>, StoreError> {
        let body = subjects.map_or(Value::Null, |filter| json!({"subjects_filter": filter}));
        match self.api::<StreamInfo>(operation, &format!("STREAM.INFO.{stream}"), &body).await {
            Ok(info) => Ok(Some(info)),
            Err(error) if error.is(Refusal::NO_STREAM) => Ok(None),
            Err(error) => Err(error.into_store(operation)),
        }
    }

    /// The subjects of a stream that match a pattern and have a message, or nothing if the stream is not there. The server tells
    /// them in order, so many at a time.
    pub(crate) async fn subjects(
        &self,
        operation: &'static str,
        stream: &str,
        pattern: &str,
    ) -> Result<Option<Vec<String>>, StoreError> {
        #[derive(Deserialize)]
        struct Answer {
            state: StreamState,
            #[serde(default)]
            total: usize,
        }
        let mut subjects = Vec::new();
        loop {
            let which = json!({"subjects_filter": pattern, "offset": subjects.len()});
            let told = match self.ask::<Answer>(operation, &format!("STREAM.INFO.{stream}"), &which).await {
                Ok(told) => told,
                Err(error) if error.is(Refusal::NO_STREAM) => return Ok(None),
                Err(error) => return Err(error.into_store(operation)),
            };
            let before = subjects.len();
            subjects.extend(told.state.subjects.unwrap_or_default().into_keys());
            if subjects.len() >= told.total || subjects.len() == before {
                return Ok(Some(subjects));
            }
        }
    }

    /// Makes a stream that is not there.
    pub(crate) async fn create(
        &self,
        operation: &'static str,
        stream: &str,
        config: &Value,
    ) -> Result<StreamInfo, ApiError> {
        self.api(operation, &format!("STREAM.CREATE.{stream}"), config).await
    }

    /// The messages of a subject from a sequence on, with one request. The stream must allow direct reads. Whoever answers may lag
    /// behind the leader.
    pub(crate) async fn batch(
        &self,
        operation: &'static str,
        stream: &str,
        subject: &str,
        from: u64,
        most: Most,
    ) -> Result<Vec<Stored>, StoreError> {
        let Most { messages, bytes } = most;
        let which = json!({"seq": from.max(1), "next_by_subj": subject, "batch": messages.max(1), "max_bytes": bytes});
        Ok(self.direct(operation, stream, &which).await?.0)
    }

    /// The last messages of all subjects that match a pattern, with one request; `None` if they are too many for one. The stream must
    /// allow direct reads. Whoever answers may lag behind the leader.
    pub(crate) async fn lasts(
        &self,
        operation: &'static str,
        stream: &str,
        pattern: &str,
    ) -> Result<Option<Vec<Stored>>, StoreError> {
        let (messages, is_whole) = self.direct(operation, stream, &json!({"multi_last": [pattern]})).await?;
        Ok(is_whole.then_some(messages))
    }

    /// The last message of each of these subjects that has one, from the leader: no consumer, and nothing that lags. In any order.
    pub(crate) async fn last_of_each(
        &self,
        operation: &'static str,
        stream: &str,
        subjects: impl IntoIterator<Item = String>,
    ) -> Result<Vec<Stored>, StoreError> {
        /// Enough that nobody waits for the way, and no burden for the leader.
        const AT_ONCE: usize = 64;
        let mut subjects = subjects.into_iter();
        let mut asked = FuturesUnordered::new();
        let mut messages = Vec::new();
        loop {
            while asked.len() < AT_ONCE
                && let Some(subject) = subjects.next()
            {
                asked.push(async move { self.last(operation, stream, &subject).await });
            }
            match asked.next().await {
                // Somebody has removed the stream, and everything with it.
                Some(Err(error)) if error::is_missing(&error) => {}
                Some(found) => messages.extend(found?),
                None => return Ok(messages),
            }
        }
    }

    /// Asks whoever holds the stream for messages; says whether these are all that were asked for.
    async fn direct(
        &self,
        operation: &'static str,
        stream: &str,
        which: &Value,
    ) -> Result<(Vec<Stored>, bool), StoreError> {
        /// The end of a batch.
        const END: u16 = 204;
        const NOTHING: u16 = 404;
        const TOO_MANY: u16 = 413;
        const NOBODY: u16 = 503;
        let inbox = self.inbox();
        let mut line = self.line();
        let lost = line.borrow_and_update().lost;
        let mut answers = self.subscribe(operation, &inbox).await?;
        let which = Bytes::from(which.to_string());
        self.send(Haste::Now, operation, &format!("$JS.API.DIRECT.GET.{stream}"), Some(&inbox), which)?;
        let mut messages = Vec::new();
        loop {
            let answer = tokio::select! {
                answer = tokio::time::timeout(self.patience(), answers.next()) => answer,
                _ = line.wait_for(|line| line.lost != lost) => {
                    return Err(StoreError::new(ErrorKind::Unavailable, operation, "the connection to NATS was lost"));
                }
            };
            let answer = match answer {
                Ok(Some(answer)) => answer,
                Ok(None) => return Err(StoreError::plain(ErrorKind::Closed, operation)),
                Err(_) => return Err(StoreError::plain(ErrorKind::Timeout, operation)),
            };
            match answer.status.map(|status| status.as_u16()) {
                None => match Stored::direct(answer) {
                    Some(message) => messages.push(message),
                    None => return Err(error::internal(operation, "an answer is not a stored message")),
                },
                Some(END) => {
                    let left = Headers::from(answer.headers).get_number("Nats-Num-Pending").unwrap_or(0);
                    return Ok((messages, left == 0));
                }
                Some(NOTHING) => return Ok((messages, true)),
                Some(TOO_MANY) => return Ok((messages, false)),
                Some(NOBODY) => return Err(StoreError::plain(ErrorKind::Unavailable, operation)),
                Some(status) => {
                    let why = format!("{status} {}", answer.description.unwrap_or_default());
                    return Err(error::internal(operation, why));
                }
            }
        }
    }

    /// The next messages of a subject from a sequence on: several with one request where the stream allows it, else one. Empty
    /// only when the leader has none either.
    pub(crate) async fn page(
        &self,
        operation: &'static str,
        stream: &str,
        subject: &str,
        from: u64,
        most: Most,
        is_direct: bool,
    ) -> Result<Vec<Stored>, StoreError> {
        if is_direct && most.messages > 1 {
            match self.batch(operation, stream, subject, from, most).await {
                // Whoever answered may lag behind the leader.
                Ok(page) if page.is_empty() => {}
                // Nobody: the stream was made anew, without direct reads, or only its leader is left.
                Err(error) if error.kind == ErrorKind::Unavailable && self.is_connected() => {}
                page => return page,
            }
        }
        Ok(self.next(operation, stream, from, subject).await?.into_iter().collect())
    }
}
