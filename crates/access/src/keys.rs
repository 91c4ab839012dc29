//! Makes keys and takes them away. Every change is one compare-and-set of one record; what is not said to be done may be asked again.

use std::sync::Arc;

use pyoco_core::access::Role;
use pyoco_core::ids::{KeyId, TenantId};
use pyoco_core::time::Timestamp;
use pyoco_ports::{KeyRecords, StoreError};

use crate::hashing;
use crate::record::{ITERATIONS, KeyRecord, Proof, has_passed};
use crate::secret::{Key, NoRandomness, Pepper, random};

/// As often as this somebody else may be faster.
const TURNS: usize = 16;
/// No name is longer.
const MOST_NAME: usize = 128;

/// What a new key is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewKey {
    /// Whose key it is.
    pub tenant: TenantId,
    /// How much it opens.
    pub role: Role,
    /// From when on it opens nothing.
    pub expires_at: Option<Timestamp>,
    /// What people call it.
    pub name: Option<String>,
}

/// A key that was made.
#[derive(Debug, Clone)]
pub struct Created {
    /// What is stored of it.
    pub record: KeyRecord,
    /// The key itself. It is nowhere else: who does not keep it has lost it.
    pub key: Key,
}

/// Why a key was not made or changed.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// The store failed. After a time-out a key may have been made, whose secret nobody knows, or revoked.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no secret without it.
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
    /// It could not be hashed: the process is ending.
    #[error("the secret of the API key could not be hashed")]
    NotHashed,
    /// A name for people is short and can be printed.
    #[error("the name of an API key has 1 to {MOST_NAME} characters, none of them a control character")]
    Name,
    /// It would open nothing.
    #[error("the API key would have expired before it was made")]
    PastEnd,
    /// What stands there is no record of this key. The key opens nothing.
    #[error("the record of API key {0} cannot be read; the key opens nothing")]
    Unreadable(KeyId),
    /// A key that opens nothing has no successor.
    #[error("API key {0} is revoked or has expired; create a new one")]
    Over(KeyId),
    /// Others kept changing it.
    #[error("the record of API key {0} kept changing; try again")]
    Contended(KeyId),
}

/// The keys of a deployment.
#[derive(Clone)]
pub struct Keys {
    records: Arc<dyn KeyRecords>,
    pepper: Option<Pepper>,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keys").field("pepper", &self.pepper).finish_non_exhaustive()
    }
}

impl Keys {
    /// The pepper must be the one of every gateway of the deployment.
    pub fn new(records: Arc<dyn KeyRecords>, pepper: Option<Pepper>) -> Self {
        Self { records, pepper }
    }

    /// Makes a key.
    pub async fn create(&self, new: NewKey, now: Timestamp) -> Result<Created, KeysError> {
        let is_good = |name: &String| {
            (1..=MOST_NAME).contains(&name.chars().count()) && !name.chars().any(char::is_control)
        };
        if !new.name.as_ref().is_none_or(is_good) {
            return Err(KeysError::Name);
        }
        if has_passed(new.expires_at, now) {
            return Err(KeysError::PastEnd);
        }
        let mut key = Key::generate()?;
        for _ in 0..TURNS {
            let record = KeyRecord {
                key_id: key.id().clone(),
                tenant_id: new.tenant.clone(),
                role: new.role,
                name: new.name.clone(),
                created_at: now,
                expires_at: new.expires_at,
                revoked_at: None,
                proof: self.proof(&key).await?,
                others: serde_json::Map::new(),
            };
            if self.write(&record, None).await? {
                return Ok(Created { record, key });
            }
            // Somebody has this very id; as likely as two equal snowflakes.
            key = Key::generate()?;
        }
        Err(KeysError::Contended(key.id().clone()))
    }

    /// All keys, the newest first. A record that cannot be read is left out, with a warning: its key opens nothing.
    pub async fn list(&self) -> Result<Vec<KeyRecord>, KeysError> {
        let mut records = Vec::new();
        for (id, stored) in self.records.keys().await? {
            match KeyRecord::from_bytes(&stored.record) {
                Ok(record) if record.key_id == id => records.push(record),
                Ok(_) | Err(_) => tracing::warn!(api_key_id = %id, "{}", KeysError::Unreadable(id.clone())),
            }
        }
        records.sort_by(|a, b| (b.created_at, &b.key_id).cmp(&(a.created_at, &a.key_id)));
        Ok(records)
    }

    /// Takes a key away; `None` when there is no such key. A key that was revoked before keeps the time of that.
    pub async fn revoke(&self, id: &KeyId, now: Timestamp) -> Result<Option<KeyRecord>, KeysError> {
        Ok(self.revoke_once(id, now).await?.map(|(record, _)| record))
    }

    /// Makes a key like this one, then takes this one away; `None` when there is no such key. If the process dies in between,
    /// both keys work and nobody has the new one: revoke it, or let it lie, and rotate again.
    pub async fn rotate(&self, id: &KeyId, now: Timestamp) -> Result<Option<Created>, KeysError> {
        let Some((old, _)) = self.read(id).await? else { return Ok(None) };
        if old.is_over(now) {
            return Err(KeysError::Over(id.clone()));
        }
        let KeyRecord { tenant_id: tenant, role, expires_at, name, .. } = old;
        let created = self.create(NewKey { tenant, role, expires_at, name }, now).await?;
        match self.revoke_once(id, now).await? {
            Some((_, true)) => Ok(Some(created)),
            // Somebody took the key away meanwhile. They meant its rights, and these would live on in the new one.
            Some((_, false)) | None => {
                self.revoke(created.key.id(), now).await?;
                Err(KeysError::Over(id.clone()))
            }
        }
    }

    /// The revoked record, and whether it was this call that revoked it.
    async fn revoke_once(&self, id: &KeyId, now: Timestamp) -> Result<Option<(KeyRecord, bool)>, KeysError> {
        for _ in 0..TURNS {
            let Some((mut record, revision)) = self.read(id).await? else { return Ok(None) };
            if record.revoked_at.is_some() {
                return Ok(Some((record, false)));
            }
            record.revoked_at = Some(now);
            if self.write(&record, Some(revision)).await? {
                return Ok(Some((record, true)));
            }
        }
        Err(KeysError::Contended(id.clone()))
    }

    async fn read(&self, id: &KeyId) -> Result<Option<(KeyRecord, u64)>, KeysError> {
        let Some(stored) = self.records.key(id).await? else { return Ok(None) };
        match KeyRecord::from_bytes(&stored.record) {
            Ok(record) if record.key_id == *id => Ok(Some((record, stored.revision))),
            Ok(_) | Err(_) => Err(KeysError::Unreadable(id.clone())),
        }
    }

    async fn write(&self, record: &KeyRecord, over: Option<u64>) -> Result<bool, KeysError> {
        let bytes = record.to_bytes().map_err(|_| KeysError::Unreadable(record.key_id.clone()))?;
        Ok(self.records.put_key(&record.key_id, bytes, over).await?)
    }

    /// Hashes a new secret with a new salt.
    async fn proof(&self, key: &Key) -> Result<Proof, KeysError> {
        let password = hashing::password(key.secret(), self.pepper.as_ref());
        let mut proof = Proof { iterations: ITERATIONS, salt: random::<16>()?.to_vec(), hash: [0; 32] };
        let hashed = tokio::task::spawn_blocking(move || {
            proof.hash = hashing::derive(&password, &proof);
            proof
        });
        hashed.await.map_err(|_| KeysError::NotHashed)
    }
}

#[cfg(test)]
mod tests;
