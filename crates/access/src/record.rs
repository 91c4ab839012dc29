//! What is stored of a key: the record of pyoco-server 0.5.1, and beside it what this product adds (a role, an end, a name).
//!
//! A record without the additions is a key of the original: it may submit and never ends. The original reads ours and passes over the
//! additions. Whatever else stands in a record is kept when it is written again.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use pyoco_core::access::Role;
use pyoco_core::ids::{KeyId, TenantId};
use pyoco_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The one derivation that records name.
const KDF: &str = "pbkdf2_hmac_sha256";
/// Rounds of a new record, and of one that does not say.
pub(crate) const ITERATIONS: u32 = 200_000;
/// Some seconds of one core; a record that asks for more would stand in everybody's way.
const MOST_ITERATIONS: u32 = 10_000_000;
/// No record is longer.
const MOST_BYTES: usize = 64 * 1024;

/// What is stored of a key. Its secret is not in it.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyRecord {
    /// Names the key.
    pub key_id: KeyId,
    /// Whose key it is.
    pub tenant_id: TenantId,
    /// How much it opens.
    pub role: Role,
    /// What people call it.
    pub name: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// From when on it opens nothing.
    pub expires_at: Option<Timestamp>,
    /// When it was taken away.
    pub revoked_at: Option<Timestamp>,
    pub(crate) proof: Proof,
    pub(crate) others: Map<String, Value>,
}

/// What a secret is compared with.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Proof {
    pub(crate) iterations: u32,
    pub(crate) salt: Vec<u8>,
    pub(crate) hash: [u8; 32],
}

impl fmt::Debug for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Proof(…)")
    }
}

/// What stands there is no record of a key. It is not said further: a record is not for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the record of the API key cannot be read")]
pub struct Unreadable;

/// The members as they are written.
#[derive(Serialize, Deserialize)]
struct Wire {
    key_id: KeyId,
    tenant_id: TenantId,
    #[serde(default)]
    kdf: Option<String>,
    #[serde(default)]
    iterations: Option<u32>,
    salt_b64: String,
    hash_b64: String,
    #[serde(default)]
    created_at: Option<f64>,
    #[serde(default)]
    revoked_at: Option<f64>,
    #[serde(default)]
    role: Role,
    #[serde(default)]
    expires_at: Option<f64>,
    #[serde(default)]
    name: Option<String>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

impl KeyRecord {
    /// Reads a record. One that says anything we do not understand about who may come in is unreadable, and opens nothing.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Unreadable> {
        if bytes.len() > MOST_BYTES {
            return Err(Unreadable);
        }
        let wire: Wire = serde_json::from_slice(bytes).map_err(|_| Unreadable)?;
        // As the original reads it: what is absent, empty or zero means the usual.
        let kdf = wire.kdf.filter(|kdf| !kdf.is_empty());
        let iterations = wire.iterations.filter(|rounds| *rounds > 0).unwrap_or(ITERATIONS);
        if kdf.is_some_and(|kdf| kdf != KDF) || iterations > MOST_ITERATIONS {
            return Err(Unreadable);
        }
        let hash = decode(&wire.hash_b64)?.try_into().map_err(|_| Unreadable)?;
        Ok(Self {
            key_id: wire.key_id,
            tenant_id: wire.tenant_id,
            role: wire.role,
            name: wire.name,
            created_at: instant(wire.created_at.unwrap_or_default())?,
            expires_at: wire.expires_at.map(instant).transpose()?,
            revoked_at: wire.revoked_at.map(instant).transpose()?,
            proof: Proof { iterations, salt: decode(&wire.salt_b64)?, hash },
            others: wire.others,
        })
    }

    /// The record as it is stored.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Unreadable> {
        let seconds = |at: Timestamp| at.as_unix_seconds();
        let wire = Wire {
            key_id: self.key_id.clone(),
            tenant_id: self.tenant_id.clone(),
            kdf: Some(KDF.to_owned()),
            iterations: Some(self.proof.iterations),
            salt_b64: URL_SAFE_NO_PAD.encode(&self.proof.salt),
            hash_b64: URL_SAFE_NO_PAD.encode(self.proof.hash),
            created_at: Some(seconds(self.created_at)),
            revoked_at: self.revoked_at.map(seconds),
            role: self.role,
            expires_at: self.expires_at.map(seconds),
            name: self.name.clone(),
            others: self.others.clone(),
        };
        let bytes = serde_json::to_vec(&wire).map_err(|_| Unreadable)?;
        if bytes.len() > MOST_BYTES { Err(Unreadable) } else { Ok(bytes) }
    }

    /// Whether the key opens nothing any more.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.revoked_at.is_some() || has_passed(self.expires_at, now)
    }
}

/// Whether an end has come.
pub(crate) fn has_passed(end: Option<Timestamp>, now: Timestamp) -> bool {
    end.is_some_and(|end| end <= now)
}

fn instant(seconds: f64) -> Result<Timestamp, Unreadable> {
    Timestamp::from_unix_seconds(seconds).ok_or(Unreadable)
}

/// base64url; the original puts missing padding back, so padding may stand there.
fn decode(text: &str) -> Result<Vec<u8>, Unreadable> {
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &base64::alphabet::URL_SAFE,
        GeneralPurposeConfig::new()
            .with_decode_padding_mode(DecodePaddingMode::Indifferent)
            .with_decode_allow_trailing_bits(true),
    );
    LENIENT.decode(text).map_err(|_| Unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shelf::ORIGINAL;

    fn changed(change: impl FnOnce(&mut Map<String, Value>)) -> Vec<u8> {
        let mut members: Map<String, Value> = serde_json::from_str(ORIGINAL.record).unwrap();
        change(&mut members);
        serde_json::to_vec(&members).unwrap()
    }

    #[test]
    fn a_record_of_the_original_may_submit_and_never_ends() {
        let record = KeyRecord::from_bytes(ORIGINAL.record.as_bytes()).unwrap();
        assert_eq!(record.tenant_id.as_str(), "team-a");
        assert_eq!((record.role, record.expires_at, record.revoked_at), (Role::Submit, None, None));
        assert_eq!(record.created_at.as_unix_seconds(), 1_700_000_000.25);
        assert_eq!((record.proof.iterations, record.proof.salt.len()), (200_000, 16));
    }

    #[test]
    fn what_others_wrote_into_a_record_is_kept() {
        let bytes = changed(|members| {
            members.insert("x_owner".to_owned(), serde_json::json!({"mail": ["é"]}));
        });
        let mut record = KeyRecord::from_bytes(&bytes).unwrap();
        record.revoked_at = Timestamp::from_unix_seconds(1_700_000_100.5);
        record.role = Role::Read;
        let written = record.to_bytes().unwrap();
        assert_eq!(KeyRecord::from_bytes(&written).unwrap(), record);
        let members: Map<String, Value> = serde_json::from_slice(&written).unwrap();
        let before: Map<String, Value> = serde_json::from_slice(&bytes).unwrap();
        for name in
            ["key_id", "tenant_id", "kdf", "iterations", "salt_b64", "hash_b64", "created_at", "x_owner"]
        {
            assert_eq!(members[name], before[name], "{name}");
        }
        assert_eq!(members["revoked_at"], 1_700_000_100.5);
        assert_eq!((&members["role"], &members["expires_at"]), (&"read".into(), &Value::Null));
    }

    #[test]
    fn absent_and_empty_members_mean_what_they_mean_to_the_original() {
        let bytes = changed(|members| {
            members.insert("kdf".to_owned(), Value::Null);
            members.insert("iterations".to_owned(), 0.into());
            members.remove("created_at");
            members.remove("revoked_at");
            let padded = format!("{}=", members["hash_b64"].as_str().unwrap());
            members.insert("hash_b64".to_owned(), padded.into());
        });
        let record = KeyRecord::from_bytes(&bytes).unwrap();
        let original = KeyRecord::from_bytes(ORIGINAL.record.as_bytes()).unwrap();
        assert_eq!(record.proof, original.proof);
        assert_eq!(record.created_at.as_micros(), 0);
    }

    #[test]
    fn a_record_that_is_not_understood_is_unreadable() {
        let with = |name: &str, value: Value| {
            changed(|members| {
                members.insert(name.to_owned(), value);
            })
        };
        let wrong = [
            Vec::new(),
            b"\xff\xfe".to_vec(),
            b"null".to_vec(),
            b"[]".to_vec(),
            b"{}".to_vec(),
            ORIGINAL.record.as_bytes()[..100].to_vec(),
            format!("{}{}", ORIGINAL.record, " ".repeat(MOST_BYTES)).into_bytes(),
            [vec![b'['; 60_000], vec![b']'; 5]].concat(),
            with("kdf", "scrypt".into()),
            with("iterations", 10_000_001.into()),
            with("iterations", (-1).into()),
            with("iterations", "200000".into()),
            with("salt_b64", "é".into()),
            with("hash_b64", "AAAA".into()),
            with("hash_b64", Value::Null),
            with("tenant_id", "a.b".into()),
            with("key_id", 7.into()),
            with("role", "root".into()),
            with("role", Value::Null),
            with("revoked_at", "yesterday".into()),
            with("revoked_at", false.into()),
            with("expires_at", 1e300.into()),
            with("expires_at", "2030-01-01".into()),
        ];
        for bytes in wrong {
            let shown = String::from_utf8_lossy(&bytes).chars().take(300).collect::<String>();
            assert_eq!(KeyRecord::from_bytes(&bytes), Err(Unreadable), "{shown}");
        }
    }

    #[test]
    fn a_key_is_over_when_it_is_revoked_and_from_its_end_on() {
        let at = |seconds: i64| Timestamp::from_micros(seconds * 1_000_000);
        let mut record = KeyRecord::from_bytes(ORIGINAL.record.as_bytes()).unwrap();
        record.expires_at = Some(at(100));
        assert_eq!([99, 100, 101].map(|now| record.is_over(at(now))), [false, true, true]);
        record.expires_at = None;
        record.revoked_at = Some(at(1_000_000));
        assert!(record.is_over(at(0)), "a clock that is behind does not give a key back");
    }

    #[test]
    fn a_record_in_a_message_does_not_show_what_a_guess_could_be_tried_on() {
        let shown = format!("{:?}", KeyRecord::from_bytes(ORIGINAL.record.as_bytes()).unwrap());
        assert!(shown.contains("team-a") && shown.contains("Proof(…)"), "{shown}");
        assert!(!shown.contains("salt") && !shown.contains("hash"), "{shown}");
    }
}
