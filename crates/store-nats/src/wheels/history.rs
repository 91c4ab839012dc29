//! Who changed the shelf: a bucket with one message for each event, at a key that begins with its time.

use bytes::Bytes;
use pyoco_core::digest::Digest;
use pyoco_core::time::Timestamp;
use pyoco_ports::{StoreError, WheelEvent, WheelHistoryFilter};

use super::{HISTORY, NOTE, Shelf};
use crate::error::{self, PublishError};
use crate::message::Headers;
use crate::{names, resources};

/// So many events are read at a time.
const PAGE: usize = 256;

/// Writes an event down, once.
pub(super) async fn note(shelf: &Shelf, event: &WheelEvent) -> Result<(), StoreError> {
    let Shelf { connection, settings, .. } = shelf;
    let at = Timestamp::from_unix_seconds(event.occurred_at)
        .ok_or_else(|| error::internal(NOTE, "an event has no time"))?;
    let subject = settings.wheel_event(at.as_micros().max(0) / 1_000, &event.event_id);
    let stream = names::bucket_stream(&settings.wheel_history_bucket);
    let body = Bytes::from(serde_json::to_vec(event).map_err(|why| error::internal(NOTE, why))?);
    let publish = || {
        let id = Digest::of_bytes(event.event_id.as_bytes());
        let headers = Headers::new().digest("Nats-Msg-Id", &id).after(0);
        connection.publish(NOTE, &stream, &subject, headers, body.clone())
    };
    let published = match publish().await {
        // Somebody may have deleted it.
        Err(PublishError::NoStream) => {
            resources::ensure_wheel_history(connection, settings).await?;
            publish().await
        }
        published => published,
    };
    match published {
        // It is there already: nobody else has its id.
        Ok(_) | Err(PublishError::WrongLastSequence) => Ok(()),
        Err(error) => Err(error.into_store(NOTE)),
    }
}

/// The newest events. The keys are read with one request, and then the events from the newest on, until there are enough.
pub(super) async fn events(
    shelf: &Shelf,
    filter: &WheelHistoryFilter,
    now: Timestamp,
) -> Result<Vec<WheelEvent>, StoreError> {
    let Shelf { connection, settings, .. } = shelf;
    let stream = names::bucket_stream(&settings.wheel_history_bucket);
    let all = names::bucket_subjects(&settings.wheel_history_bucket);
    let subjects = connection.subjects(HISTORY, &stream, &all).await?.unwrap_or_default();
    let (mut keys, mut odd) = (Vec::new(), Vec::new());
    for subject in subjects {
        match moment(&all, &subject) {
            Some(at) => keys.push((at, subject)),
            None => odd.push(subject),
        }
    }
    keys.sort_unstable_by(|a, b| b.cmp(a));
    let ttl = settings.wheel_history_ttl;
    let oldest = now.as_unix_seconds() - ttl.as_secs_f64();
    let is_wanted =
        |event: &WheelEvent| filter.shows(event) && (ttl.is_zero() || event.occurred_at >= oldest);
    let read = async |page: Vec<String>| {
        let stored = connection.last_of_each(HISTORY, &stream, page).await?;
        // What cannot be read is somebody else's, or marks that something is gone.
        let events = stored.iter().filter_map(|stored| serde_json::from_slice(&stored.payload).ok());
        Ok::<Vec<WheelEvent>, StoreError>(events.filter(is_wanted).collect())
    };
    let mut keys = keys.into_iter().peekable();
    let mut found: Vec<WheelEvent> = Vec::new();
    while found.len() < filter.limit && keys.peek().is_some() {
        let mut page = Vec::new();
        let mut last = None;
        // What happened in the same millisecond is ordered by what the events say, so it is read together.
        while let Some((at, subject)) = keys.next_if(|(at, _)| page.len() < PAGE || last == Some(*at)) {
            last = Some(at);
            page.push(subject);
        }
        found.extend(read(page).await?);
    }
    found.extend(read(odd).await?);
    found.sort_by(|a, b| b.occurred_at.total_cmp(&a.occurred_at).then_with(|| b.event_id.cmp(&a.event_id)));
    found.truncate(filter.limit);
    Ok(found)
}

/// When the event of a key happened, in milliseconds; `None` for a key of another form, which may be of any time.
fn moment(all: &str, subject: &str) -> Option<u64> {
    let key = subject.strip_prefix(all.trim_end_matches('>'))?;
    key.split_once('_')?.0.parse().ok()
}
