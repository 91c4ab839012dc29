//! Fingerprints: of a command's input, of a plan, of a record in its chain.
//!
//! Two inputs that mean the same (members in another order) have the same fingerprint.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// A SHA-256 fingerprint, written in hexadecimal.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Digest([u8; 32]);

impl Digest {
    /// Of raw bytes.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Of a JSON value, whatever the order of its members.
    pub fn of_json(value: &Value) -> Self {
        let mut hasher = Sha256::new();
        feed(&mut hasher, value);
        Self(hasher.finalize().into())
    }

    /// The raw 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// Feeds a value with sorted members. Lengths go first, so that no two values share their bytes.
fn feed(hasher: &mut Sha256, value: &Value) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => text(hasher, b'v', &value.to_string()),
        Value::String(string) => text(hasher, b's', string),
        Value::Array(items) => {
            count(hasher, b'a', items.len());
            for item in items {
                feed(hasher, item);
            }
        }
        Value::Object(members) => {
            count(hasher, b'o', members.len());
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_unstable_by_key(|(key, _)| *key);
            for (key, member) in sorted {
                text(hasher, b'k', key);
                feed(hasher, member);
            }
        }
    }
}

fn count(hasher: &mut Sha256, kind: u8, length: usize) {
    hasher.update([kind]);
    hasher.update((length as u64).to_le_bytes());
}

fn text(hasher: &mut Sha256, kind: u8, text: &str) {
    count(hasher, kind, text.len());
    hasher.update(text.as_bytes());
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Digits::of(self).as_str())
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(Digits::of(self).as_str())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        Digits::of(&digest).as_str().to_owned()
    }
}

/// A digest as text. Every record is written with some: neither a formatter nor the heap has to do with it.
struct Digits([u8; 64]);

impl Digits {
    fn of(digest: &Digest) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0; 64];
        for (pair, byte) in text.chunks_exact_mut(2).zip(digest.0) {
            pair.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
        Self(text)
    }

    fn as_str(&self) -> &str {
        // Digits are text.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl TryFrom<String> for Digest {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        const WANTED: &str = "a digest is 64 hexadecimal digits";
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(WANTED);
        }
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| WANTED)?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| WANTED)?;
        }
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_order_of_members_does_not_matter_and_the_order_of_items_does() {
        assert_eq!(Digest::of_json(&json!({"a": 1, "b": 2})), Digest::of_json(&json!({"b": 2, "a": 1})));
        assert_ne!(Digest::of_json(&json!([1, 2])), Digest::of_json(&json!([2, 1])));
        assert_ne!(Digest::of_json(&json!(["ab", "c"])), Digest::of_json(&json!(["a", "bc"])));
        assert_ne!(Digest::of_json(&json!("1")), Digest::of_json(&json!(1)));
    }

    #[test]
    fn a_digest_survives_its_text_form() {
        let digest = Digest::of_bytes(b"x");
        assert_eq!(Digest::try_from(digest.to_string()), Ok(digest));
        assert!(Digest::try_from("xyz".to_owned()).is_err());
        assert!(Digest::try_from("G".repeat(64)).is_err());
    }
}
