//! How a store fails, and how an append loses.

use std::fmt;

use pyoco_core::ids::Version;

/// A store could not do what it was asked.
#[derive(Debug)]
pub struct StoreError {
    /// What kind of failure.
    pub kind: ErrorKind,
    /// What was being done.
    pub operation: &'static str,
    /// What the adapter knows about it.
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The kinds of failure that the engine tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// Not reachable now; the same call may succeed later.
    Unavailable,
    /// No answer in time: it may have been done.
    Timeout,
    /// The disk or a limit of the store is full.
    Full,
    /// The store was closed.
    Closed,
    /// What is stored cannot be read.
    Corrupt,
    /// Larger than the store can hold.
    TooLarge,
    /// A mistake of ours.
    Internal,
}

impl ErrorKind {
    /// Whether the same call may succeed later.
    pub const fn is_retryable(self) -> bool {
        match self {
            Self::Unavailable | Self::Timeout | Self::Full => true,
            Self::Closed | Self::Corrupt | Self::TooLarge | Self::Internal => false,
        }
    }
}

impl StoreError {
    /// An error with the adapter's own behind it.
    pub fn new(
        kind: ErrorKind,
        operation: &'static str,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self { kind, operation, source: Some(source.into()) }
    }

    /// An error that needs no further word.
    pub const fn plain(kind: ErrorKind, operation: &'static str) -> Self {
        Self { kind, operation, source: None }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            ErrorKind::Unavailable => "the store is not available",
            ErrorKind::Timeout => "the store did not answer in time",
            ErrorKind::Full => "the store is full",
            ErrorKind::Closed => "the store was closed",
            ErrorKind::Corrupt => "what is stored cannot be read",
            ErrorKind::TooLarge => "it is larger than the store can hold",
            ErrorKind::Internal => "the store failed",
        };
        write!(f, "{}: {kind}", self.operation)?;
        match &self.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| &**source as &(dyn std::error::Error + 'static))
    }
}

/// Why a record was not appended.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// Somebody was faster. Load the tail and decide again; never send the same record twice.
    #[error("the log is at version {actual}, not {expected}")]
    Conflict {
        /// The version the caller decided on.
        expected: Version,
        /// The version the log has.
        actual: Version,
    },
    /// The store failed. After `Timeout` the record may have been appended.
    #[error(transparent)]
    Store(#[from] StoreError),
}
