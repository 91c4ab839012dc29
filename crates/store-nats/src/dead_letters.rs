//! Dead letters: messages of a stream that other implementations write and read, too.

use async_trait::async_trait;
use bytes::Bytes;
use pyoco_core::digest::Digest;
use pyoco_core::time::Timestamp;
use pyoco_ports::{DeadLetterRecord, DeadLetters, LetterPage, StoreError};
use serde::Deserialize;
use serde_json::json;

use crate::error::PublishError;
use crate::message::{Headers, Stored};
use crate::recent::Recent;
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
const GET: &str = "find a dead letter";
const REMOVE: &str = "remove a dead letter";
const PURGE: &str = "purge dead letters";
/// So many places are looked at in one go when all are.
const SCANNED: u64 = 4_096;
/// So many are in memory when one of them is looked for.
const PAGE: usize = 256;
/// So many requests are under way at a time.
const AT_ONCE: u64 = 16;
/// So many letters are found again without looking.
const KNOWN: usize = 20_000;

/// Where letters were seen.
pub(crate) type SeenLetters = Recent<String, u64>;

/// None was seen yet.
pub(crate) fn seen_letters() -> SeenLetters {
    Recent::new(KNOWN)
}

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

    async fn letter_page(&self, behind: Option<u64>, limit: usize) -> Result<LetterPage, StoreError> {
        let (found, next) = self.page(LIST, behind, limit).await?;
        Ok(LetterPage { letters: found.into_iter().map(|(_, letter)| letter).collect(), next })
    }

    async fn letter(&self, key: &str) -> Result<Option<DeadLetterRecord>, StoreError> {
        Ok(self.find(GET, key).await?.map(|(_, letter)| letter))
    }

    async fn remove_letter(&self, key: &str) -> Result<bool, StoreError> {
        let Some((sequence, _)) = self.find(REMOVE, key).await? else { return Ok(false) };
        self.letters.remove(&key.to_owned());
        self.connection.delete(REMOVE, &self.settings.dlq_stream, sequence).await
    }

    async fn purge_letters(&self, before: Timestamp) -> Result<u64, StoreError> {
        let stream = &self.settings.dlq_stream;
        let Some(info) = self.connection.info(PURGE, stream, None).await? else { return Ok(0) };
        let (mut from, end) = (info.state.first_seq.max(1), info.state.last_seq.saturating_add(1));
        // The oldest go all at once, those behind the first that stays one by one: each letter has its own clock.
        let (mut purged, mut has_kept) = (0, false);
        while from < end {
            let until = from.saturating_add(SCANNED).min(end);
            let (old, kept): (Vec<_>, Vec<_>) = self
                .letters_between(from, until)
                .await?
                .into_iter()
                .partition(|(_, letter)| letter.at < before);
            let first_kept = kept.first().map_or(until, |(sequence, _)| *sequence);
            let is_any_first = old.first().is_some_and(|(sequence, _)| *sequence < first_kept);
            if !has_kept && is_any_first {
                purged += self.purge_before(first_kept).await?;
            }
            let is_behind = |sequence: u64| has_kept || sequence > first_kept;
            for (sequence, _) in old.iter().filter(|(sequence, _)| is_behind(*sequence)) {
                purged += u64::from(self.connection.delete(PURGE, stream, *sequence).await?);
            }
            has_kept = has_kept || !kept.is_empty();
            from = until;
        }
        Ok(purged)
    }
}

impl NatsStore {
    /// A letter and its sequence: where it was last seen, or else wherever it is.
    async fn find(
        &self,
        operation: &'static str,
        key: &str,
    ) -> Result<Option<(u64, DeadLetterRecord)>, StoreError> {
        let stream = &self.settings.dlq_stream;
        let named = key.rsplit_once('/').and_then(|(_, number)| number.parse().ok());
        for sequence in [self.letters.get(&key.to_owned()), named].into_iter().flatten() {
            if let Some(message) = self.connection.at(operation, stream, sequence).await? {
                let letter = self.told_by(message);
                if letter.key == key {
                    return Ok(Some((sequence, letter)));
                }
            }
        }
        let mut behind = None;
        loop {
            let (found, next) = self.page(operation, behind, PAGE).await?;
            let wanted = found.into_iter().find(|(_, letter)| letter.key == key);
            if wanted.is_some() || next.is_none() {
                return Ok(wanted);
            }
            behind = next;
        }
    }

    /// The newest letters before a sequence, newest first, and the sequence before which there may be more.
    async fn page(
        &self,
        operation: &'static str,
        behind: Option<u64>,
        limit: usize,
    ) -> Result<(Vec<(u64, DeadLetterRecord)>, Option<u64>), StoreError> {
        let (stream, subjects) = (&self.settings.dlq_stream, self.settings.all_dead_letters());
        let Some(info) = self.connection.info(operation, stream, None).await? else {
            return Ok((Vec::new(), None));
        };
        let (first, last) = (info.state.first_seq.max(1), info.state.last_seq.saturating_add(1));
        let mut end = behind.map_or(last, |behind| behind.min(last));
        let mut letters = Vec::new();
        // Letters that were removed leave holes of any size. Where there was nothing, one request looks whether there is anything
        // further back, further each time; only what fits the page is read.
        let mut leap = 0;
        while letters.len() < limit && end > first {
            let room = (limit - letters.len()) as u64;
            let start = end.saturating_sub(room.max(leap)).max(first);
            if leap > room {
                let next = self.connection.next(operation, stream, start, &subjects).await?;
                if next.is_some_and(|message| message.sequence < end) {
                    leap /= 2;
                } else {
                    (end, leap) = (start, leap.saturating_mul(2));
                }
                continue;
            }
            let found = self.letters_between(start, end).await?;
            leap = if found.is_empty() { room.saturating_mul(2) } else { 0 };
            for (sequence, letter) in found.into_iter().rev() {
                self.letters.put(letter.key.clone(), sequence);
                letters.push((sequence, letter));
            }
            end = start;
        }
        Ok((letters, Some(end).filter(|end| *end > first)))
    }

    /// Removes everything before a sequence, and says how much that was.
    async fn purge_before(&self, sequence: u64) -> Result<u64, StoreError> {
        #[derive(Deserialize)]
        struct Answer {
            purged: u64,
        }
        let subject = format!("STREAM.PURGE.{}", self.settings.dlq_stream);
        let which = json!({"seq": sequence});
        let answer = self.connection.api::<Answer>(PURGE, &subject, &which).await;
        answer.map(|answer| answer.purged).map_err(|error| error.into_store(PURGE))
    }

    /// The letters from a sequence on up to before another one, oldest first, each with its own. Several stretches are read at the
    /// same time: a letter takes a request.
    async fn letters_between(
        &self,
        start: u64,
        end: u64,
    ) -> Result<Vec<(u64, DeadLetterRecord)>, StoreError> {
        let stretch = end.saturating_sub(start).div_ceil(AT_ONCE).max(1);
        let starts = (0..AT_ONCE).map(|number| start.saturating_add(number.saturating_mul(stretch)));
        let stretches = starts
            .filter(|from| *from < end)
            .map(|from| self.letters_in_turn(from, from.saturating_add(stretch).min(end)));
        let found = futures_util::future::try_join_all(stretches).await?;
        Ok(found.into_iter().flatten().collect())
    }

    async fn letters_in_turn(
        &self,
        start: u64,
        end: u64,
    ) -> Result<Vec<(u64, DeadLetterRecord)>, StoreError> {
        let (stream, subjects) = (&self.settings.dlq_stream, self.settings.all_dead_letters());
        let mut letters = Vec::new();
        let mut from = start;
        while let Some(message) = self.connection.next(LIST, stream, from, &subjects).await? {
            if message.sequence >= end {
                break;
            }
            from = message.sequence.saturating_add(1);
            letters.push((message.sequence, self.told_by(message)));
            if from >= end {
                break;
            }
        }
        Ok(letters)
    }

    /// A letter of anybody. Others write no headers: the subject names the tag and the stream the rest.
    fn told_by(&self, message: Stored) -> DeadLetterRecord {
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
