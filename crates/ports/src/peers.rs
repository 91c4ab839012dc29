//! What others do on the same store: our own processes, and other implementations, which know a run by its snapshot alone.

use async_trait::async_trait;
use pyoco_core::ids::{ExecutionId, Version};
use pyoco_core::time::Timestamp;
use serde_json::Value;

use crate::StoreError;

/// Snapshots that others write. A store that nobody else can write to has nothing to tell, which is what the defaults say.
#[async_trait]
pub trait Peers: Send + Sync {
    /// Listens to one execution for as long as the listener is kept. `None` if nobody else can change it. A store that knows how old the
    /// execution is by `now` need not look for what was written before.
    async fn listen(
        &self,
        _execution: &ExecutionId,
        _now: Timestamp,
    ) -> Result<Option<Box<dyn Listening>>, StoreError> {
        Ok(None)
    }

    /// What the snapshot of an execution says now; nothing if there is none.
    async fn snapshot(&self, _execution: &ExecutionId) -> Result<Option<News>, StoreError> {
        Ok(None)
    }

    /// The snapshot of an execution as it stands there, whoever wrote it; nothing if there is none.
    async fn snapshot_body(&self, _execution: &ExecutionId) -> Result<Option<Value>, StoreError> {
        Ok(None)
    }

    /// The log has taken in a foreign snapshot, or has a reason not to: a row that is published takes its place from now on.
    fn settle(&self, _execution: &ExecutionId, _revision: u64) {}
}

/// Hears what is written about one execution.
#[async_trait]
pub trait Listening: Send {
    /// The next thing that somebody writes; nothing when the store is closed. May be dropped and called again. It is a hint: it may
    /// come twice, and what it says is decided by the log.
    async fn next(&mut self) -> Option<Heard>;
}

/// Somebody has written the snapshot of an execution.
#[derive(Debug, Clone, PartialEq)]
pub struct Heard {
    /// Of which.
    pub execution: ExecutionId,
    /// What it says.
    pub news: News,
}

/// What a snapshot says.
#[derive(Debug, Clone, PartialEq)]
pub enum News {
    /// One of us has written it: the log is at this version, or later.
    Ours(Version),
    /// Another implementation has written it, or has changed one of ours, e.g. to cancel. It is left alone until the log has
    /// taken it in.
    Foreign {
        /// The snapshot.
        snapshot: Value,
        /// Which one it is, for `settle`.
        revision: u64,
    },
    /// Somebody has deleted it. The log may be gone as well.
    Gone,
}
