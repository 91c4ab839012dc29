//! Tokens: where a list or a log was left off, as a text that only the gateway reads.
//!
//! A token says where to go on, never what may be seen: tenant and filters come with every request. One that was given for something
//! else is recognised by what it names. It is not signed: whoever makes one up is shown what they could have asked for anyway.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pyoco_core::digest::Digest;
use pyoco_core::json::{self, Limits};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The form of tokens. Another one is not read.
const FORM: u8 = 1;
/// What a token may hold.
const LIMITS: Limits = Limits { bytes: 8 << 10, depth: 3 };

/// The token that says this.
pub(crate) fn encode(said: &impl Serialize) -> String {
    // Ids, numbers, instants and texts always have a JSON form.
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(&(FORM, said)).unwrap_or_default())
}

/// What a token says, if it is one.
pub(crate) fn decode<T: DeserializeOwned>(token: &str) -> Option<T> {
    if token.len() > LIMITS.bytes * 2 {
        return None;
    }
    let (form, said) = json::decode::<(u8, T)>(&URL_SAFE_NO_PAD.decode(token).ok()?, LIMITS).ok()?;
    (form == FORM).then_some(said)
}

/// A short mark of what a list was asked for, by which its tokens are told from those of another.
pub(crate) fn mark(asked: &impl Serialize) -> String {
    let digest = Digest::of_bytes(&serde_json::to_vec(asked).unwrap_or_default());
    URL_SAFE_NO_PAD.encode(digest.as_bytes().get(..9).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_says_what_was_said_and_nothing_else_is_one() {
        let said = ("e-1".to_owned(), 7_u64);
        assert_eq!(decode(&encode(&said)), Some(said));
        for text in ["", "!!!", "e30", "W10", &"A".repeat(20_000)] {
            assert_eq!(decode::<(String, u64)>(text), None, "{text}");
        }
    }

    #[test]
    fn what_was_asked_differently_has_another_mark() {
        assert_eq!(mark(&("a", 1)), mark(&("a", 1)));
        assert_ne!(mark(&("a", 1)), mark(&("a", 2)));
        assert_eq!(mark(&("a", 1)).len(), 12);
    }
}
