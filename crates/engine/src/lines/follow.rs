//! Following a log: its lines from one on, as they are written, until nothing more follows.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use pyoco_core::ids::ExecutionId;
use pyoco_core::time::Timestamp;
use pyoco_ports::LogEnd;
use tokio::sync::watch;

use super::Lines;
use super::followed::{Followed, NumberedLine};
use crate::{Engine, EngineError, Watcher};

/// Whoever ends an execution closes its log. When it dies in between nobody does, and nobody waits for longer than this.
const CLOSED_WITHIN: Duration = Duration::from_secs(2);
/// An execution that ended so long ago was closed, or never will be. Long, because its time is that of another clock.
const LONG_AGO: Duration = Duration::from_secs(60);

/// Somebody who follows a log.
pub struct LogFollower {
    engine: Engine,
    execution: ExecutionId,
    followed: Arc<Followed>,
    end: watch::Receiver<LogEnd>,
    watcher: Watcher,
    after: u64,
    /// The execution has changed, and nobody has looked whether it ended.
    has_changed: bool,
    /// The execution has ended; the log is closed by then, or never.
    closed_by: Option<tokio::time::Instant>,
}

impl std::fmt::Debug for LogFollower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogFollower").field("execution", &self.execution).finish_non_exhaustive()
    }
}

impl Engine {
    /// Follows the log of an execution from behind a line.
    pub async fn follow_log(&self, execution: &ExecutionId, after: u64) -> Result<LogFollower, EngineError> {
        let (followed, end) = self.lines.begin_to_follow(execution);
        let watcher = self.watch(execution);
        let follower = LogFollower {
            engine: self.clone(),
            execution: execution.clone(),
            followed,
            end,
            watcher,
            after,
            has_changed: true,
            closed_by: None,
        };
        // First listen, then look: nothing is missed in between.
        follower.listen().await?;
        let end = self.log_end(execution).await?;
        follower.followed.goes_to(end);
        Ok(follower)
    }
}

impl LogFollower {
    /// The next lines, as soon as there are some; `None` once nothing more follows. It may be dropped while it waits and asked
    /// again.
    pub async fn next(&mut self) -> Result<Option<Vec<NumberedLine>>, EngineError> {
        loop {
            let known = *self.end.borrow_and_update();
            if known.lines > self.after {
                let store = &*self.engine.lines.shared.store;
                let lines = self.followed.after(store, &self.execution, self.after).await?;
                if let Some((last, _)) = lines.last() {
                    self.after = *last;
                    return Ok(Some(lines));
                }
            }
            // What there was to read was read; of an execution that was removed there is nothing.
            if known.is_closed || self.watcher.is_gone() {
                return Ok(None);
            }
            if self.has_changed {
                self.look_whether_it_ended().await?;
            }
            let waited = async {
                match self.closed_by {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                // The hub keeps the sender for as long as somebody follows.
                _ = self.end.changed() => {}
                _ = self.watcher.changed(), if self.closed_by.is_none() => self.has_changed = true,
                () = waited => {
                    // A store that cannot be read is no end.
                    self.look_again().await?;
                    if self.end.borrow().lines <= self.after {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Looks whether somebody else has written without telling. Good before a sign of life, which says that all was told.
    pub async fn look_again(&self) -> Result<(), EngineError> {
        self.followed.goes_to(self.engine.log_end(&self.execution).await?);
        Ok(())
    }

    /// Whether everything was told and nothing more follows.
    pub async fn is_over(&mut self) -> Result<bool, EngineError> {
        if self.has_changed {
            self.look_whether_it_ended().await?;
        }
        let end = *self.end.borrow();
        let is_waited_for = self.closed_by.is_none_or(|at| at > tokio::time::Instant::now());
        Ok(end.lines <= self.after && (end.is_closed || !is_waited_for))
    }

    async fn look_whether_it_ended(&mut self) -> Result<(), EngineError> {
        let seen =
            self.engine.look(&self.execution, |state| (state.phase.is_terminal(), state.ended_at)).await?;
        // Not before: whoever drops this while it waits asks again.
        self.has_changed = false;
        let ended_at = match seen {
            Some((false, _)) => return Ok(()),
            Some((true, ended_at)) => ended_at,
            None => None,
        };
        let is_old = ended_at.is_none_or(|at| age(self.engine.clock.now(), at) >= LONG_AGO);
        let wait = if is_old { Duration::ZERO } else { CLOSED_WITHIN };
        self.closed_by = Some(tokio::time::Instant::now() + wait);
        Ok(())
    }

    /// Listens to other processes, once for all who follow here.
    async fn listen(&self) -> Result<(), EngineError> {
        let listen = async {
            let store = &self.engine.lines.shared.store;
            let Some(mut hearing) = store.hear_lines(&self.execution).await? else { return Ok(()) };
            let followed = self.followed.clone();
            tokio::spawn(async move {
                loop {
                    tokio::select! {
                        end = hearing.next() => match end {
                            Some(end) => followed.goes_to(end),
                            None => return,
                        },
                        () = followed.end.closed() => return,
                    }
                }
            });
            Ok(())
        };
        self.followed.listening.get_or_try_init(|| listen).await.map(|_| ())
    }
}

fn age(now: Timestamp, at: Timestamp) -> Duration {
    Duration::from_micros(u64::try_from(now.as_micros().saturating_sub(at.as_micros())).unwrap_or(0))
}

impl Drop for LogFollower {
    fn drop(&mut self) {
        self.engine.lines.end_to_follow(&self.execution);
    }
}

impl Lines {
    fn begin_to_follow(&self, execution: &ExecutionId) -> (Arc<Followed>, watch::Receiver<LogEnd>) {
        let mut followed = self.shared.followed.lock().unwrap_or_else(PoisonError::into_inner);
        let (followed, followers) = followed.entry(execution.clone()).or_default();
        *followers += 1;
        (followed.clone(), followed.end.subscribe())
    }

    /// The last one who follows a log takes it along.
    fn end_to_follow(&self, execution: &ExecutionId) {
        let mut followed = self.shared.followed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, followers)) = followed.get_mut(execution) {
            *followers -= 1;
            if *followers == 0 {
                followed.remove(execution);
            }
        }
    }
}
