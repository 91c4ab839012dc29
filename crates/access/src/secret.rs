//! What a holder shows, `pyoco_<key id>.<secret>`, and the pepper that a deployment adds to it. Nothing here prints either of them.
//!
//! Only the shape is looked at; whether a key opens anything is the gate's business.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pyoco_core::ids::KeyId;
use zeroize::Zeroizing;

const PREFIX: &str = "pyoco_";

/// A key as its holder has it.
#[derive(Clone)]
pub struct Key {
    id: KeyId,
    secret: Zeroizing<String>,
}

/// It does not have the shape of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it does not have the shape of an API key")]
pub struct NotAKey;

/// The system gives no random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the system gives no random numbers")]
pub struct NoRandomness;

impl Key {
    /// Reads a key by its shape.
    pub fn parse(text: &str) -> Result<Self, NotAKey> {
        let (id, secret) = parts(text).ok_or(NotAKey)?;
        let id = KeyId::new(id).map_err(|_| NotAKey)?;
        Ok(Self { id, secret: Zeroizing::new(secret.to_owned()) })
    }

    /// A key that nobody has: an id of 24 hexadecimal digits and a secret of 32 random bytes.
    pub fn generate() -> Result<Self, NoRandomness> {
        let id: String = random::<12>()?.iter().map(|byte| format!("{byte:02x}")).collect();
        let id = KeyId::new(&id).map_err(|_| NoRandomness)?;
        let secret = Zeroizing::new(URL_SAFE_NO_PAD.encode(*random::<32>()?));
        Ok(Self { id, secret })
    }

    /// Its name, which is no secret.
    pub const fn id(&self) -> &KeyId {
        &self.id
    }

    /// The whole key in clear, for its holder and for nobody else.
    pub fn reveal(&self) -> Zeroizing<String> {
        Zeroizing::new(format!("{PREFIX}{}.{}", self.id, *self.secret))
    }

    pub(crate) fn secret(&self) -> &str {
        &self.secret
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({PREFIX}{}.…)", self.id)
    }
}

/// Id and secret of a key, without a copy; `None` when it has another shape. No key is longer than 327 bytes.
pub(crate) fn parts(text: &str) -> Option<(&str, &str)> {
    let (id, secret) = text.strip_prefix(PREFIX)?.split_once('.')?;
    let is_made_of = |part: &str, lengths: std::ops::RangeInclusive<usize>| {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        lengths.contains(&part.len()) && part.bytes().all(is_letter)
    };
    (is_made_of(id, 8..=64) && is_made_of(secret, 16..=256)).then_some((id, secret))
}

/// Bytes that nobody can guess.
pub(crate) fn random<const N: usize>() -> Result<Zeroizing<[u8; N]>, NoRandomness> {
    let mut bytes = Zeroizing::new([0; N]);
    getrandom::fill(bytes.as_mut_slice()).map_err(|_| NoRandomness)?;
    Ok(bytes)
}

/// What a deployment adds to every secret before it is hashed, so that stolen records alone are worth nothing. Everybody
/// who makes or checks keys of one deployment must have the same.
#[derive(Clone, PartialEq, Eq)]
pub struct Pepper(Zeroizing<String>);

impl Pepper {
    /// Blank is none.
    pub fn new(text: &str) -> Option<Self> {
        (!text.trim().is_empty()).then(|| Self(Zeroizing::new(text.to_owned())))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Pepper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pepper(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_back_as_it_was_made() {
        let key = Key::generate().unwrap();
        let read = Key::parse(&key.reveal()).unwrap();
        assert_eq!((read.id(), read.secret()), (key.id(), key.secret()));
        assert_eq!((key.id().as_str().len(), key.secret().len()), (24, 43));
        assert_ne!(Key::generate().unwrap().secret(), key.secret());
    }

    #[test]
    fn what_has_another_shape_is_no_key() {
        let (id, secret) = ("a".repeat(8), "s".repeat(16));
        assert!(Key::parse(&format!("pyoco_{id}.{secret}")).is_ok());
        assert!(Key::parse(&format!("pyoco_{}.{}", "a".repeat(64), "s".repeat(256))).is_ok());
        let wrong = [
            String::new(),
            "pyoco_".to_owned(),
            "pyoco_.".to_owned(),
            format!("{id}.{secret}"),
            format!("PYOCO_{id}.{secret}"),
            format!("pyoco_{id}{secret}"),
            format!(" pyoco_{id}.{secret}"),
            format!("pyoco_{id}.{secret}\n"),
            format!("pyoco_{}.{secret}", "a".repeat(7)),
            format!("pyoco_{}.{secret}", "a".repeat(65)),
            format!("pyoco_{id}.{}", "s".repeat(15)),
            format!("pyoco_{id}.{}", "s".repeat(257)),
            format!("pyoco_{id}.{secret}.{secret}"),
            format!("pyoco_{id}.{secret}é"),
            format!("pyoco_aaaa>aaa.{secret}"),
            "pyoco_".repeat(100_000),
        ];
        for text in wrong {
            assert!(matches!(Key::parse(&text), Err(NotAKey)), "{}", text.get(..80).unwrap_or(&text));
        }
    }

    #[test]
    fn nothing_shows_a_secret_by_accident() {
        let key = Key::generate().unwrap();
        let pepper = Pepper::new("black pepper").unwrap();
        let shown = format!("{key:?} {key:#?} {pepper:?} {:?} {}", Key::parse("pyoco_x"), NotAKey);
        assert!(!shown.contains(key.secret()) && !shown.contains("black"), "{shown}");
        assert!(shown.contains(key.id().as_str()), "{shown}");
    }

    #[test]
    fn a_blank_pepper_is_none() {
        assert!(Pepper::new("").is_none() && Pepper::new(" \t").is_none());
        assert_eq!(Pepper::new(" x ").unwrap().as_str(), " x ");
    }
}
