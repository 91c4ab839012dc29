//! For the tests of this crate: records in memory, that can be slow or away, and records that pyoco-server 0.5.1 made.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use pyoco_core::access::Role;
use pyoco_core::ids::{KeyId, TenantId};
use pyoco_core::time::Timestamp;
use pyoco_ports::{ErrorKind, KeyRecords, StoreError, StoredKey};
use tokio::sync::watch;

use crate::hashing;
use crate::record::{KeyRecord, Proof};
use crate::secret::{Key, Pepper};

/// A key and its record, as the original made them.
pub(crate) struct Sample {
    pub(crate) key: &'static str,
    pub(crate) record: &'static str,
    pub(crate) pepper: &'static str,
}

/// Without a pepper.
pub(crate) const ORIGINAL: Sample = Sample {
    key: "pyoco_a7ea7b0b6c3b070317487e84.T_SxbbGCDE7GuRo3-A6EklYaftHuKV4Dcah4pON0FTw",
    record: r#"{"key_id":"a7ea7b0b6c3b070317487e84","tenant_id":"team-a","kdf":"pbkdf2_hmac_sha256","iterations":200000,"salt_b64":"vsT0OnmV8Qaz45rr3oucbA","hash_b64":"qb6DrEoTNpYEWpoQGNXX5qge7JDGnclA8Ik_oqfEHPo","created_at":1700000000.25,"revoked_at":null}"#,
    pepper: "",
};

/// With one.
pub(crate) const PEPPERED: Sample = Sample {
    key: "pyoco_2c21d3c62f3da5b97c1c1ae3.8t59HkRtickRia3QLtmfBRLwfsoQ0yohjE2TDXv8iYQ",
    record: r#"{"key_id":"2c21d3c62f3da5b97c1c1ae3","tenant_id":"team-a","kdf":"pbkdf2_hmac_sha256","iterations":200000,"salt_b64":"fmDrqO3gQGPZjFJ4nlDLnQ","hash_b64":"UDSNFPdrd22FBHoDR02jHeh-ImjaHzdlMR1fyoMQrlM","created_at":1700000000.25,"revoked_at":null}"#,
    pepper: "pfeffer-ä",
};

/// Seconds after the instant at which tests begin.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros((1_700_000_000 + seconds) * 1_000_000)
}

/// A record of this key that is quick to check.
pub(crate) fn record_of(key: &Key, pepper: Option<&Pepper>) -> KeyRecord {
    let mut proof = Proof { iterations: 2, salt: b"salt of a test".to_vec(), hash: [0; 32] };
    proof.hash = hashing::derive(&hashing::password(key.secret(), pepper), &proof);
    KeyRecord {
        key_id: key.id().clone(),
        tenant_id: TenantId::new("team-a").unwrap(),
        role: Role::Submit,
        name: None,
        created_at: at(0),
        expires_at: None,
        revoked_at: None,
        proof,
        others: serde_json::Map::new(),
    }
}

/// Records in memory.
#[derive(Debug)]
pub(crate) struct Shelf {
    records: Mutex<HashMap<KeyId, StoredKey>>,
    writes: AtomicUsize,
    pub(crate) reads: AtomicUsize,
    /// Nothing answers.
    pub(crate) is_away: AtomicBool,
    /// Who reads has the record, but does not get it before this is false again.
    pub(crate) is_slow: watch::Sender<bool>,
    /// Somebody else writes this record just before the next writing.
    pub(crate) faster: Mutex<Option<KeyRecord>>,
}

impl Default for Shelf {
    fn default() -> Self {
        Self {
            records: Mutex::default(),
            writes: AtomicUsize::new(0),
            reads: AtomicUsize::new(0),
            is_away: AtomicBool::new(false),
            is_slow: watch::Sender::new(false),
            faster: Mutex::default(),
        }
    }
}

impl Shelf {
    /// Puts whatever bytes there.
    pub(crate) fn lay(&self, id: &KeyId, record: &[u8]) {
        let revision = self.writes.fetch_add(1, Ordering::SeqCst) as u64 + 1;
        let stored = StoredKey { record: record.to_vec(), revision };
        self.records.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), stored);
    }

    pub(crate) fn lay_record(&self, record: &KeyRecord) {
        self.lay(&record.key_id, &record.to_bytes().unwrap());
    }

    pub(crate) fn remove(&self, id: &KeyId) {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }

    pub(crate) fn reads(&self) -> usize {
        self.reads.load(Ordering::SeqCst)
    }

    fn look(&self) -> Result<HashMap<KeyId, StoredKey>, StoreError> {
        if self.is_away.load(Ordering::SeqCst) {
            return Err(StoreError::new(ErrorKind::Unavailable, "read a key", "nobody is there"));
        }
        Ok(self.records.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

#[async_trait]
impl KeyRecords for Shelf {
    async fn key(&self, id: &KeyId) -> Result<Option<StoredKey>, StoreError> {
        let found = self.look()?.get(id).cloned();
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.is_slow.subscribe().wait_for(|slow| !slow).await.unwrap();
        Ok(found)
    }

    async fn put_key(&self, id: &KeyId, record: Vec<u8>, over: Option<u64>) -> Result<bool, StoreError> {
        if let Some(record) = self.faster.lock().unwrap().take() {
            self.lay_record(&record);
        }
        let is_there = self.look()?.get(id).map(|stored| stored.revision) == over;
        if is_there {
            self.lay(id, &record);
        }
        Ok(is_there)
    }

    async fn keys(&self) -> Result<Vec<(KeyId, StoredKey)>, StoreError> {
        Ok(self.look()?.into_iter().collect())
    }
}
