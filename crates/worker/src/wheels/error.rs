//! Why wheels are not here, in words that say what to do.

use std::io;
use std::path::Path;

use pyoco_ports::{ErrorKind, StoreError};

/// Why wheels could not be brought to this worker.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WheelError {
    /// The shelf cannot be read now.
    #[error("the shelf of wheels cannot be read: {0}")]
    Store(#[from] StoreError),
    /// A wheel is neither on the shelf nor here.
    #[error(
        "the wheel {0} is neither on the shelf nor on this worker any more; upload the same file again, or submit the run again to use what is there now"
    )]
    Gone(String),
    /// The bytes on the shelf are not those that were uploaded.
    #[error(
        "the wheel {0} is damaged on the shelf: its bytes are not those that were uploaded; delete it and upload it again"
    )]
    Damaged(String),
    /// This worker installs no wheels.
    #[error(
        "the run began with wheels ({0}), and this worker installs none; start it with --wheel-sync, or give the run to workers that do"
    )]
    Off(String),
    /// What a log says of wheels makes no sense.
    #[error("the wheels that the run began with cannot be read: {0}")]
    NotASet(String),
    /// Python does not say what it can run.
    #[error("{0}")]
    Python(String),
    /// uv or pip refused.
    #[error("{0}")]
    Install(String),
    /// The folder of wheels cannot be used.
    #[error("{what} '{path}': {source}")]
    Disk {
        /// What was being done.
        what: &'static str,
        /// With what.
        path: String,
        /// What the system said.
        source: io::Error,
    },
}

impl WheelError {
    pub(super) fn disk(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.display().to_string();
        move |source| Self::Disk { what, path, source }
    }

    /// Whether it has nothing to do with these wheels: the store or the disk is in trouble, and not for ever.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Store(error) => error.kind != ErrorKind::Corrupt,
            Self::Disk { .. } => true,
            Self::Gone(_) | Self::Damaged(_) | Self::Off(_) | Self::NotASet(_) => false,
            Self::Python(_) | Self::Install(_) => false,
        }
    }

    /// Whether no worker with this shelf can do better, now or later. What is wrong with this machine may pass.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            Self::Gone(_) | Self::Damaged(_) | Self::Off(_) | Self::NotASet(_) => true,
            Self::Store(error) => matches!(error.kind, ErrorKind::Corrupt),
            Self::Python(_) | Self::Install(_) | Self::Disk { .. } => false,
        }
    }
}
