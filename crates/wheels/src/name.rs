//! The name of a wheel: `<distribution>-<version>[-<build>]-<python>-<abi>-<platform>.whl`. A name that has been read is safe to
//! use as the name of a file: it holds no separator and begins with a letter or a digit.

use std::fmt;
use std::str::FromStr;

use pep440_rs::Version;
use serde::{Deserialize, Serialize};

use crate::compatibility::TagSet;

/// As long as the name of a file may be.
const MOST_BYTES: usize = 255;

/// Why a text is not the name of a wheel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// It has characters that no name of a wheel has, is too long, or does not end in `.whl`.
    #[error("invalid wheel name")]
    NotAName,
    /// It could be the name of a file, and its parts are not those of a wheel.
    #[error("invalid wheel filename")]
    NotAWheelName,
}

/// Which build of a version: a number and what follows it. A wheel without one is older than any with one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BuildTag {
    /// Builds are compared by this first.
    pub number: u64,
    /// And then by the text behind it.
    pub rest: String,
}

/// The name of a wheel, in the spelling of whoever made it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct WheelName {
    // The first field decides equality and order; the others follow from it.
    text: String,
    package: String,
    version: Version,
    build: Option<BuildTag>,
    tags: TagSet,
}

impl WheelName {
    /// Reads a name.
    ///
    /// # Errors
    /// When it is none; see [`InvalidName`].
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        let is_character =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'+' | b'-');
        let stem = text.strip_suffix(".whl").filter(|stem| !stem.is_empty()).ok_or(InvalidName::NotAName)?;
        if text.len() > MOST_BYTES || !stem.bytes().all(is_character) {
            return Err(InvalidName::NotAName);
        }
        Self::of_parts(text, stem).ok_or(InvalidName::NotAWheelName)
    }

    fn of_parts(text: &str, stem: &str) -> Option<Self> {
        let (distribution, rest) = stem.split_once('-')?;
        let (version, rest) = rest.split_once('-')?;
        let (build, tags) = match rest.bytes().filter(|byte| *byte == b'-').count() {
            2 => (None, rest),
            3 => {
                let (build, tags) = rest.split_once('-')?;
                (Some(build_tag(build)?), tags)
            }
            _ => return None,
        };
        Some(Self {
            text: text.to_owned(),
            package: package(distribution)?,
            version: Version::from_str(version).ok()?,
            build,
            tags: TagSet::parse(tags).ok()?,
        })
    }

    /// The name as it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The package, normalised: `My_Tool` and `my.tool` are both `my-tool`.
    #[must_use]
    pub fn package(&self) -> &str {
        &self.package
    }

    /// The version of the package.
    #[must_use]
    pub const fn version(&self) -> &Version {
        &self.version
    }

    /// The build, when the name has one.
    #[must_use]
    pub const fn build(&self) -> Option<&BuildTag> {
        self.build.as_ref()
    }

    /// The interpreters it is for.
    #[must_use]
    pub const fn tags(&self) -> &TagSet {
        &self.tags
    }
}

/// The name of a package in the one spelling that is compared: lower case, with one dash for any run of `-`, `_` and `.`.
#[must_use]
pub fn normalised(package: &str) -> String {
    let mut normal = String::with_capacity(package.len());
    for character in package.chars() {
        if !matches!(character, '-' | '_' | '.') {
            normal.push(character.to_ascii_lowercase());
        } else if !normal.ends_with('-') {
            normal.push('-');
        }
    }
    normal
}

/// The package of the first part of a name. A run of underscores would stand for a dash twice.
fn package(distribution: &str) -> Option<String> {
    let is_character = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_');
    let is_edge = |edge: Option<&u8>| edge.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = distribution.as_bytes();
    let is_package = is_edge(bytes.first())
        && is_edge(bytes.last())
        && bytes.iter().copied().all(is_character)
        && !distribution.contains("__");
    is_package.then(|| normalised(distribution))
}

fn build_tag(text: &str) -> Option<BuildTag> {
    let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (number, rest) = text.split_at_checked(end)?;
    Some(BuildTag { number: number.parse().ok()?, rest: rest.to_owned() })
}

impl fmt::Display for WheelName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl FromStr for WheelName {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        Self::parse(text)
    }
}

impl TryFrom<String> for WheelName {
    type Error = InvalidName;

    fn try_from(text: String) -> Result<Self, InvalidName> {
        Self::parse(&text)
    }
}

impl From<WheelName> for String {
    fn from(name: WheelName) -> Self {
        name.text
    }
}
