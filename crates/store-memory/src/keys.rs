//! Records of API keys in memory.

use std::collections::BTreeMap;

use async_trait::async_trait;
use pyoco_core::ids::KeyId;
use pyoco_ports::{KeyRecords, StoreError, StoredKey};

use crate::MemoryStore;

#[derive(Debug, Default)]
pub(crate) struct Keys {
    records: BTreeMap<KeyId, StoredKey>,
    /// How often any of them was written.
    writings: u64,
}

#[async_trait]
impl KeyRecords for MemoryStore {
    async fn key(&self, id: &KeyId) -> Result<Option<StoredKey>, StoreError> {
        Ok(self.inner().keys.records.get(id).cloned())
    }

    async fn put_key(&self, id: &KeyId, record: Vec<u8>, over: Option<u64>) -> Result<bool, StoreError> {
        let keys = &mut self.inner().keys;
        if keys.records.get(id).map(|known| known.revision) != over {
            return Ok(false);
        }
        keys.writings += 1;
        keys.records.insert(id.clone(), StoredKey { record, revision: keys.writings });
        Ok(true)
    }

    async fn keys(&self) -> Result<Vec<(KeyId, StoredKey)>, StoreError> {
        Ok(self.inner().keys.records.iter().map(|(id, key)| (id.clone(), key.clone())).collect())
    }
}
