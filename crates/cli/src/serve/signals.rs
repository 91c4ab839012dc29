//! Being told to stop: SIGINT and SIGTERM.

use pyoco_server::StartError;
use tokio::signal::unix::{self, SignalKind};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// Why the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    /// Somebody pressed Ctrl-C; the shell is told.
    Interrupt,
    /// A supervisor asked for it; an orderly stop is a success.
    Terminate,
}

pub(super) struct Signals {
    interrupt: unix::Signal,
    terminate: unix::Signal,
}

impl Signals {
    /// From here on the signals do not end the process by themselves.
    pub(super) fn listen() -> Result<Self, StartError> {
        let listen = |kind| unix::signal(kind).map_err(|error| StartError::Other(error.into()));
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    pub(super) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
        }
    }

    /// Cancels a token at the next signal.
    pub(super) fn cancel_on_next(mut self, token: CancellationToken) -> AbortOnDropHandle<()> {
        AbortOnDropHandle::new(tokio::spawn(async move {
            self.next().await;
            token.cancel();
        }))
    }
}
