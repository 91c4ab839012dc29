//! Jobs that could not be run, kept for a person to look at.

use async_trait::async_trait;
use pyoco_core::time::Timestamp;

use crate::StoreError;

/// Dead letters, newest last.
#[async_trait]
pub trait DeadLetters: Send + Sync {
    /// Keeps a letter. A letter with the same key MUST be kept once. `[dead-letters/once]`
    async fn publish(&self, letter: DeadLetterRecord) -> Result<(), StoreError>;

    /// How many there are. `[dead-letters/count]`
    async fn count_letters(&self) -> Result<u64, StoreError>;

    /// The newest letters, newest first. `[dead-letters/count]`
    async fn letters(&self, limit: usize) -> Result<Vec<DeadLetterRecord>, StoreError>;
}

/// A dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetterRecord {
    /// Makes a repeat recognisable, e.g. the execution and the record that ended it.
    pub key: String,
    /// The tag of the job, as text: it may be one that no job could have.
    pub tag: String,
    /// When.
    pub at: Timestamp,
    /// The letter in the contract's JSON form.
    pub body: Vec<u8>,
}
