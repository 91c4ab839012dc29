//! What one submission and one run make our processes send to NATS, as an ear at the broker hears it. The bare loop plays it again, so it
//! makes the same writes whatever we change.

use std::time::Duration;

use async_nats::{HeaderMap, Message};
use bytes::Bytes;
use futures_util::StreamExt as _;
use serde_json::Value;
use tokio::time::timeout;

use crate::Failure;
use crate::broker::Storage;
use crate::flows::{self, SERVED, UNSERVED};
use crate::http::{self, Address, Connection};
use crate::measure::run_id;

const PATIENCE: Duration = Duration::from_secs(20);

/// What a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A record of the log.
    Record,
    /// What lists and other implementations see of a run.
    Snapshot,
    /// The job in the queue.
    Job,
    /// The answer to the queue.
    Answer,
    /// Asking for jobs.
    Pull,
    /// Reading.
    Question,
}

impl Role {
    fn of(subject: &str) -> Option<Self> {
        let starts = |start| subject.starts_with(start);
        if starts("pyoco.events.") {
            Some(Self::Record)
        } else if starts("$KV.pyoco_runs.") {
            Some(Self::Snapshot)
        } else if starts("pyoco.work.") {
            Some(Self::Job)
        } else if starts("$JS.ACK.PYOCO_WORK.") {
            Some(Self::Answer)
        } else if starts("$JS.API.CONSUMER.MSG.NEXT.PYOCO_WORK.") {
            Some(Self::Pull)
        } else if starts("$JS.API.STREAM.MSG.GET.") || starts("$JS.API.DIRECT.GET.") {
            Some(Self::Question)
        } else {
            // Answers of the server, feeds and signs of life, which come whether there is a run or not.
            None
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Record => "record",
            Self::Snapshot => "snapshot",
            Self::Job => "job",
            Self::Answer => "answer to the queue",
            Self::Pull => "pull",
            Self::Question => "read",
        }
    }

    /// Whether the server stores it and answers that it has.
    pub(crate) fn is_stored(self) -> bool {
        matches!(self, Self::Record | Self::Snapshot | Self::Job)
    }
}

/// One message.
pub(crate) struct Sent {
    pub(crate) role: Role,
    subject: String,
    pub(crate) headers: HeaderMap,
    pub(crate) payload: Bytes,
}

impl Sent {
    /// What it is, for a person.
    pub(crate) fn title(&self) -> String {
        // A direct read names the message that it wants behind the stream.
        let direct = self.subject.strip_prefix("$JS.API.DIRECT.GET.").and_then(|rest| rest.split('.').next());
        match (self.role, direct.or_else(|| self.subject.rsplit('.').next())) {
            (Role::Question, Some(stream)) => format!("{} of {stream}", self.role.name()),
            _ => self.role.name().to_owned(),
        }
    }

    /// How long its headers are on the wire.
    pub(crate) fn header_bytes(&self) -> usize {
        let line = |(name, values): (&async_nats::HeaderName, &Vec<async_nats::HeaderValue>)| {
            let name: &str = name.as_ref();
            values.iter().map(|value| name.len() + value.as_str().len() + ": \r\n".len()).sum::<usize>()
        };
        if self.headers.is_empty() {
            return 0;
        }
        "NATS/1.0\r\n\r\n".len() + self.headers.iter().map(line).sum::<usize>()
    }
}

/// What was sent, in the order in which the broker took it.
pub(crate) struct Tape {
    /// The run that was heard.
    pub(crate) id: String,
    pub(crate) sent: Vec<Sent>,
}

/// A submission by name that nobody takes.
pub(crate) async fn submission(address: Address, storage: Storage) -> Result<Tape, Failure> {
    let request = http::submit(flows::noop().name, UNSERVED)?;
    record(address, storage, request, |tape| tape.iter().any(|sent| sent.role == Role::Job)).await
}

/// A run of one task that does nothing, from the submission to the answer to the queue.
pub(crate) async fn run(address: Address, storage: Storage) -> Result<Tape, Failure> {
    let noop = flows::noop();
    let request = http::submit_yaml(noop.name, SERVED, &noop.yaml)?;
    let is_whole = |tape: &[Sent]| {
        let mut rest = tape.iter().skip_while(|sent| !(sent.role == Role::Snapshot && is_end(&sent.payload)));
        rest.any(|sent| sent.role == Role::Answer)
    };
    record(address, storage, request, is_whole).await
}

async fn record(
    address: Address,
    storage: Storage,
    request: hyper::Request<String>,
    is_whole: impl Fn(&[Sent]) -> bool,
) -> Result<Tape, Failure> {
    let ear = async_nats::connect(storage.url()).await?;
    let mut heard = ear.subscribe(">").await?;
    // Subscribed for certain, before anything is to be heard.
    ear.flush().await?;
    let answer = Connection::open(address).await?.send(request).await?;
    let id = run_id(&answer.json()?)?;
    let mut sent = Vec::new();
    let listen = async {
        while !is_whole(&sent) {
            sent.extend(kept(heard.next().await.ok_or("the broker went away")?));
        }
        Ok::<(), Failure>(())
    };
    let listened = timeout(PATIENCE, listen).await;
    listened.map_err(|_| format!("run {id} was not heard to its end in {PATIENCE:?}"))??;
    Ok(Tape { id, sent })
}

fn kept(message: Message) -> Option<Sent> {
    // What the server hands to a consumer is heard under the subject that it was stored at, a second time.
    if message.reply.as_ref().is_some_and(|reply| reply.starts_with("$JS.ACK.")) {
        return None;
    }
    let role = Role::of(&message.subject)?;
    let (subject, headers) = (message.subject.to_string(), message.headers.unwrap_or_default());
    Some(Sent { role, subject, headers, payload: message.payload })
}

/// Whether a snapshot is that of a run that has ended well.
pub(crate) fn is_end(snapshot: &[u8]) -> bool {
    let snapshot: Value = serde_json::from_slice(snapshot).unwrap_or_default();
    snapshot.get("status").and_then(Value::as_str) == Some("COMPLETED")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_subject_of_a_message_tells_what_it_is_for() {
        for (subject, role) in [
            ("pyoco.events.a", Some(Role::Record)),
            ("$KV.pyoco_runs.a", Some(Role::Snapshot)),
            ("$KV.pyoco_workers.w", None),
            ("pyoco.work.bench", Some(Role::Job)),
            ("$JS.ACK.PYOCO_WORK.pyoco_workers_bench.1.5.5.1.0", Some(Role::Answer)),
            ("$JS.API.CONSUMER.MSG.NEXT.PYOCO_WORK.pyoco_workers_bench", Some(Role::Pull)),
            ("$JS.API.CONSUMER.MSG.NEXT.KV_pyoco_runs.feed", None),
            ("_INBOX.x.y", None),
        ] {
            assert_eq!(Role::of(subject), role, "{subject}");
        }
    }

    #[test]
    fn headers_are_counted_as_they_are_sent() {
        let mut headers = HeaderMap::new();
        headers.insert("A", "bc");
        let sent = Sent { role: Role::Record, subject: String::new(), headers, payload: Bytes::new() };
        assert_eq!(sent.header_bytes(), b"NATS/1.0\r\nA: bc\r\n\r\n".len());
        let bare = Sent { headers: HeaderMap::new(), ..sent };
        assert_eq!(bare.header_bytes(), 0);
    }
}
