//! Dead letters: messages of a stream that other implementations write and read, too.

use async_trait::async_trait;
use bytes::Bytes;
use pyoco_core::digest::Digest;
use pyoco_core::time::Timestamp;
use pyoco_ports::{DeadLetterRecord, DeadLetters, StoreError};

use crate::error::PublishError;
use crate::message::{Headers, Stored};
use crate::{NatsStore, resources};

/// The key of a letter of ours.
const KEY: &str = "Pyoco-Key";
/// The tag as it was, also if no subject can hold it.
const TAG: &str = "Pyoco-Tag";
/// When, in microseconds since 1970.
const AT: &str = "Pyoco-At";

const PUBLISH: &str = "keep a dead letter";
const COUNT: &str = "count dead letters";
const LIST: &str = "list dead letters";

#[async_trait]
impl DeadLetters for NatsStore {
    /// The server knows the keys of the last two minutes, also after it was restarted. A repeat comes sooner: it follows the loss of
    /// a process or of an answer.
    async fn publish(&self, letter: DeadLetterRecord) -> Result<(), StoreError> {
        let headers = Headers::new()
            .digest("Nats-Msg-Id", &Digest::of_bytes(letter.key.as_bytes()))
            .text(KEY, &letter.key)
            .text(TAG, &letter.tag)
            .number(AT, u64::try_from(letter.at.as_micros()).unwrap_or(0));
        let subject = self.settings.dead_letters(&letter.tag);
        let stream = &self.settings.dlq_stream;
        let body = Bytes::from(letter.body);
        let kept = self.connection.publish(PUBLISH, stream, &subject, headers.clone(), body.clone()).await;
        let kept = match kept {
            // Somebody may have deleted it.
            Err(PublishError::NoStream) => {
                resources::ensure_dead_letters(&self.connection, &self.settings).await?;
                self.connection.publish(PUBLISH, stream, &subject, headers, body).await
            }
            kept => kept,
        };
        kept.map(|_| ()).map_err(|error| error.into_store(PUBLISH))
    }

    async fn count_letters(&self) -> Result<u64, StoreError> {
        let info = self.connection.info(COUNT, &self.settings.dlq_stream, None).await?;
        Ok(info.map_or(0, |info| info.state.messages))
    }

    async fn letters(&self, limit: usize) -> Result<Vec<DeadLetterRecord>, StoreError> {
        let stream = &self.settings.dlq_stream;
        let Some(info) = self.connection.info(LIST, stream, None).await? else { return Ok(Vec::new()) };
        let first = info.state.first_seq.max(1);
        let mut letters = Vec::new();
        // Letters that were removed leave holes of any size: where there was nothing, the next look goes further back.
        let (mut end, mut step) = (info.state.last_seq.saturating_add(1), limit as u64);
        while letters.len() < limit && end > first {
            let start = end.saturating_sub(step.max(1)).max(first);
            let mut found = self.letters_between(start, end).await?;
            step = if found.is_empty() { step.saturating_mul(2) } else { (limit - letters.len()) as u64 };
            found.reverse();
            letters.append(&mut found);
            end = start;
        }
        letters.truncate(limit);
        Ok(letters)
    }
}

impl NatsStore {
    /// The letters from a sequence on up to before another one, oldest first.
    async fn letters_between(&self, start: u64, end: u64) -> Result<Vec<DeadLetterRecord>, StoreError> {
        let (stream, subjects) = (&self.settings.dlq_stream, self.settings.all_dead_letters());
        let mut letters = Vec::new();
        let mut from = start;
        while let Some(message) = self.connection.next(LIST, stream, from, &subjects).await? {
            if message.sequence >= end {
                break;
            }
            from = message.sequence.saturating_add(1);
            letters.push(self.letter(message));
            if from >= end {
                break;
            }
        }
        Ok(letters)
    }

    /// A letter of anybody. Others write no headers: the subject names the tag and the stream the rest.
    fn letter(&self, message: Stored) -> DeadLetterRecord {
        let tag = || {
            let prefix = format!("{}.", self.settings.dlq_subject_prefix);
            message.subject.strip_prefix(&prefix).unwrap_or(&message.subject).to_owned()
        };
        let at = message.headers.get_number(AT).and_then(|micros| i64::try_from(micros).ok());
        DeadLetterRecord {
            key: message
                .headers
                .get_text(KEY)
                .unwrap_or_else(|| format!("{}/{}", message.subject, message.sequence)),
            tag: message.headers.get_text(TAG).unwrap_or_else(tag),
            at: at.map_or(message.time, Timestamp::from_micros),
            body: message.payload.into(),
        }
    }
}
