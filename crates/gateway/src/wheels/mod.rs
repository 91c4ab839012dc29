//! Wheels: files of Python code that workers install. One shelf for all tenants.
//!
//! One file an endpoint. `form` reads an upload, `trickle` and `landing` see to it that no more than a few pieces of it are in
//! memory, `story` writes down who changed what. Whether a file is a sound wheel and whether it may be uploaded is decided by
//! `pyoco_wheels`; what is there is the store's business.

pub(crate) mod delete;
pub(crate) mod download;
mod form;
pub(crate) mod history;
mod landing;
pub(crate) mod list;
mod story;
mod trickle;
pub(crate) mod upload;

use axum::extract::{FromRequestParts, Path};
use axum::http::StatusCode;
use axum::http::request::Parts;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use pyoco_api::{Extra, WheelArtifact};
use pyoco_core::notice::Notice;
use pyoco_ports::WheelRecord;
use pyoco_wheels::{Refused, Sha256Digest, WheelName};

use crate::App;
use crate::error::Refusal;

/// So many wheels may be on their way in at once. Each may take as much room in the temporary folder as the longest wheel, and a
/// processor for seconds.
pub(crate) const MOST_UPLOADS: usize = 16;

/// The wheel that a path names. What is no name of a wheel names none.
pub(crate) struct Named(WheelName);

impl FromRequestParts<App> for Named {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Refusal> {
        let named = Path::<String>::from_request_parts(parts, app).await;
        let name = named.map(|path| path.0).unwrap_or_default();
        WheelName::parse(&name).map(Self).map_err(|_| not_found(&name))
    }
}

fn not_found(name: &str) -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, "wheel not found").noticed(Notice::WheelNotFound).of_wheel(name)
}

fn conflict(name: &WheelName, why: Refused) -> Refusal {
    Refusal::new(StatusCode::CONFLICT, why.to_string())
        .noticed(Notice::WheelVersionConflict)
        .of_wheel(name.as_str())
}

/// 422 with a text.
fn refused(detail: impl Into<String>) -> Refusal {
    Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, detail).noticed(Notice::InvalidRequest)
}

/// A wheel as it is shown.
fn shown(record: WheelRecord, bucket: &str) -> WheelArtifact {
    let base64 = URL_SAFE.encode(bytes_of(&record.sha256));
    WheelArtifact {
        name: record.name.into(),
        size_bytes: record.size_bytes,
        bucket: Some(bucket.to_owned()),
        nuid: record.nuid,
        modified: Some(record.modified.as_unix_seconds()),
        // As Python writes it.
        mtime: Some(record.modified.to_string().replace('Z', "+00:00")),
        digest: Some(format!("SHA-256={base64}")),
        sha256_b64: Some(base64),
        sha256_hex: Some(record.sha256.into()),
        tags: record.tags,
        extra: Extra::new(),
    }
}

fn bytes_of(digest: &Sha256Digest) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or_default();
    let pairs = digest.as_str().as_bytes().chunks_exact(2);
    // A digest is pairs of digits.
    pairs
        .map(|pair| pair.iter().fold(0, |byte, next| byte << 4 | u8::try_from(digit(*next)).unwrap_or(0)))
        .collect()
}

#[cfg(test)]
mod tests {
    use pyoco_core::time::Timestamp;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_wheel_is_shown_with_the_members_of_both_contracts() {
        // What nothing hashes to.
        let hex = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let record = WheelRecord {
            name: WheelName::parse("a-1-py3-none-any.whl").unwrap(),
            nuid: "N".to_owned(),
            size_bytes: 0,
            sha256: Sha256Digest::parse(hex).unwrap(),
            modified: Timestamp::from_micros(1_700_000_000_250_000),
            tags: vec!["gpu".to_owned()],
        };
        let base64 = "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU=";
        let wanted = json!({
            "name": "a-1-py3-none-any.whl", "size_bytes": 0, "bucket": "b", "nuid": "N", "modified": 1_700_000_000.25,
            "mtime": "2023-11-14T22:13:20.250000+00:00", "digest": format!("SHA-256={base64}"), "sha256_b64": base64,
            "sha256_hex": hex, "tags": ["gpu"],
        });
        assert_eq!(serde_json::to_value(shown(record, "b")).unwrap(), wanted);
    }
}
