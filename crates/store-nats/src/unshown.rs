//! Finds executions that have a log and that nobody sees: whoever began one was lost between its first record and its snapshot.
//!
//! New records are looked through once, a few at a time and beside everything else, without a consumer. How far that went stands in NATS, so that
//! whoever looks next goes on there; two who look at the same records find the same, which is harmless. What becomes of an
//! execution that was found is the engine's business.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use pyoco_core::ids::ExecutionId;
use pyoco_core::time::{Millis, Timestamp};
use pyoco_ports::{LogPlace, StoreError, Unshown};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::error::{self, PublishError};
use crate::message::{Headers, Stored};
use crate::stream::{Most, StreamInfo};
use crate::{NatsStore, log, names, resources};

const LOOK: &str = "look for executions that nobody sees";

/// So old is a first record that is looked at, by the clock of the server: whoever stored it has shown it by then, or has told its
/// caller that it was not accepted and takes it back.
const AGE: Millis = Millis(5_000);
/// So long everybody must have been answered before anybody looks. After an outage those who refused something take it back first.
const CALM: Duration = Duration::from_secs(10);
/// Where nobody has looked before, what is older is not looked at: it was begun when nobody looked for such executions, and there may
/// be years of it.
const OLDEST: Millis = Millis(24 * 60 * 60 * 1_000);
/// So long one look takes at most: what it found waits for it. What is left is for the next one.
const LONGEST: Duration = Duration::from_secs(10);
/// How many records are asked for at once. Few, because requests wait while they are read,
const PAGE: usize = 500;
/// and so many times as long as that took they go first: there may be thousands of new records a second, and hardly ever one to be found.
const REST: u32 = 9;

/// The stream that this process has looked through, and how far anybody has, as far as it knows.
#[derive(Debug, Default)]
pub(crate) struct Look(Mutex<Option<(Timestamp, Option<Place>)>>);

/// A place in the stream of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Place {
    /// When the stream was made: in another one of its name the numbers mean something else.
    created: Timestamp,
    /// The last record that was looked at.
    sequence: u64,
}

impl Place {
    /// How far that is in a stream as it stands now; nothing if it is another stream, or one that was made of an older copy.
    fn of(self, info: &StreamInfo) -> Option<u64> {
        let is_its = self.created == info.created && self.sequence <= info.state.last_seq;
        is_its.then_some(self.sequence)
    }
}

impl Look {
    fn stream(&self) -> Option<Timestamp> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).map(|(stream, _)| stream)
    }

    fn known(&self) -> Option<Place> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).and_then(|(_, place)| place)
    }

    fn learn(&self, stream: Timestamp, place: Option<Place>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((stream, place));
    }
}

impl NatsStore {
    /// Looks through what is new and old enough.
    pub(crate) async fn look_for_unshown(&self) -> Result<Unshown, StoreError> {
        let mut found = Unshown::default();
        if self.connection.calm_for() < CALM {
            return Ok(found);
        }
        let Some(info) = self.connection.info(LOOK, names::EVENTS, None).await? else { return Ok(found) };
        let known = self.look.known().and_then(|place| place.of(&info));
        // Without its clock nobody can tell what is old.
        let Some(now) = info.ts.filter(|_| known != Some(info.state.last_seq)) else { return Ok(found) };
        let known = self.looked(&info).await?.max(known);
        let begin = match known {
            Some(known) => known,
            None => self.begin(&info, now).await?,
        };
        let until = self.look_behind(begin, &info, now, &mut found.executions).await?;
        let created = info.created;
        self.look.learn(created, known.map(|sequence| Place { created, sequence }));
        found.until = (known != Some(until)).then_some(LogPlace(until));
        Ok(found)
    }

    /// Goes through the records behind one, as far as they are old enough, and says how far that was.
    async fn look_behind(
        &self,
        begin: u64,
        info: &StreamInfo,
        now: Timestamp,
        found: &mut Vec<ExecutionId>,
    ) -> Result<u64, StoreError> {
        let over = Instant::now() + LONGEST;
        let mut until = begin;
        while until < info.state.last_seq {
            let (since, from, most) = (Instant::now(), until.saturating_add(1), Most::messages(PAGE));
            let is_direct = self.resources.is_events_direct;
            let page =
                self.connection.page(LOOK, names::EVENTS, names::ALL_EVENTS, from, most, is_direct).await?;
            if page.is_empty() {
                // What stood up to here is gone.
                return Ok(info.state.last_seq);
            }
            let is_old = |message: &&Stored| message.time.after(AGE) <= now;
            let old: Vec<&Stored> = page.iter().take_while(is_old).collect();
            let first = old.iter().filter(|message| log::is_first(message));
            let begun = first.filter_map(|message| names::of_events(&message.subject)).collect();
            found.extend(self.index.unshown(LOOK, begun).await?);
            until = old.last().map_or(until, |message| message.sequence);
            let rest = since.elapsed() * REST;
            if old.len() < page.len() || Instant::now() + rest >= over {
                break;
            }
            tokio::time::sleep(rest).await;
        }
        Ok(until)
    }

    /// How far somebody has looked; nothing if nobody has, or nobody knows.
    async fn looked(&self, info: &StreamInfo) -> Result<Option<u64>, StoreError> {
        let last = match self.connection.last(LOOK, names::RETENTION, names::LOOKED).await {
            // Somebody has deleted the stream; whoever looks makes it again.
            Err(error) if error::is_missing(&error) => None,
            last => last?,
        };
        let place = last.and_then(|last| serde_json::from_slice::<Place>(&last.payload).ok());
        Ok(place.and_then(|place| place.of(info)))
    }

    /// The record behind which a first look begins.
    async fn begin(&self, info: &StreamInfo, now: Timestamp) -> Result<u64, StoreError> {
        let oldest = i64::try_from(OLDEST.0).unwrap_or(i64::MAX).saturating_mul(1_000);
        let since = Timestamp::from_micros(now.as_micros().saturating_sub(oldest));
        let first = match self.connection.first_since(LOOK, names::EVENTS, names::ALL_EVENTS, since).await {
            // A server that cannot tell: then with what comes from now on.
            Err(error) if !error.kind.is_retryable() => None,
            first => first?,
        };
        Ok(first.map_or(info.state.last_seq, |first| first.sequence.saturating_sub(1)))
    }

    /// Remembers, for everybody, how far a look went whose findings were seen to.
    pub(crate) async fn looked_until(&self, until: LogPlace) -> Result<(), StoreError> {
        // The number alone does not say of which stream.
        let Some(created) = self.look.stream() else { return Ok(()) };
        let place = Place { created, sequence: until.0 };
        let body = Bytes::from(serde_json::to_vec(&place).map_err(|error| error::internal(LOOK, error))?);
        let publish = || {
            let headers = Headers::new();
            self.connection.publish(LOOK, names::RETENTION, names::LOOKED, headers, body.clone())
        };
        let published = match publish().await {
            // Somebody may have deleted it.
            Err(PublishError::NoStream) => {
                resources::ensure_retention(&self.connection, &self.settings).await?;
                publish().await
            }
            published => published,
        };
        published.map_err(|error| error.into_store(LOOK))?;
        self.look.learn(created, Some(place));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_place_counts_in_its_own_stream_and_only_up_to_its_end() {
        let info = json!({
            "config": {}, "state": {"last_seq": 7}, "created": "2026-01-02T03:04:05.123456789Z", "ts": null,
        });
        let info: StreamInfo = serde_json::from_value(info).unwrap();
        let place = Place { created: info.created, sequence: 7 };
        // What was written down is what is read.
        let read: Place = serde_json::from_slice(&serde_json::to_vec(&place).unwrap()).unwrap();
        assert_eq!((read, read.of(&info)), (place, Some(7)));
        assert_eq!(Place { sequence: 8, ..place }.of(&info), None);
        let another = place.created.after(Millis(1));
        assert_eq!(Place { created: another, ..place }.of(&info), None);
    }
}
