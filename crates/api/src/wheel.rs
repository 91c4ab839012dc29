//! Wheels: files of Python code that workers install, and the history of who changed what is there. Times are unix seconds.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Extra;

/// A wheel that is there. It has the members that pyoco-server 0.5.1 sends and those that its specification names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WheelArtifact {
    /// The name of its file.
    #[schema(pattern = "^[A-Za-z0-9._+-]+\\.whl$", example = "my_tasks-1.0-py3-none-any.whl")]
    pub name: String,
    /// How long it is.
    pub size_bytes: u64,
    /// The bucket that it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket: Option<String>,
    /// Tells this upload from any other of the same name.
    #[serde(default)]
    pub nuid: String,
    /// When it was put there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<f64>,
    /// The same, as text.
    #[serde(default)]
    pub mtime: Option<String>,
    /// What its bytes hash to, as `SHA-256=` and base64 for addresses.
    #[serde(default)]
    pub digest: Option<String>,
    /// The same without its first word.
    #[serde(default)]
    pub sha256_b64: Option<String>,
    /// The same in hexadecimal digits. Another implementation need not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256_hex: Option<String>,
    /// The workers it is for; none is all of them.
    #[serde(default)]
    pub tags: Vec<String>,
    /// What else the server says.
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

/// One change of what is there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WheelHistoryEvent {
    /// Its id.
    pub event_id: String,
    /// When.
    pub occurred_at: f64,
    /// `upload` or `delete`.
    #[schema(example = "upload")]
    pub action: String,
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
    /// Whether its uploader said that an older one may be replaced.
    #[serde(default)]
    pub replace: Option<bool>,
    /// Who.
    #[serde(default)]
    pub actor: WheelHistoryActor,
    /// From where.
    #[serde(default)]
    pub source: WheelHistorySource,
    /// What else the server says.
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

/// Who changed what is there; nobody in particular where no keys are asked for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WheelHistoryActor {
    /// The tenant of the key.
    #[serde(default)]
    pub tenant_id: Option<String>,
    /// The key, by its name.
    #[serde(default)]
    pub api_key_id: Option<String>,
    /// What else the server says.
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

/// From where it was changed. Only the address is certain: headers may say anything.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WheelHistorySource {
    /// The other side of the connection.
    #[serde(default)]
    pub remote_addr: Option<String>,
    /// `X-Forwarded-For`.
    #[serde(default)]
    pub x_forwarded_for: Option<String>,
    /// `X-Real-IP`.
    #[serde(default)]
    pub x_real_ip: Option<String>,
    /// `User-Agent`.
    #[serde(default)]
    pub user_agent: Option<String>,
    /// `Host`.
    #[serde(default)]
    pub host: Option<String>,
    /// `http`.
    #[serde(default)]
    pub scheme: Option<String>,
    /// What else the server says.
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

/// The answer of `DELETE /wheels/{wheel_name}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WheelDeleted {
    /// Which wheel.
    pub name: String,
    /// It is gone.
    pub deleted: bool,
}

/// One wheel that a run runs with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UsedWheel {
    /// The name of its file.
    #[schema(example = "my_tasks-1.0-py3-none-any.whl")]
    pub name: String,
    /// The version of its package.
    #[schema(example = "1.0")]
    pub version: String,
    /// What its bytes hash to, in hexadecimal digits.
    pub sha256: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_artifact_of_the_original_is_read_and_keeps_its_form() {
        let original = json!({
            "name": "a-1-py3-none-any.whl", "size_bytes": 3, "nuid": "N", "mtime": "2026-11-15T08:55:53.183364+00:00",
            "digest": "SHA-256=AA==", "sha256_b64": "AA==", "tags": ["x"], "new": 1
        });
        let artifact: WheelArtifact = serde_json::from_value(original.clone()).unwrap();
        assert_eq!((artifact.size_bytes, artifact.tags.len(), &artifact.sha256_hex), (3, 1, &None));
        assert_eq!(serde_json::to_value(&artifact).unwrap(), original);
    }

    #[test]
    fn an_event_needs_only_to_say_what_happened() {
        let bare = json!({"event_id": "e", "occurred_at": 1.5, "action": "delete", "wheel_name": "a.whl"});
        let event: WheelHistoryEvent = serde_json::from_value(bare).unwrap();
        assert_eq!((event.actor.api_key_id, event.source.host, event.replace), (None, None, None));
    }
}
