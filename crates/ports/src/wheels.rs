//! Wheels: files of Python code that workers install, on one shelf for all tenants, and the history of who changed it.

use async_trait::async_trait;
use pyoco_core::time::Timestamp;
use pyoco_wheels::{Refused, Sha256Digest, WheelName};
use serde::{Deserialize, Serialize};

use crate::StoreError;

/// The shelf. A wheel is there as a whole or not at all, and its bytes never change.
#[async_trait]
pub trait Wheels: Send + Sync {
    /// All wheels, in the order of their names. MUST show none that was deleted, and MUST skip what is no wheel. `[wheels/list]`
    async fn wheels(&self) -> Result<Vec<WheelRecord>, StoreError>;

    /// One wheel, if it is there. `[wheels/list]`
    async fn wheel(&self, name: &WheelName) -> Result<Option<WheelRecord>, StoreError>;

    /// Puts a wheel on the shelf.
    ///
    /// - MUST refuse what [`pyoco_wheels::may_upload`] refuses, decided in the step in which the wheel becomes visible: of two that
    ///   come at once one is refused, also when they come to two processes. `[wheels/rule]` `[wheels/race]`
    /// - MUST show nothing of it before all of it is durable, and nothing at all if the bytes end early, are not as many as said, or
    ///   do not hash to what is said: that is `Corrupt`. What is left of a wheel that never came MUST go, at the next start at the
    ///   latest. `[wheels/put]` `[wheels/torn]`
    /// - MUST hold no more than a few pieces of it in memory.
    async fn put_wheel(
        &self,
        wheel: NewWheel,
        bytes: &mut dyn WheelBytes,
    ) -> Result<Result<WheelRecord, Refused>, StoreError>;

    /// The bytes of a wheel from an offset on; nothing if this very upload is not there any more. MUST end in `Corrupt` when what was
    /// read from the very beginning does not hash to what the record says, before the last piece is handed out. `[wheels/read]`
    /// `[wheels/flipped]` MUST go on to the end when the wheel is deleted while it is read, or end in an error; never in other bytes.
    async fn read_wheel(
        &self,
        wheel: &WheelRecord,
        from: u64,
    ) -> Result<Option<Box<dyn WheelBytes>>, StoreError>;

    /// Takes a wheel from the shelf; says which, or nothing if it was not there. `[wheels/delete]`
    async fn delete_wheel(&self, name: &WheelName, at: Timestamp) -> Result<Option<WheelRecord>, StoreError>;

    /// Listens to changes of the shelf. `[wheels/heard]`
    async fn listen_to_wheels(&self) -> Result<Box<dyn ShelfListening>, StoreError>;

    /// Writes down who changed the shelf. MUST keep an event with the same id once. `[wheels/history]`
    async fn note_wheel(&self, event: WheelEvent) -> Result<(), StoreError>;

    /// The newest events first, by time and then by id, at most so many. MUST apply every filter exactly. Events older than the store
    /// was told to keep MUST NOT be shown. `[wheels/history]` `[wheels/forgotten]`
    async fn wheel_history(
        &self,
        filter: &WheelHistoryFilter,
        now: Timestamp,
    ) -> Result<Vec<WheelEvent>, StoreError>;
}

/// The bytes of a wheel, piece by piece.
#[async_trait]
pub trait WheelBytes: Send {
    /// The next piece, never an empty one; nothing at the end.
    async fn next(&mut self) -> Result<Option<Vec<u8>>, StoreError>;
}

/// Hears that the shelf has changed.
#[async_trait]
pub trait ShelfListening: Send {
    /// Returns when the shelf may have changed since the last time; `false` when the store is closed. May be dropped and called again.
    /// It is a hint, and may be missed: whoever must know looks now and then.
    async fn changed(&mut self) -> bool;
}

/// A wheel on the shelf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WheelRecord {
    /// Its name.
    pub name: WheelName,
    /// Tells this upload from any other of the same name.
    pub nuid: String,
    /// How long it is.
    pub size_bytes: u64,
    /// What its bytes hash to.
    pub sha256: Sha256Digest,
    /// When it was put there.
    pub modified: Timestamp,
    /// The workers it is for; none is all of them.
    pub tags: Vec<String>,
}

/// A wheel that is to be put on the shelf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewWheel {
    /// Its name.
    pub name: WheelName,
    /// How long it is.
    pub size_bytes: u64,
    /// What its bytes hash to.
    pub sha256: Sha256Digest,
    /// When.
    pub at: Timestamp,
    /// The workers it is for; none is all of them.
    pub tags: Vec<String>,
    /// What its uploader called it (`Content-Type`).
    pub content_type: String,
}

/// What was done to the shelf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WheelAction {
    /// A wheel came.
    Upload,
    /// A wheel went.
    Delete,
}

/// One change of the shelf, in the contract's form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WheelEvent {
    /// Makes a repeat recognisable.
    pub event_id: String,
    /// When, in seconds since 1970.
    pub occurred_at: f64,
    /// What.
    pub action: WheelAction,
    /// Which wheel.
    pub wheel_name: String,
    /// The workers it is for.
    #[serde(default)]
    pub tags: Vec<String>,
    /// How long it is.
    #[serde(default)]
    pub size_bytes: Option<u64>,
    /// What it hashes to.
    #[serde(default)]
    pub sha256_hex: Option<String>,
    /// Whether the uploader said that an older one may be replaced.
    #[serde(default)]
    pub replace: Option<bool>,
    /// Who.
    #[serde(default)]
    pub actor: WheelActor,
    /// From where.
    #[serde(default)]
    pub source: WheelSource,
}

/// Who changed the shelf, if keys are asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WheelActor {
    /// The tenant of the key.
    #[serde(default)]
    pub tenant_id: Option<String>,
    /// The key, by its name.
    #[serde(default)]
    pub api_key_id: Option<String>,
}

/// From where the shelf was changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names of the request's own headers say it")]
pub struct WheelSource {
    #[serde(default)]
    pub remote_addr: Option<String>,
    #[serde(default)]
    pub x_forwarded_for: Option<String>,
    #[serde(default)]
    pub x_real_ip: Option<String>,
    #[serde(default)]
    pub user_agent: Option<String>,
    #[serde(default)]
    pub host: Option<String>,
    #[serde(default)]
    pub scheme: Option<String>,
}

/// Which events of the history are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WheelHistoryFilter {
    /// Of this wheel.
    pub wheel_name: Option<String>,
    /// Of this kind.
    pub action: Option<WheelAction>,
    /// At most so many.
    pub limit: usize,
}

impl WheelHistoryFilter {
    /// Whether an event is wanted; how many there may be is the store's business.
    pub fn shows(&self, event: &WheelEvent) -> bool {
        self.wheel_name.as_ref().is_none_or(|name| *name == event.wheel_name)
            && self.action.is_none_or(|action| action == event.action)
    }
}
