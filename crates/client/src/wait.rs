//! Waiting for the end of a run: by watching it, and by asking again and again only where a watch cannot be had.

use std::time::Duration;

use futures_util::StreamExt;
use pyoco_api::{RunSnapshot, RunStatus};
use tokio::time::{Instant, sleep, timeout_at};

use crate::answer::Answer;
use crate::error::Error;
use crate::transport::Client;
use crate::watch::WatchOptions;

/// The longest watch that the gateway accepts.
const LONGEST_WATCH: u64 = 600;
/// How often a run is read when it cannot be watched.
const POLL: Duration = Duration::from_millis(250);

/// Whether a run of this status has ended and will not change any more.
pub const fn is_terminal(status: RunStatus) -> bool {
    match status {
        RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled => true,
        RunStatus::Pending | RunStatus::Running | RunStatus::Cancelling => false,
    }
}

impl Client {
    /// Waits until a run has ended, at most `limit` (at least one second), and shows every snapshot on the way to `seen`.
    ///
    /// The run is watched, not polled; a gateway or a proxy that does not let it be watched is asked every 250 ms. Trouble that may
    /// pass is waited out.
    pub async fn wait_for_end(
        &self,
        run_id: &str,
        limit: Duration,
        mut seen: impl FnMut(&RunSnapshot) + Send,
    ) -> Result<Answer<RunSnapshot>, Error> {
        let limit = limit.max(Duration::from_secs(1));
        let deadline = Instant::now() + limit;
        let run = async {
            self.watch_to_end(run_id, deadline, &mut seen).await;
            // Also after a watch: its snapshots do not say how the worker is.
            self.poll_to_end(run_id, &mut seen).await
        };
        match timeout_at(deadline, run).await {
            Ok(result) => result,
            Err(_) => Err(Error::WaitTimeout { run_id: run_id.to_owned(), limit }),
        }
    }

    /// Returns when the run has ended, or cannot be watched.
    async fn watch_to_end(
        &self,
        run_id: &str,
        deadline: Instant,
        seen: &mut (impl FnMut(&RunSnapshot) + Send),
    ) {
        while Instant::now() < deadline {
            let left = deadline.saturating_duration_since(Instant::now()).as_secs() + 1;
            let timeout_sec = u32::try_from(left.min(LONGEST_WATCH)).ok();
            let options = WatchOptions { timeout_sec, ..WatchOptions::default() };
            let Ok(mut watch) = self.watch_run(run_id, options).await else { return };
            let mut has_come = false;
            while let Some(event) = watch.next().await {
                let Ok(event) = event else { return };
                has_come = true;
                let Some(snapshot) = &event.data.snapshot else { continue };
                seen(snapshot);
                if is_terminal(snapshot.status) {
                    return;
                }
            }
            if !has_come {
                return;
            }
        }
    }

    async fn poll_to_end(
        &self,
        run_id: &str,
        seen: &mut (impl FnMut(&RunSnapshot) + Send),
    ) -> Result<Answer<RunSnapshot>, Error> {
        loop {
            match self.get_run(run_id).await {
                Ok(run) => {
                    seen(&run);
                    if is_terminal(run.status) {
                        return Ok(run);
                    }
                }
                Err(error) if error.is_passing() => {}
                Err(error) => return Err(error),
            }
            sleep(POLL).await;
        }
    }
}
