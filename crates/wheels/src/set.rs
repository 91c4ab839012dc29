//! The wheels that a run has run with, by name, version and hash. A set has a digest, which names the folder it is installed in.

use std::fmt;
use std::str::FromStr as _;

use pep440_rs::Version;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::name::WheelName;

/// The SHA-256 of a file, as 64 digits in lower case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Sha256Digest(String);

impl Sha256Digest {
    /// Reads 64 hexadecimal digits.
    ///
    /// # Errors
    /// When it is anything else, capital letters included.
    pub fn parse(text: &str) -> Result<Self, NotADigest> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let is_digest = text.len() == 64 && text.bytes().all(is_digit);
        is_digest.then(|| Self(text.to_owned())).ok_or(NotADigest)
    }

    /// Of the bytes that a hash has.
    #[must_use]
    pub fn of_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Sha256Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl TryFrom<String> for Sha256Digest {
    type Error = NotADigest;

    fn try_from(text: String) -> Result<Self, NotADigest> {
        Self::parse(&text)
    }
}

impl From<Sha256Digest> for String {
    fn from(digest: Sha256Digest) -> Self {
        digest.0
    }
}

/// This is not 64 hexadecimal digits in lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the hash of a wheel is 64 hexadecimal digits in lower case")]
pub struct NotADigest;

/// Why wheels are no set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotASet {
    /// A version is another than the name's.
    #[error("{0} has another version than the set says")]
    OtherVersion(String),
    /// A package is there twice: a run could import either.
    #[error("the package {0} is there twice")]
    Twice(String),
}

/// One wheel of a set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PinnedWheel {
    /// Its name.
    pub name: WheelName,
    /// The version of its package, in normal form.
    pub version: String,
    /// What its bytes have to be.
    pub sha256: Sha256Digest,
}

impl PinnedWheel {
    /// A wheel with its version taken from its name.
    #[must_use]
    pub fn new(name: WheelName, sha256: Sha256Digest) -> Self {
        let version = name.version().to_string();
        Self { name, version, sha256 }
    }
}

/// Wheels that are installed together: one of each package, in the order of their packages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<PinnedWheel>", into = "Vec<PinnedWheel>")]
pub struct WheelSet(Vec<PinnedWheel>);

impl WheelSet {
    /// Puts wheels together, in whatever order they are given.
    ///
    /// # Errors
    /// When a package is there twice, or a version is not the name's.
    pub fn new(mut wheels: Vec<PinnedWheel>) -> Result<Self, NotASet> {
        wheels.sort_by(|one, other| one.name.package().cmp(other.name.package()));
        for pair in wheels.windows(2) {
            if let [one, other] = pair
                && one.name.package() == other.name.package()
            {
                return Err(NotASet::Twice(one.name.package().to_owned()));
            }
        }
        let is_other = |wheel: &&PinnedWheel| {
            Version::from_str(&wheel.version).ok().as_ref() != Some(wheel.name.version())
        };
        match wheels.iter().find(is_other) {
            Some(wheel) => Err(NotASet::OtherVersion(wheel.name.to_string())),
            None => Ok(Self(wheels)),
        }
    }

    /// Its wheels, in the order of their packages.
    #[must_use]
    pub fn wheels(&self) -> &[PinnedWheel] {
        &self.0
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What tells this set from any other: the same names with the same bytes have the same digest, everywhere and always.
    #[must_use]
    pub fn digest(&self) -> Sha256Digest {
        let mut hash = Sha256::new();
        // Names and hashes hold neither of the separators, so no two sets are written alike.
        hash.update(b"pyoco-wheel-set-1\n");
        for wheel in &self.0 {
            hash.update(wheel.name.as_str());
            hash.update(b" ");
            hash.update(wheel.sha256.as_str());
            hash.update(b"\n");
        }
        Sha256Digest::of_bytes(hash.finalize().into())
    }
}

impl TryFrom<Vec<PinnedWheel>> for WheelSet {
    type Error = NotASet;

    fn try_from(wheels: Vec<PinnedWheel>) -> Result<Self, NotASet> {
        Self::new(wheels)
    }
}

impl From<WheelSet> for Vec<PinnedWheel> {
    fn from(set: WheelSet) -> Self {
        set.0
    }
}
