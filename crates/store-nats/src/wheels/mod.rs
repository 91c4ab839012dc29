//! Wheels: a bucket of objects that other implementations read and write too, and the bucket of its history.
//!
//! - `object` is how a wheel is described there
//! - `shelf` lists what is described, `put` and `delete` change it, `read` brings the bytes
//! - `hear` tells of changes, `sweep` takes away pieces that nobody describes
//! - `history` has the events
//!
//! The pieces of a wheel are stored first, then its description, behind the description that was the last one of the whole bucket when the
//! rule was asked. So of two uploads one is refused, and what is described is whole. What was described as deleted loses its pieces
//! after that.

mod delete;
mod hear;
mod history;
mod object;
mod put;
mod read;
mod shelf;
mod sweep;

use std::time::Duration;

use async_trait::async_trait;
use pyoco_core::time::Timestamp;
use pyoco_ports::{
    NewWheel, ShelfListening, StoreError, WheelBytes, WheelEvent, WheelHistoryFilter, WheelRecord, Wheels,
};
use pyoco_wheels::{Refused, WheelName};

use crate::NatsStore;

pub(crate) use shelf::Shelf;

const LIST: &str = "list wheels";
const GET: &str = "get a wheel";
const PUT: &str = "put a wheel";
const READ: &str = "read a wheel";
const DELETE: &str = "delete a wheel";
const HEAR: &str = "listen to wheels";
const SWEEP: &str = "sweep up pieces of wheels";
const NOTE: &str = "note a change of wheels";
const HISTORY: &str = "read the history of wheels";

#[async_trait]
impl Wheels for NatsStore {
    async fn wheels(&self) -> Result<Vec<WheelRecord>, StoreError> {
        Ok(self.shelf.look(LIST).await?.into_records())
    }

    async fn wheel(&self, name: &WheelName) -> Result<Option<WheelRecord>, StoreError> {
        self.shelf.wheel(GET, name).await
    }

    async fn put_wheel(
        &self,
        wheel: NewWheel,
        bytes: &mut dyn WheelBytes,
    ) -> Result<Result<WheelRecord, Refused>, StoreError> {
        put::put(&self.shelf, wheel, bytes).await
    }

    async fn read_wheel(
        &self,
        wheel: &WheelRecord,
        from: u64,
    ) -> Result<Option<Box<dyn WheelBytes>>, StoreError> {
        read::read(&self.shelf, wheel, from).await
    }

    /// The other implementations leave no time at a wheel that they delete, and so do we.
    async fn delete_wheel(
        &self,
        name: &WheelName,
        _at: Timestamp,
    ) -> Result<Option<WheelRecord>, StoreError> {
        delete::delete(&self.shelf, name).await
    }

    async fn listen_to_wheels(&self) -> Result<Box<dyn ShelfListening>, StoreError> {
        hear::listen(&self.shelf).await
    }

    async fn note_wheel(&self, event: WheelEvent) -> Result<(), StoreError> {
        history::note(&self.shelf, &event).await
    }

    async fn wheel_history(
        &self,
        filter: &WheelHistoryFilter,
        now: Timestamp,
    ) -> Result<Vec<WheelEvent>, StoreError> {
        history::events(&self.shelf, filter, now).await
    }
}

impl NatsStore {
    /// Takes away pieces that belong to no wheel, of uploads that have stored nothing for so long; says of how many uploads. A gateway
    /// does it by itself, once a day.
    pub async fn sweep_wheels(&self, older_than: Duration) -> Result<usize, StoreError> {
        self.shelf.sweep(older_than).await
    }
}
