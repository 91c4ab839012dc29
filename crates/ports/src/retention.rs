//! Retention: finished executions are removed when they have been kept for long enough, and a tombstone stays for a while so that a
//! repeated submission is still recognised.

use async_trait::async_trait;
use pyoco_core::digest::Digest;
use pyoco_core::ids::{ExecutionId, Version};
use pyoco_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::StoreError;

/// Removing executions for good.
#[async_trait]
pub trait Retention: Send + Sync {
    /// Removes everything of executions: row, snapshot, waiting job, lines, events, and blobs that only they use. Says which are gone.
    ///
    /// - Each MUST leave its tombstone, which MUST be there before anything is removed and MUST survive a loss of power. One that is
    ///   there already stays as it is. `[retention/remove]`
    /// - MUST leave alone one whose log has another version: somebody has written since. `[retention/changed]`
    /// - MAY be repeated, also after it was left half-way, and MUST then remove the rest. The row MUST be the last to go, so that what
    ///   is left half-way is found. `[retention/again]`
    /// - A blob that another execution uses MUST stay. `[retention/blobs]`
    /// - MUST NOT hold up commands to other executions for longer than a short write does.
    async fn remove(&self, removals: Vec<Removal>) -> Result<Vec<ExecutionId>, StoreError>;

    /// What is left of an execution that was removed. `[retention/remove]`
    async fn tombstone(&self, execution: &ExecutionId) -> Result<Option<Tombstone>, StoreError>;

    /// Takes away tombstones from before an instant, the oldest first and at most so many; says how many. `[retention/tombstones]`
    async fn drop_tombstones(&self, before: Timestamp, most: usize) -> Result<usize, StoreError>;
}

/// An execution that is to be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    /// What stays.
    pub tombstone: Tombstone,
    /// The version of its log; 0 if it has none, or none any more.
    pub version: Version,
}

/// What is left of an execution that was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tombstone {
    /// Which.
    pub execution: ExecutionId,
    /// When it was removed.
    pub at: Timestamp,
    /// The fingerprint of its submission, if that can be repeated.
    pub digest: Option<Digest>,
}
