//! Why a file is no sound wheel, in one sentence.

use std::fmt;
use std::io;

/// So much of the name of an entry is shown.
const MOST_SHOWN: usize = 200;

/// What is wrong with a wheel. The name of the entry is quoted and escaped: it can neither break a line nor colour it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsound {
    entry: Option<String>,
    what: String,
}

impl Unsound {
    /// The archive as a whole; the sentence begins with "the archive".
    pub(super) fn archive(what: impl Into<String>) -> Self {
        Self { entry: None, what: what.into() }
    }

    /// One entry; the sentence begins with its name.
    pub(super) fn entry(name: &str, what: impl Into<String>) -> Self {
        Self { entry: Some(name.chars().take(MOST_SHOWN).collect()), what: what.into() }
    }
}

impl fmt::Display for Unsound {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.entry {
            Some(entry) => write!(formatter, "{entry:?} {}", self.what),
            None => write!(formatter, "the archive {}", self.what),
        }
    }
}

impl std::error::Error for Unsound {}

/// Why a wheel has not been found sound.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// It is not: whoever made it has to make another.
    #[error(transparent)]
    Unsound(#[from] Unsound),
    /// It could not be read, which says nothing about it.
    #[error("the wheel could not be read: {0}")]
    Unreadable(#[from] io::Error),
}
