//! The audit trail: who did what, from where, when.

use pyoco_core::access::Role;
use pyoco_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Extra;

/// One thing that somebody did, or tried to do. Never what a run was given, and never a secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditEntry {
    /// Its name; the same one twice is one entry.
    pub id: String,
    /// When it was asked for.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// What was asked for.
    #[schema(example = "runs.submit")]
    pub action: String,
    /// Who asked, if keys are asked for.
    #[serde(default)]
    pub actor: Option<AuditActor>,
    /// Whose business it is, if it is a tenant's.
    #[serde(default)]
    pub tenant: Option<String>,
    /// From where: the address of the other side of the connection, or the name of a tool.
    #[serde(default)]
    #[schema(example = "192.0.2.7:51234")]
    pub source: Option<String>,
    /// The caller's thread, if it named one.
    #[serde(default)]
    pub correlation_id: Option<String>,
    /// Which execution, graph, worker or key it is about.
    #[serde(default)]
    pub target: Option<String>,
    /// What was answered; null if nobody was there to hear it.
    #[serde(default)]
    pub status: Option<u16>,
    /// How it went.
    pub outcome: AuditOutcome,
    /// What else is known, e.g. `reason` of a cancel, `made` of a retry, `count` of refusals at the door.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub details: Extra,
    /// What else the server says.
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

/// Somebody with a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditActor {
    /// The key; its secret is something else.
    pub key_id: String,
    /// How much it opens.
    #[schema(value_type = String, example = "submit")]
    pub role: Role,
}

/// How it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum AuditOutcome {
    /// It was done, or had been done before.
    Ok,
    /// It was not allowed, or made no sense.
    Refused,
    /// Something broke.
    Failed,
    /// The caller went away before the answer; the log of the execution says what came of it.
    Unknown,
}

/// A page of the audit trail, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditPage {
    /// The entries.
    pub items: Vec<AuditEntry>,
    /// What to send as `cursor` for the next page; null when there is none. A page may be empty and still have one.
    #[serde(default)]
    pub next_cursor: Option<String>,
}
