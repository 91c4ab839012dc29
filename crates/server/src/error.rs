//! Why a process does not start, said so that its operator knows what to do.

use std::net::SocketAddr;

use pyoco_core::ids::InvalidId;
use pyoco_store_sqlite::OpenError;

use crate::config::InvalidConfig;

/// Why it does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Settings make no sense.
    #[error(transparent)]
    Config(#[from] InvalidConfig),
    /// The folder of the store cannot be used.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// Somebody else listens there.
    #[error(
        "{0} is already in use by another program; choose another port with --port, or stop that program"
    )]
    PortTaken(SocketAddr),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}; check --host and --port")]
    Listen {
        /// Which.
        address: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A tag or a worker's name.
    #[error("{what} {text:?}: {source}")]
    Name {
        /// What it was to name.
        what: &'static str,
        /// As it was given.
        text: String,
        /// The rule that it breaks.
        source: InvalidId,
    },
    /// A setting of the worker.
    #[error("{0}")]
    Worker(String),
    /// NATS cannot be used.
    #[error(transparent)]
    Nats(#[from] pyoco_store_nats::OpenError),
    /// An operator who is strict about durability gets no less.
    #[error("PYOCO_DURABILITY=strict: {0}")]
    NotDurable(String),
    /// Others reach the address, and nobody is asked for a key.
    #[error(
        "others can reach {0}, and without API keys everybody who does may run code here; set PYOCO_HTTP_AUTH_MODE=api_key and make a key with `pyoco-server-admin api-key create --tenant NAME`, or say --allow-unauthenticated if something else keeps others out"
    )]
    OpenToOthers(SocketAddr),
    /// The disk failed under the store.
    #[error(
        "the disk failed and nothing can be written any more; check the disk, then start again: nothing that was answered is lost"
    )]
    StoreGaveUp,
    /// Something else failed.
    #[error("{0}")]
    Other(Box<dyn std::error::Error + Send + Sync>),
}

impl StartError {
    pub(crate) fn other(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Other(error.into())
    }
}
