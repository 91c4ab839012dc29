//! Taking a wheel away: first its description, then its pieces.

use std::time::Duration;

use bytes::Bytes;
use pyoco_ports::{ErrorKind, StoreError, WheelRecord};
use pyoco_wheels::WheelName;

use super::{DELETE, Shelf, object};
use crate::error::PublishError;
use crate::message::{Headers, Stored};

/// Each lost race means that something else stands there now; more than a few mean something else.
const ATTEMPTS: u32 = 8;
const PAUSE: Duration = Duration::from_millis(10);

pub(super) async fn delete(shelf: &Shelf, name: &WheelName) -> Result<Option<WheelRecord>, StoreError> {
    for attempt in 1..=ATTEMPTS {
        let Some(stored) = shelf.description(DELETE, name).await? else { return Ok(None) };
        let Some(record) = object::record(&shelf.settings, &stored) else { return Ok(None) };
        if describe_deleted(shelf, &stored).await? {
            shelf.forget_pieces(DELETE, &record.nuid).await;
            return Ok(Some(record));
        }
        tokio::time::sleep(PAUSE.saturating_mul(attempt)).await;
    }
    Err(StoreError::new(ErrorKind::Unavailable, DELETE, "others were always faster"))
}

/// `false` if somebody else has just deleted it, or described another.
async fn describe_deleted(shelf: &Shelf, stored: &Stored) -> Result<bool, StoreError> {
    let Some(deleted) = object::describe_deleted(stored) else { return Ok(false) };
    let headers = Headers::new().word("Nats-Rollup", "sub").after(stored.sequence);
    let Shelf { connection, stream, .. } = shelf;
    match connection.publish(DELETE, stream, &stored.subject, headers, Bytes::from(deleted)).await {
        Ok(_) => Ok(true),
        Err(PublishError::WrongLastSequence) => Ok(false),
        // A bucket that is full does not even take this. Without any description it is gone as well, though nobody hears of it.
        Err(PublishError::Store(error)) if error.kind == ErrorKind::Full => {
            let end = stored.sequence.saturating_add(1);
            Ok(connection.purge(DELETE, stream, &stored.subject, Some(end)).await? > 0)
        }
        Err(error) => Err(error.into_store(DELETE)),
    }
}
