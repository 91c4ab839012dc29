//! A command in the foreground: it runs until it is done, or until the user presses Ctrl-C.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use crate::errors::Failure;

/// How long an interrupted command may take to put the terminal in order.
const TIDY_UP: Duration = Duration::from_millis(500);

/// Runs a command. Ctrl-C ends it also while it hangs in a write that nobody reads.
pub fn run(command: impl Future<Output = Result<(), Failure>> + Send + 'static) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // One may hang in a write; the other still hears the signal.
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(Failure::unexpected)?;
    let result = runtime.block_on(async {
        let mut interrupt = pin!(tokio::signal::ctrl_c());
        // It is heard from the first poll on, so this comes before the command: whoever sees something of it may interrupt it.
        if std::future::poll_fn(|context| Poll::Ready(interrupt.as_mut().poll(context))).await.is_ready() {
            return Err(Failure::interrupted());
        }
        let mut command = tokio::spawn(command);
        tokio::select! {
            ended = &mut command => ended.unwrap_or_else(|error| Err(Failure::unexpected(error))),
            interrupt = interrupt => {
                interrupt.map_err(Failure::unexpected)?;
                command.abort();
                let _ = tokio::time::timeout(TIDY_UP, command).await;
                Err(Failure::interrupted())
            }
        }
    });
    // What still hangs ends with the process.
    runtime.shutdown_background();
    result
}
