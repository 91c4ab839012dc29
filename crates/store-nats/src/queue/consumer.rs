//! The durable consumer of a tag, which every worker of every implementation shares.
//!
//! One that is there is never changed: an operator may have chosen its settings, and another worker may be using it.

use pyoco_core::ids::Tag;
use pyoco_ports::StoreError;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Settings;
use crate::connection::Connection;
use crate::error::{ApiError, Refusal};

/// A consumer as it stands. A message that was delivered as often as it may be counts as in hand until somebody pulls after
/// its last lease; from then on it is in neither number, although the stream still has it.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Consumer {
    /// Messages that were never delivered.
    num_pending: u64,
    /// Messages in hand or waiting for the end of a delay.
    num_ack_pending: u64,
    /// The last message that was delivered for the first time.
    delivered: Place,
    /// Everything up to here is settled.
    ack_floor: Place,
}

#[derive(Debug, Clone, Deserialize)]
struct Place {
    stream_seq: u64,
}

impl Consumer {
    /// A tag's consumer, or nothing if there is none.
    pub(super) async fn find(
        connection: &Connection,
        settings: &Settings,
        tag: &Tag,
    ) -> Result<Option<Self>, StoreError> {
        const OPERATION: &str = "look at a queue";
        let subject = format!("CONSUMER.INFO.{}.{}", settings.work_stream, Settings::work_consumer(tag));
        match connection.api(OPERATION, &subject, &Value::Null).await {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.is(Refusal::NO_CONSUMER) || error.is(Refusal::NO_STREAM) => Ok(None),
            Err(error) => Err(error.into_store(OPERATION)),
        }
    }

    /// Makes a tag's consumer. Somebody who was faster is welcome.
    pub(super) async fn make(
        connection: &Connection,
        settings: &Settings,
        tag: &Tag,
    ) -> Result<(), ApiError> {
        let (stream, name) = (&settings.work_stream, Settings::work_consumer(tag));
        let filter = settings.work(tag);
        let subject = format!("CONSUMER.CREATE.{stream}.{name}.{filter}");
        let nanoseconds = u64::try_from(settings.ack_wait.as_nanos()).unwrap_or(u64::MAX);
        let wanted = json!({
            "stream_name": stream,
            // Without it the server would change the one that is there.
            "action": "create",
            "config": {
                "name": name, "durable_name": name, "filter_subject": filter,
                "deliver_policy": "all", "ack_policy": "explicit", "replay_policy": "instant",
                "ack_wait": nanoseconds, "max_deliver": settings.max_deliver,
                "max_ack_pending": settings.max_ack_pending, "max_waiting": 512,
            },
        });
        match connection.api::<Value>("make a queue", &subject, &wanted).await {
            Err(error) if !error.is(Refusal::CONSUMER_EXISTS) => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// How many messages were never delivered.
    pub(super) const fn waiting(&self) -> u64 {
        self.num_pending
    }

    /// How many messages there are, in hand or not.
    pub(super) const fn depth(&self) -> u64 {
        self.num_pending.saturating_add(self.num_ack_pending)
    }

    /// Whether a message has been in somebody's hand.
    pub(super) const fn has_delivered(&self, sequence: u64) -> bool {
        sequence <= self.delivered.stream_seq
    }

    /// Whether a message that is in the stream is there for nobody: it was delivered as often as it may be. While others are in
    /// hand it cannot always be told from them.
    pub(super) const fn has_parked(&self, sequence: u64) -> bool {
        let is_settled = sequence <= self.ack_floor.stream_seq;
        is_settled || (self.num_ack_pending == 0 && self.has_delivered(sequence))
    }
}
