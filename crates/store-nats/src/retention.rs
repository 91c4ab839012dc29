//! Removing executions for good. The tombstone comes first and the snapshot goes last: whatever dies in between leaves something that
//! is found again.
//!
//! A log is closed before it goes: a mark stands behind the record that was seen last, and nothing can be stored behind that record any
//! more. Whoever was faster with another record keeps the execution.

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::try_join_all;
use pyoco_core::ids::{ExecutionId, Version};
use pyoco_core::time::Timestamp;
use pyoco_ports::{ErrorKind, Removal, Retention, StoreError, Tombstone, WorkQueue as _};

use crate::error::{self, PublishError};
use crate::message::{Headers, Stored};
use crate::{NatsStore, log, names, resources};

const REMOVE: &str = "remove executions";
const LOOK: &str = "look for a tombstone";
const DROP: &str = "drop tombstones";

#[async_trait]
impl Retention for NatsStore {
    async fn remove(&self, removals: Vec<Removal>) -> Result<Vec<ExecutionId>, StoreError> {
        let removed = try_join_all(removals.iter().map(|removal| self.remove_one(removal))).await?;
        let gone = removals.into_iter().zip(removed).filter(|(_, is_gone)| *is_gone);
        Ok(gone.map(|(removal, _)| removal.tombstone.execution).collect())
    }

    async fn tombstone(&self, execution: &ExecutionId) -> Result<Option<Tombstone>, StoreError> {
        let found = self.connection.last(LOOK, names::RETENTION, &names::tombstone(execution)).await;
        let found = match found {
            // Somebody has deleted the stream, and every tombstone with it; whoever removes next makes it again.
            Err(error) if error::is_missing(&error) => None,
            found => found?,
        };
        found.as_ref().map(|stored| read(LOOK, stored)).transpose()
    }

    async fn drop_tombstones(&self, before: Timestamp, most: usize) -> Result<usize, StoreError> {
        let (mut dropped, mut from) = (0, 1);
        // They stand in the order in which they were made.
        while dropped < most {
            let next = self.connection.next(DROP, names::RETENTION, from, names::ALL_TOMBSTONES).await;
            let stored = match next {
                Err(error) if error::is_missing(&error) => None,
                next => next?,
            };
            let Some(stored) = stored else { break };
            if read(DROP, &stored)?.at >= before {
                break;
            }
            from = stored.sequence.saturating_add(1);
            dropped += usize::from(self.connection.delete(DROP, names::RETENTION, stored.sequence).await?);
        }
        Ok(dropped)
    }
}

impl NatsStore {
    /// Removes an execution; `false` if somebody has written to it since.
    async fn remove_one(&self, removal: &Removal) -> Result<bool, StoreError> {
        let Removal { tombstone, version } = removal;
        let execution = &tombstone.execution;
        let end = self.end_of_log(REMOVE, execution).await?;
        if end.version != *version {
            return Ok(false);
        }
        self.bury(tombstone).await?;
        let events = names::events(execution);
        let mut closed_at = end.sequence;
        if *version > Version(0) {
            let mark = log::removed().after(end.sequence);
            let published = self.connection.publish(REMOVE, names::EVENTS, &events, mark, Bytes::new()).await;
            closed_at = match published {
                Ok(published) => published.sequence,
                Err(PublishError::WrongLastSequence) => return Ok(false),
                Err(error) => return Err(error.into_store(REMOVE)),
            };
        }
        self.forget_head(execution);
        // Up to the mark: there may be another execution of this name behind it.
        self.connection.purge(REMOVE, names::EVENTS, &events, Some(closed_at.saturating_add(1))).await?;
        self.remove_lines(execution).await?;
        self.drop_waiting(execution).await?;
        self.release_blobs(execution).await?;
        self.index.bury(execution).await?;
        Ok(true)
    }

    /// Leaves a tombstone, unless there is one.
    async fn bury(&self, tombstone: &Tombstone) -> Result<(), StoreError> {
        let subject = names::tombstone(&tombstone.execution);
        let body = serde_json::to_vec(tombstone).map_err(|error| error::internal(REMOVE, error))?;
        let body = Bytes::from(body);
        let publish = || {
            let headers = Headers::new().after(0);
            self.connection.publish(REMOVE, names::RETENTION, &subject, headers, body.clone())
        };
        let published = match publish().await {
            // Somebody may have deleted it.
            Err(PublishError::NoStream) => {
                resources::ensure_retention(&self.connection, &self.settings).await?;
                publish().await
            }
            published => published,
        };
        match published {
            Ok(_) => Ok(()),
            Err(PublishError::WrongLastSequence) => {
                // It is there, or a cluster is still at work on a neighbour.
                match self.tombstone(&tombstone.execution).await? {
                    Some(_) => Ok(()),
                    None => Err(StoreError::plain(ErrorKind::Unavailable, REMOVE)),
                }
            }
            Err(error) => Err(error.into_store(REMOVE)),
        }
    }
}

fn read(operation: &'static str, stored: &Stored) -> Result<Tombstone, StoreError> {
    serde_json::from_slice(&stored.payload).map_err(|why| error::corrupt(operation, why))
}
