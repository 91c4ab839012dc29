//! Keeping the store small: runs that ended long ago, old entries of the audit trail and old tombstones are removed, now and then.
//!
//! Every process that sweeps does it. What two of them remove at the same time is removed once.

use std::sync::Arc;
use std::time::Duration;

use pyoco_core::time::Timestamp;
use pyoco_engine::{Clock as _, Engine, EngineError, Prune};
use tokio_util::sync::CancellationToken;

use crate::{Config, SystemClock};

/// So many are removed before the process looks whether it is to end.
const AT_ONCE: usize = 1_000;
/// Old entries and tombstones go so many at a time, with a pause in between.
const SMALL: usize = 500;
const PAUSE: Duration = Duration::from_millis(20);

/// Who keeps a store small.
pub(crate) struct Keeper {
    engine: Engine,
    config: Arc<Config>,
    /// Runs that could not be removed when they were last tried.
    left: usize,
}

impl Keeper {
    pub(crate) const fn new(engine: Engine, config: Arc<Config>) -> Self {
        Self { engine, config, left: 0 }
    }

    /// Removes what is old, until it is told to stop. To be stopped half-way does no harm: the next one goes on.
    pub(crate) async fn run(mut self, stopping: CancellationToken) {
        loop {
            tokio::select! {
                () = stopping.cancelled() => return,
                () = tokio::time::sleep(self.config.retention_every) => {}
            }
            tokio::select! {
                () = stopping.cancelled() => return,
                done = self.once() => if let Err(error) = done {
                    tracing::warn!(reason = %error, "what is old could not be removed; it is tried again");
                },
            }
        }
    }

    async fn once(&mut self) -> Result<(), EngineError> {
        let now = SystemClock.now();
        // One part that cannot be done keeps nobody from the others.
        let runs = match self.config.runs_retention {
            Some(retention) => self.remove_runs(before(now, retention)).await,
            None => Ok(()),
        };
        let store = self.engine.store();
        if let Some(retention) = self.config.audit_retention {
            while store.prune_audit(before(now, retention), SMALL).await? > 0 {
                tokio::time::sleep(PAUSE).await;
            }
        }
        while store.drop_tombstones(before(now, self.config.tombstone_retention), SMALL).await? == SMALL {
            tokio::time::sleep(PAUSE).await;
        }
        runs
    }

    async fn remove_runs(&mut self, before: Timestamp) -> Result<(), EngineError> {
        let is_foreign_too = self.config.retention_foreign;
        let mut prune = Prune { before, is_foreign_too, most: AT_ONCE, after: None };
        let (mut removed, mut left) = (0, 0);
        loop {
            let pruned = self.engine.prune(&prune).await?;
            removed += pruned.removed;
            left += pruned.left;
            match pruned.next {
                Some(next) => prune.after = Some(next),
                None => break,
            }
        }
        if removed > 0 {
            tracing::info!(removed, %before, "runs that ended long ago were removed");
        }
        if left > self.left {
            tracing::warn!(
                left,
                "runs that ended long ago stay: their logs cannot be read, or others write to them"
            );
        }
        self.left = left;
        Ok(())
    }
}

fn before(now: Timestamp, retention: Duration) -> Timestamp {
    let micros = i64::try_from(retention.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_micros(now.as_micros().saturating_sub(micros))
}
