//! Pieces that no description names: of an upload whose process died, or of a wheel whose pieces could not be taken away in time.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use pyoco_core::time::{Millis, Timestamp};
use pyoco_ports::StoreError;
use serde::Deserialize;
use serde_json::Value;

use super::{SWEEP, Shelf, object};
use crate::error::Refusal;

/// An upload that has stored nothing for so long is over. A gateway looks as often.
const DAY: Duration = Duration::from_secs(24 * 3_600);
/// The pause after a look that failed.
const AGAIN: Duration = Duration::from_secs(60);

impl Shelf {
    /// Sweeps at once and then every day, until the store is closed.
    pub(crate) fn keep_tidy(self: &Arc<Self>) {
        let shelf = Arc::clone(self);
        tokio::spawn(async move {
            let closing = shelf.connection.closing().clone();
            loop {
                let pause = match closing.run_until_cancelled(shelf.sweep(DAY)).await {
                    Some(Err(error)) => {
                        tracing::warn!(%error, "pieces of wheels that never came were not swept up");
                        AGAIN
                    }
                    Some(Ok(_)) | None => DAY,
                };
                if closing.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
                    return;
                }
            }
        });
    }

    /// Takes away pieces that belong to no wheel, of uploads that have stored nothing for so long; says of how many uploads.
    pub(super) async fn sweep(&self, older_than: Duration) -> Result<usize, StoreError> {
        let Some(now) = self.now().await? else { return Ok(0) };
        // First the pieces, then the descriptions: what is described in between is seen.
        let pieces = self.connection.subjects(SWEEP, &self.stream, &self.settings.all_wheel_chunks()).await?;
        let described: HashSet<String> = self
            .look(SWEEP)
            .await?
            .objects
            .iter()
            .filter_map(object::nuid)
            .map(|nuid| self.settings.wheel_chunks(&nuid))
            .collect();
        let age = Millis(u64::try_from(older_than.as_millis()).unwrap_or(u64::MAX));
        let mut swept = 0;
        for subject in pieces.unwrap_or_default() {
            if described.contains(&subject) {
                continue;
            }
            let Some(last) = self.connection.last(SWEEP, &self.stream, &subject).await? else { continue };
            if last.time.after(age) > now {
                continue;
            }
            // Not one that comes now.
            let end = last.sequence.saturating_add(1);
            let purged = self.connection.purge(SWEEP, &self.stream, &subject, Some(end)).await?;
            tracing::info!(subject, pieces = purged, "pieces of a wheel that never came were swept up");
            swept += 1;
        }
        Ok(swept)
    }

    /// The time of the server, which also says when a piece was stored; `None` if there is no bucket.
    async fn now(&self) -> Result<Option<Timestamp>, StoreError> {
        #[derive(Deserialize)]
        struct Told {
            ts: Option<Timestamp>,
        }
        match self.connection.ask::<Told>(SWEEP, &format!("STREAM.INFO.{}", self.stream), &Value::Null).await
        {
            Ok(told) => Ok(told.ts),
            Err(error) if error.is(Refusal::NO_STREAM) => Ok(None),
            Err(error) => Err(error.into_store(SWEEP)),
        }
    }
}
