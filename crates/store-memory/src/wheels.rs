//! Wheels in memory, and their history.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use pyoco_core::time::{Millis, Timestamp};
use pyoco_ports::{
    ErrorKind, NewWheel, ShelfListening, StoreError, WheelBytes, WheelEvent, WheelHistoryFilter, WheelRecord,
    Wheels,
};
use pyoco_wheels::{Refused, Sha256Digest, WheelName, may_upload};
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;

use crate::MemoryStore;

/// Events are kept for so long: 90 days, as the other stores do unless they are told otherwise.
const HISTORY: Millis = Millis(7_776_000_000);
/// So much of a wheel is given out at a time.
const PIECE: usize = 64 * 1024;

#[derive(Debug, Default)]
pub(crate) struct Shelf {
    wheels: BTreeMap<WheelName, (WheelRecord, Arc<[u8]>)>,
    /// How many were ever put there.
    uploads: u64,
    history: Vec<WheelEvent>,
}

#[async_trait]
impl Wheels for MemoryStore {
    async fn wheels(&self) -> Result<Vec<WheelRecord>, StoreError> {
        Ok(self.inner().wheels.wheels.values().map(|(record, _)| record.clone()).collect())
    }

    async fn wheel(&self, name: &WheelName) -> Result<Option<WheelRecord>, StoreError> {
        Ok(self.inner().wheels.wheels.get(name).map(|(record, _)| record.clone()))
    }

    async fn put_wheel(
        &self,
        wheel: NewWheel,
        bytes: &mut dyn WheelBytes,
    ) -> Result<Result<WheelRecord, Refused>, StoreError> {
        let mut content = Vec::new();
        while let Some(piece) = bytes.next().await? {
            content.extend(piece);
        }
        let NewWheel { name, size_bytes, sha256, at, tags, content_type: _ } = wheel;
        if content.len() as u64 != size_bytes || hash(&content) != sha256 {
            return Err(StoreError::new(ErrorKind::Corrupt, "put a wheel", "it is not what was announced"));
        }
        let mut inner = self.inner();
        let shelf = &mut inner.wheels;
        if let Err(refused) = may_upload(shelf.wheels.keys(), &name) {
            return Ok(Err(refused));
        }
        shelf.uploads += 1;
        let nuid = format!("upload-{}", shelf.uploads);
        let record = WheelRecord { name: name.clone(), nuid, size_bytes, sha256, modified: at, tags };
        shelf.wheels.insert(name, (record.clone(), content.into()));
        drop(inner);
        self.shelf.send_modify(|changes| *changes += 1);
        Ok(Ok(record))
    }

    async fn read_wheel(
        &self,
        wheel: &WheelRecord,
        from: u64,
    ) -> Result<Option<Box<dyn WheelBytes>>, StoreError> {
        let inner = self.inner();
        let found = inner.wheels.wheels.get(&wheel.name).filter(|(record, _)| record.nuid == wheel.nuid);
        let at = usize::try_from(from).unwrap_or(usize::MAX);
        Ok(found.map(|(_, bytes)| -> Box<dyn WheelBytes> { Box::new(Rest { bytes: bytes.clone(), at }) }))
    }

    async fn delete_wheel(
        &self,
        name: &WheelName,
        _at: Timestamp,
    ) -> Result<Option<WheelRecord>, StoreError> {
        let removed = self.inner().wheels.wheels.remove(name);
        if removed.is_some() {
            self.shelf.send_modify(|changes| *changes += 1);
        }
        Ok(removed.map(|(record, _)| record))
    }

    async fn listen_to_wheels(&self) -> Result<Box<dyn ShelfListening>, StoreError> {
        Ok(Box::new(Ear(self.shelf.subscribe())))
    }

    async fn note_wheel(&self, event: WheelEvent) -> Result<(), StoreError> {
        let history = &mut self.inner().wheels.history;
        if !history.iter().any(|known| known.event_id == event.event_id) {
            history.push(event);
        }
        Ok(())
    }

    async fn wheel_history(
        &self,
        filter: &WheelHistoryFilter,
        now: Timestamp,
    ) -> Result<Vec<WheelEvent>, StoreError> {
        let inner = self.inner();
        let is_young = |event: &&WheelEvent| {
            let at = Timestamp::from_unix_seconds(event.occurred_at);
            at.is_some_and(|at| at.after(HISTORY) >= now)
        };
        let shown = inner.wheels.history.iter().filter(|event| filter.shows(event)).filter(is_young);
        let mut shown: Vec<WheelEvent> = shown.cloned().collect();
        shown.sort_by(newest_first);
        shown.truncate(filter.limit);
        Ok(shown)
    }
}

/// By time, and then by id.
fn newest_first(one: &WheelEvent, other: &WheelEvent) -> Ordering {
    let by_time = other.occurred_at.total_cmp(&one.occurred_at);
    by_time.then_with(|| other.event_id.cmp(&one.event_id))
}

/// What is left of a wheel to read.
struct Rest {
    bytes: Arc<[u8]>,
    at: usize,
}

#[async_trait]
impl WheelBytes for Rest {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let piece = rest.get(..PIECE.min(rest.len())).unwrap_or_default().to_vec();
        self.at = self.at.saturating_add(piece.len());
        Ok(Some(piece).filter(|piece| !piece.is_empty()))
    }
}

/// Hears that the shelf has changed.
struct Ear(watch::Receiver<u64>);

#[async_trait]
impl ShelfListening for Ear {
    async fn changed(&mut self) -> bool {
        self.0.changed().await.is_ok()
    }
}

fn hash(bytes: &[u8]) -> Sha256Digest {
    Sha256Digest::of_bytes(Sha256::digest(bytes).into())
}
