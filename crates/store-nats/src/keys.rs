//! Records of API keys: a bucket that other implementations read and write too, with one message for each key.
//!
//! A revision is the number of the message. Who deletes a key leaves a mark there, which is as good as nothing.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use pyoco_core::ids::KeyId;
use pyoco_ports::{ErrorKind, KeyRecords, StoreError, StoredKey};

use crate::error::{self, PublishError};
use crate::message::{Headers, Stored};
use crate::{NatsStore, names, resources};

const GET: &str = "get an API key";
const PUT: &str = "put an API key";
const LIST: &str = "list API keys";

/// Each lost race means that something else stands there now, so that ours is over; more than a few mean something else.
const ATTEMPTS: u32 = 5;
/// Before the second look, then twice as long before each.
const FIRST_PAUSE: Duration = Duration::from_millis(10);

#[async_trait]
impl KeyRecords for NatsStore {
    /// From the leader: a key that was revoked must not be good any more.
    async fn key(&self, id: &KeyId) -> Result<Option<StoredKey>, StoreError> {
        let last = self.last_of_key(GET, &self.settings.key(id)).await?;
        Ok(last.and_then(stored_key))
    }

    async fn put_key(&self, id: &KeyId, record: Vec<u8>, over: Option<u64>) -> Result<bool, StoreError> {
        // To a stream 0 means that there is nothing; no writing has it.
        if over == Some(0) {
            return Ok(false);
        }
        let (subject, record) = (self.settings.key(id), Bytes::from(record));
        let mut behind = over.unwrap_or(0);
        for attempt in 0..ATTEMPTS {
            match self.publish_key(&subject, behind, record.clone()).await {
                Ok(()) => return Ok(true),
                // Something else stands there, or the mark of a deletion, or a cluster is still at work on a neighbour. Look.
                Err(PublishError::WrongLastSequence) => {
                    if attempt > 0 {
                        tokio::time::sleep(FIRST_PAUSE * 2_u32.pow(attempt)).await;
                    }
                    let last = self.last_of_key(PUT, &subject).await?;
                    behind = last.as_ref().map_or(0, |last| last.sequence);
                    if last.and_then(stored_key).map(|key| key.revision) != over {
                        return Ok(false);
                    }
                }
                Err(error) => return Err(error.into_store(PUT)),
            }
        }
        Err(StoreError::new(ErrorKind::Unavailable, PUT, "the bucket takes no record behind its last one"))
    }

    /// The names from the leader with one request, then each record from it: no consumer, and nothing that lags.
    async fn keys(&self) -> Result<Vec<(KeyId, StoredKey)>, StoreError> {
        let stream = names::bucket_stream(&self.settings.auth_bucket);
        let all = self.settings.all_keys();
        let Some(subjects) = self.connection.subjects(LIST, &stream, &all).await? else {
            return Ok(Vec::new());
        };
        // What is there under another kind of name is no key of ours.
        let id = |subject: &str| {
            let (_, id) = subject.rsplit_once('.')?;
            KeyId::new(id).ok().filter(|id| self.settings.key(id) == subject)
        };
        let subjects = subjects.into_iter().filter(|subject| id(subject).is_some());
        let lasts = self.connection.last_of_each(LIST, &stream, subjects).await?;
        Ok(lasts.into_iter().filter_map(|last| Some((id(&last.subject)?, stored_key(last)?))).collect())
    }
}

impl NatsStore {
    async fn last_of_key(
        &self,
        operation: &'static str,
        subject: &str,
    ) -> Result<Option<Stored>, StoreError> {
        let stream = names::bucket_stream(&self.settings.auth_bucket);
        match self.connection.last(operation, &stream, subject).await {
            // Somebody has removed the bucket, and every key with it; whoever writes next makes it again.
            Err(error) if error::is_missing(&error) => Ok(None),
            found => found,
        }
    }

    async fn publish_key(&self, subject: &str, behind: u64, record: Bytes) -> Result<(), PublishError> {
        let stream = names::bucket_stream(&self.settings.auth_bucket);
        let publish =
            || self.connection.publish(PUT, &stream, subject, Headers::new().after(behind), record.clone());
        let published = match publish().await {
            // Somebody may have deleted it.
            Err(PublishError::NoStream) => {
                resources::ensure_auth(&self.connection, &self.settings).await?;
                publish().await
            }
            published => published,
        };
        published.map(|_| ())
    }
}

/// The record that a message is; `None` if it marks a deletion, by a client of the bucket or by the server.
fn stored_key(message: Stored) -> Option<StoredKey> {
    let is_deleted = matches!(message.headers.get("KV-Operation"), Some("DEL" | "PURGE"))
        || message.headers.get("Nats-Marker-Reason").is_some();
    (!is_deleted).then(|| StoredKey { record: message.payload.into(), revision: message.sequence })
}
