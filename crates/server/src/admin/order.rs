//! What an operator may order, and how it is done. Not here: how an order arrives.

use std::fmt;
use std::path::PathBuf;

use pyoco_access::{Created, KeyRecord, Keys, KeysError, NewKey};
use pyoco_core::access::Role;
use pyoco_core::ids::{KeyId, TenantId};
use pyoco_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::StartError;

/// Something that an operator orders.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "snake_case")]
pub enum Order {
    /// A new key. Its secret is in the answer and nowhere else.
    CreateKey {
        /// Whose it is.
        tenant: TenantId,
        /// How much it opens.
        #[serde(default)]
        role: Role,
        /// From when on it opens nothing.
        expires_at: Option<Timestamp>,
        /// What people call it.
        name: Option<String>,
    },
    /// All keys, the newest first.
    ListKeys,
    /// This key opens nothing any more.
    RevokeKey {
        /// Which.
        key_id: KeyId,
    },
    /// A new key in the place of this one.
    RotateKey {
        /// Which.
        key_id: KeyId,
    },
}

/// Why an order was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// There is no such key.
    #[error("there is no key {key_id}")]
    NotFound {
        /// Which.
        key_id: KeyId,
    },
    /// It cannot be done.
    #[error("{0}")]
    Refused(String),
    /// Something failed that should not; it may go better later.
    #[error("{0}")]
    Failed(String),
    /// The store could not be opened.
    #[error(transparent)]
    Start(#[from] StartError),
    /// There is nothing to look at.
    #[error("there is no store in {}; check --data-dir", .folder.display())]
    NoStore {
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// Somebody has the store who takes no orders.
    #[error(
        "{} is in use by a process that takes no orders: a server that just starts or stops, or a pyoco-worker; try again, or stop that one",
        .folder.display()
    )]
    InUse {
        /// Which folder.
        folder: PathBuf,
    },
    /// The server is there, but cannot be asked.
    #[error("the server cannot be asked at {}: {why}", .socket.display())]
    Socket {
        /// Where it listens.
        socket: PathBuf,
        /// What happened.
        why: String,
    },
}

impl AdminError {
    pub(super) fn socket(socket: &std::path::Path, why: impl fmt::Display) -> Self {
        Self::Socket { socket: socket.to_owned(), why: why.to_string() }
    }
}

impl From<KeysError> for AdminError {
    fn from(error: KeysError) -> Self {
        match error {
            KeysError::Store(_) | KeysError::NoRandomness(_) | KeysError::NotHashed => {
                Self::Failed(error.to_string())
            }
            KeysError::Name
            | KeysError::PastEnd
            | KeysError::Unreadable(_)
            | KeysError::Over(_)
            | KeysError::Contended(_) => Self::Refused(error.to_string()),
        }
    }
}

/// Carries out an order. Every change is said to the operator, without secrets.
pub async fn perform(keys: &Keys, order: Order, now: Timestamp) -> Result<Value, AdminError> {
    match order {
        Order::CreateKey { tenant, role, expires_at, name } => {
            let created = keys.create(NewKey { tenant, role, expires_at, name }, now).await?;
            said(&created.record, "an API key was created");
            Ok(shown_once(&created))
        }
        Order::ListKeys => Ok(keys.list().await?.iter().map(shown).collect()),
        Order::RevokeKey { key_id } => {
            let Some(record) = keys.revoke(&key_id, now).await? else {
                return Err(AdminError::NotFound { key_id });
            };
            said(&record, "an API key was revoked");
            Ok(
                json!({"key_id": record.key_id, "revoked_at": record.revoked_at.map(Timestamp::as_unix_seconds)}),
            )
        }
        Order::RotateKey { key_id } => {
            let Some(created) = keys.rotate(&key_id, now).await? else {
                return Err(AdminError::NotFound { key_id });
            };
            said(&created.record, "an API key was replaced");
            let mut answer = shown_once(&created);
            if let Value::Object(members) = &mut answer {
                members.insert("replaces".to_owned(), json!(key_id));
            }
            Ok(answer)
        }
    }
}

/// A key as a list shows it: the members of the original first.
fn shown(record: &KeyRecord) -> Value {
    json!({
        "key_id": record.key_id,
        "tenant_id": record.tenant_id,
        "created_at": record.created_at.as_unix_seconds(),
        "revoked_at": record.revoked_at.map(Timestamp::as_unix_seconds),
        "role": record.role,
        "expires_at": record.expires_at.map(Timestamp::as_unix_seconds),
        "name": record.name,
    })
}

/// A new key with its secret, for whoever ordered it.
fn shown_once(created: &Created) -> Value {
    let record = &created.record;
    json!({
        "key_id": record.key_id,
        "tenant_id": record.tenant_id,
        "api_key": *created.key.reveal(),
        "created_at": record.created_at.as_unix_seconds(),
        "role": record.role,
        "expires_at": record.expires_at.map(Timestamp::as_unix_seconds),
        "name": record.name,
    })
}

fn said(record: &KeyRecord, what: &'static str) {
    tracing::info!(api_key_id = %record.key_id, tenant_id = %record.tenant_id, role = %record.role, "{what}");
}
