//! How NATS fails, and what the store calls it: one mapping for the whole crate.

use async_nats::client::PublishErrorKind;
use pyoco_ports::{ErrorKind, StoreError};
use serde::Deserialize;

use crate::post::Unanswered;

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A name that an operator chose cannot be part of a subject.
    #[error("{what} cannot be called {name:?}: only letters, digits, '_' and '-' are allowed")]
    Name {
        /// What was to be named.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A setting that cannot be.
    #[error("{what}")]
    Setting {
        /// What is wrong with it.
        what: String,
    },
    /// No server could be reached, or none let us in.
    #[error("cannot connect to NATS at {servers}: {why}")]
    Connect {
        /// Where they should be.
        servers: String,
        /// What happened.
        why: String,
    },
    /// The server is older than what we need of it.
    #[error("the NATS server is version {found}; at least {wanted} is needed")]
    TooOld {
        /// What it says it is.
        found: String,
        /// What it should be.
        wanted: &'static str,
    },
    /// The server is there, JetStream is not.
    #[error(
        "NATS answers, but JetStream does not; is it enabled, also for this account, and has the cluster a leader? {why}"
    )]
    NoJetStream {
        /// What the server said.
        why: String,
    },
    /// Something of the name is there, but is not what we need.
    #[error("{name} exists in NATS but cannot be used: {why}")]
    Unusable {
        /// The name of the stream.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// The server did not make what is missing.
    #[error("NATS did not make {name}: {why}")]
    NotMade {
        /// The name of the stream.
        name: String,
        /// What it said.
        why: String,
    },
    /// The server did not answer a question.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// JetStream understood and said no.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, thiserror::Error)]
#[error("{description} ({err_code})")]
pub(crate) struct Refusal {
    /// As in HTTP.
    pub(crate) code: u16,
    /// What exactly; see the constants here.
    #[serde(default)]
    pub(crate) err_code: u32,
    /// In words.
    #[serde(default)]
    pub(crate) description: String,
}

impl Refusal {
    /// JetStream is not enabled, on the server or for the account.
    pub(crate) const NOT_ENABLED: [u32; 2] = [10039, 10076];
    /// There is no such consumer.
    pub(crate) const NO_CONSUMER: u32 = 10014;
    /// There is no such message.
    pub(crate) const NO_MESSAGE: u32 = 10037;
    /// The message is not there to be removed.
    pub(crate) const NOT_DELETED: u32 = 10057;
    /// There is a stream of that name, made in another way.
    pub(crate) const NAME_IN_USE: u32 = 10058;
    /// There is no such stream.
    pub(crate) const NO_STREAM: u32 = 10059;
    /// A consumer of the name is there already.
    pub(crate) const CONSUMER_EXISTS: u32 = 10148;
    /// Somebody was faster.
    pub(crate) const WRONG_LAST_SEQUENCE: [u32; 2] = [10071, 10164];

    /// What kind of failure it is to whoever does not expect it.
    pub(crate) fn kind(&self) -> ErrorKind {
        match self.err_code {
            // Larger than the stream allows.
            10054 => ErrorKind::TooLarge,
            // Memory, storage or other resources of the account or the server.
            10002 | 10023 | 10028 | 10047 => ErrorKind::Full,
            // The disk said no, or a limit of the stream did.
            10077 if self.description.contains("maximum") => ErrorKind::Full,
            // A server of the cluster is not there, or has not said yet that it is.
            10005 if self.description.contains("offline") => ErrorKind::Unavailable,
            // No leader, JetStream off, or it is shutting down.
            10008 | 10009 | 10039 | 10076 | 10077 => ErrorKind::Unavailable,
            // Somebody has deleted it; it may be made again.
            Self::NO_STREAM => ErrorKind::Unavailable,
            _ if self.code == 503 => ErrorKind::Unavailable,
            _ => ErrorKind::Internal,
        }
    }

    /// The store's word for it.
    pub(crate) fn into_store(self, operation: &'static str) -> StoreError {
        StoreError::new(self.kind(), operation, self)
    }
}

/// Why a request to JetStream brought nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    /// JetStream said no.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// It could not be asked, or did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ApiError {
    /// The store's word for it.
    pub(crate) fn into_store(self, operation: &'static str) -> StoreError {
        match self {
            Self::Refused(refusal) => refusal.into_store(operation),
            Self::Store(error) => error,
        }
    }

    /// Whether JetStream said exactly this.
    pub(crate) fn is(&self, err_code: u32) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.err_code == err_code)
    }
}

/// Why a message was not stored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PublishError {
    /// Somebody was faster: the last sequence of the subject is not the one expected.
    #[error("another message came first")]
    WrongLastSequence,
    /// No stream listens to the subject, or it has no leader now.
    #[error("no stream takes it")]
    NoStream,
    /// The store's word for anything else. After `Timeout` it may have been stored.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl PublishError {
    /// The store's word for it, where the caller expects nothing.
    pub(crate) fn into_store(self, operation: &'static str) -> StoreError {
        match self {
            Self::WrongLastSequence => StoreError::new(ErrorKind::Internal, operation, self.to_string()),
            Self::NoStream => StoreError::new(ErrorKind::Unavailable, operation, self.to_string()),
            Self::Store(error) => error,
        }
    }
}

/// A request has no answer.
pub(crate) fn unanswered(operation: &'static str, why: Unanswered) -> StoreError {
    match why {
        Unanswered::Late => StoreError::plain(ErrorKind::Timeout, operation),
        Unanswered::Lost => StoreError::new(ErrorKind::Timeout, operation, "the connection to NATS was lost"),
        Unanswered::Closed => StoreError::plain(ErrorKind::Closed, operation),
        Unanswered::Refused(error) => {
            let kind = match error.kind() {
                PublishErrorKind::MaxPayloadExceeded => ErrorKind::TooLarge,
                PublishErrorKind::InvalidSubject => ErrorKind::Internal,
                // The client is gone.
                PublishErrorKind::Send => ErrorKind::Closed,
            };
            StoreError::new(kind, operation, error)
        }
    }
}

/// Whether it failed because there is no JetStream to ask, which no waiting mends.
pub(crate) fn is_not_enabled(error: &StoreError) -> bool {
    let refusal = error.source.as_ref().and_then(|source| source.downcast_ref::<Refusal>());
    refusal.is_some_and(|refusal| Refusal::NOT_ENABLED.contains(&refusal.err_code))
}

/// Whether it failed because the stream is not there: nobody made it, or somebody has deleted it.
pub(crate) fn is_missing(error: &StoreError) -> bool {
    let refusal = error.source.as_ref().and_then(|source| source.downcast_ref::<Refusal>());
    refusal.is_some_and(|refusal| refusal.err_code == Refusal::NO_STREAM)
}

/// What is stored cannot be read.
pub(crate) fn corrupt(
    operation: &'static str,
    why: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> StoreError {
    StoreError::new(ErrorKind::Corrupt, operation, why)
}

/// A mistake of ours, or a server that answers what no server answers.
pub(crate) fn internal(
    operation: &'static str,
    why: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> StoreError {
    StoreError::new(ErrorKind::Internal, operation, why)
}
