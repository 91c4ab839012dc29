//! What an operator may order, and how it is done. Not here: how an order arrives.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use pyoco_access::{Created, KeyRecord, KeysError, NewKey};
use pyoco_core::access::Role;
use pyoco_core::ids::{KeyId, TenantId};
use pyoco_core::time::Timestamp;
use pyoco_engine::Clock as _;
use pyoco_ports::EndedPlace;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::desk::Desk;
use super::letters::{Redriven, Which};
use super::trail::{self, Done};
use super::{backup, letters, prune};
use crate::{StartError, SystemClock};

/// How long an order may take that does little.
const SOON: Duration = Duration::from_secs(10);

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
    /// A copy of everything, while the store is at work.
    Backup {
        /// Where it is to stand; nothing may be there yet.
        path: PathBuf,
    },
    /// The newest dead letters, without what is in them.
    ListLetters {
        /// For this reason.
        reason: Option<String>,
        /// Of this tag.
        tag: Option<String>,
        /// So many at most.
        limit: usize,
    },
    /// One dead letter, with all that is in it.
    ShowLetter {
        /// Which.
        key: String,
    },
    /// The runs of dead letters once more.
    RedriveLetters {
        /// Which.
        which: Which,
        /// Only say what would be done.
        dry_run: bool,
    },
    /// Runs that ended long ago go for good, some of them: the answer says where to go on.
    Prune {
        /// Those that ended before this instant.
        before: Timestamp,
        /// So many at most.
        most: usize,
        /// From behind this one on.
        after: Option<EndedPlace>,
        /// Only say how many.
        dry_run: bool,
    },
    /// Dead letters go for good.
    PurgeLetters {
        /// Those from before this instant.
        before: Timestamp,
    },
}

impl Order {
    /// How long whoever ordered it waits for the answer; nothing: as long as it takes.
    pub(super) const fn patience(&self) -> Option<Duration> {
        match self {
            Self::CreateKey { .. } | Self::ListKeys | Self::RevokeKey { .. } | Self::RotateKey { .. } => {
                Some(SOON)
            }
            Self::Backup { .. }
            | Self::ListLetters { .. }
            | Self::ShowLetter { .. }
            | Self::RedriveLetters { .. }
            | Self::PurgeLetters { .. }
            | Self::Prune { .. } => None,
        }
    }

    /// How an operator sees whether it was done, when no answer came.
    pub(super) const fn how_to_see(&self) -> &'static str {
        match self {
            Self::CreateKey { .. } | Self::ListKeys | Self::RevokeKey { .. } | Self::RotateKey { .. } => {
                "see with `api-key list` whether it was done"
            }
            Self::Backup { .. } => "a backup that is there is whole",
            Self::ListLetters { .. } | Self::ShowLetter { .. } => "ask again",
            Self::Prune { .. } => "to order it again removes what is left",
            Self::RedriveLetters { .. } | Self::PurgeLetters { .. } => {
                "what is left shows `dlq list`; to order it again does nothing twice"
            }
        }
    }
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
    /// There is no such dead letter.
    #[error("there is no dead letter {key}")]
    NoLetter {
        /// Which.
        key: String,
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
pub(super) async fn perform(desk: &Desk, order: Order) -> Result<Value, AdminError> {
    let (keys, now) = (&desk.keys, SystemClock.now());
    match order {
        Order::CreateKey { tenant, role, expires_at, name } => {
            let created = keys.create(NewKey { tenant, role, expires_at, name }, now).await?;
            said(&created.record, "an API key was created");
            let mut answer = shown_once(&created);
            written(desk, &mut answer, "api_key.create", &created.record, &[("role", json!(role))]).await;
            Ok(answer)
        }
        Order::ListKeys => Ok(keys.list().await?.iter().map(shown).collect()),
        Order::RevokeKey { key_id } => {
            let Some(record) = keys.revoke(&key_id, now).await? else {
                return Err(AdminError::NotFound { key_id });
            };
            said(&record, "an API key was revoked");
            let revoked_at = record.revoked_at.map(Timestamp::as_unix_seconds);
            let mut answer = json!({"key_id": record.key_id, "revoked_at": revoked_at});
            written(desk, &mut answer, "api_key.revoke", &record, &[]).await;
            Ok(answer)
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
            // Whoever looks for either key finds it.
            let record = &created.record;
            let (tenant, target) = (Some(&record.tenant_id), Some(key_id.as_str()));
            let details = &[("made", json!(record.key_id))];
            let done = Done { action: "api_key.rotate", tenant, target, details, failed: None };
            trail::write(desk, &mut answer, done).await;
            written(desk, &mut answer, "api_key.create", record, &[("replaces", json!(key_id))]).await;
            Ok(answer)
        }
        Order::Backup { path } => backup::make(desk, &path).await,
        Order::ListLetters { reason, tag, limit } => {
            letters::list(desk, reason.as_deref(), tag.as_deref(), limit).await
        }
        Order::ShowLetter { key } => letters::show(desk, &key).await,
        Order::RedriveLetters { which, dry_run } => {
            let Redriven { mut answer, redriven, failed } = letters::redrive(desk, &which, dry_run).await?;
            if !dry_run {
                let details = &[("which", json!(which)), ("redriven", json!(redriven))];
                let (action, failed) = ("dead_letters.redrive", failed.as_ref());
                let done = Done { action, tenant: None, target: None, details, failed };
                trail::write(desk, &mut answer, done).await;
            }
            failed.map_or(Ok(answer), Err)
        }
        Order::Prune { before, most, after, dry_run } => {
            prune::some(desk, before, most, after, dry_run).await
        }
        Order::PurgeLetters { before } => {
            // Some may be gone also when it fails.
            let (mut answer, failed) = match letters::purge(desk, before).await {
                Ok(answer) => (answer, None),
                Err(error) => (Value::Null, Some(error)),
            };
            let (action, details) = ("dead_letters.purge", &[("before", json!(before))]);
            let done = Done { action, tenant: None, target: None, details, failed: failed.as_ref() };
            trail::write(desk, &mut answer, done).await;
            failed.map_or(Ok(answer), Err)
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

/// Writes a change of a key into the audit trail.
async fn written(
    desk: &Desk,
    answer: &mut Value,
    action: &'static str,
    record: &KeyRecord,
    details: &[(&'static str, Value)],
) {
    let (tenant, target) = (Some(&record.tenant_id), Some(record.key_id.as_str()));
    trail::write(desk, answer, Done { action, tenant, target, details, failed: None }).await;
}

fn said(record: &KeyRecord, what: &'static str) {
    tracing::info!(api_key_id = %record.key_id, tenant_id = %record.tenant_id, role = %record.role, "{what}");
}
