//! Which messages this store has put into the queue, so that they can be taken out again.

use pyoco_core::digest::Digest;
use pyoco_core::ids::{ExecutionId, Tag};

use crate::recent::Recent;

/// Executions that are remembered. A message of one that was forgotten is delivered and found to be unwanted.
const MOST: usize = 50_000;

/// A message that was put into the queue.
#[derive(Debug, Clone)]
pub(super) struct SentJob {
    pub(super) tag: Tag,
    pub(super) sequence: u64,
    digest: Digest,
}

impl SentJob {
    /// Whether this is what the message said.
    pub(super) fn is(&self, body: &[u8]) -> bool {
        Digest::of_bytes(body) == self.digest
    }
}

/// The messages of each execution.
#[derive(Debug)]
pub(super) struct Sent(Recent<ExecutionId, Vec<SentJob>>);

impl Default for Sent {
    fn default() -> Self {
        Self(Recent::new(MOST))
    }
}

impl Sent {
    pub(super) fn note(&self, execution: ExecutionId, tag: Tag, sequence: u64, body: &[u8]) {
        let mut messages = self.forget(&execution);
        messages.push(SentJob { tag, sequence, digest: Digest::of_bytes(body) });
        self.0.put(execution, messages);
    }

    /// The messages of an execution, which nobody asks for a second time.
    pub(super) fn forget(&self, execution: &ExecutionId) -> Vec<SentJob> {
        self.0.remove(execution).unwrap_or_default()
    }
}
