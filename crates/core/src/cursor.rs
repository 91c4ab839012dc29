//! Where a list was left off, as an opaque text.
//!
//! The form is the original's (base64url without padding of `{"u": updated_at, "r": run_id}`), so that during
//! an upgrade a cursor of either gateway is understood by the other. It says where to go on, never what may
//! be seen: filters and tenant come with every request.

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use serde::{Deserialize, Serialize};

use crate::ids::ExecutionId;
use crate::json::{self, Limits};
use crate::time::Timestamp;

/// The last entry that was shown: lists go on behind it, newest first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    /// When it changed last.
    pub updated_at: Timestamp,
    /// Which one it was.
    pub id: ExecutionId,
}

/// The text is not a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is not a cursor; use the one that the list gave, or none")]
pub struct InvalidCursor;

const LIMITS: Limits = Limits { bytes: 512, depth: 1 };
const ENGINE: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::URL_SAFE,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

#[derive(Serialize, Deserialize)]
struct Wire {
    u: f64,
    r: ExecutionId,
}

impl Cursor {
    /// The opaque text.
    pub fn encode(&self) -> String {
        let wire = Wire { u: self.updated_at.as_unix_seconds(), r: self.id.clone() };
        // A number and an id always have a JSON form.
        ENGINE.encode(serde_json::to_vec(&wire).unwrap_or_default())
    }

    /// Reads a text that a list gave.
    pub fn decode(text: &str) -> Result<Self, InvalidCursor> {
        if text.len() > LIMITS.bytes * 2 {
            return Err(InvalidCursor);
        }
        let bytes = ENGINE.decode(text).map_err(|_| InvalidCursor)?;
        let wire: Wire = json::decode(&bytes, LIMITS).map_err(|_| InvalidCursor)?;
        let updated_at = Timestamp::from_unix_seconds(wire.u).ok_or(InvalidCursor)?;
        Ok(Self { updated_at, id: wire.r })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_survives_its_text_form() {
        let cursor = Cursor {
            updated_at: Timestamp::from_micros(1_700_000_000_123_456),
            id: ExecutionId::new("7b1c-x").unwrap(),
        };
        assert_eq!(Cursor::decode(&cursor.encode()), Ok(cursor));
    }

    #[test]
    fn the_originals_cursor_is_understood() {
        // base64url of {"u":1700000000.5,"r":"abc"}, as the original writes it
        let cursor = Cursor::decode("eyJ1IjoxNzAwMDAwMDAwLjUsInIiOiJhYmMifQ").unwrap();
        assert_eq!(cursor.updated_at, Timestamp::from_micros(1_700_000_000_500_000));
        assert_eq!(cursor.id.as_str(), "abc");
    }

    #[test]
    fn anything_else_is_refused() {
        let long = "A".repeat(10_240);
        let made_up = [
            r#"{"u":1e400,"r":"a"}"#,
            r#"{"u":1,"u":2,"r":"a"}"#,
            r#"{"u":NaN,"r":"a"}"#,
            r#"{"u":1,"r":"a.>"}"#,
            "[]",
        ];
        let made_up = made_up.map(|text| ENGINE.encode(text));
        for text in ["", "!!!", "abc", long.as_str()].into_iter().chain(made_up.iter().map(String::as_str)) {
            assert_eq!(Cursor::decode(text), Err(InvalidCursor), "{text}");
        }
    }
}
