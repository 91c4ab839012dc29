//! Records of API keys. What one says is `pyoco-access`' business; no secret stands in it.

use async_trait::async_trait;
use pyoco_core::ids::KeyId;

use crate::StoreError;

/// The record of every API key.
#[async_trait]
pub trait KeyRecords: Send + Sync {
    /// The record of a key, and which writing of it this is. MUST see every record whose writing has returned, whichever process
    /// wrote it. `[keys/get]`
    async fn key(&self, id: &KeyId) -> Result<Option<StoredKey>, StoreError>;

    /// Writes a record over the writing that is named, or where there is none. MUST change nothing, and say `false`, when something else
    /// stands there. When it returns the record MUST survive a loss of power. `[keys/put]`
    async fn put_key(&self, id: &KeyId, record: Vec<u8>, over: Option<u64>) -> Result<bool, StoreError>;

    /// All of them, in any order. `[keys/list]`
    async fn keys(&self) -> Result<Vec<(KeyId, StoredKey)>, StoreError>;
}

/// A record as it stands there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredKey {
    /// What was written.
    pub record: Vec<u8>,
    /// Each writing has another one.
    pub revision: u64,
}
