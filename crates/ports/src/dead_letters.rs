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
    async fn letters(&self, limit: usize) -> Result<Vec<DeadLetterRecord>, StoreError> {
        Ok(self.letter_page(None, limit).await?.letters)
    }

    /// A page of letters, newest first, from behind a place on. MUST go on without repeating or leaving out a letter, also when
    /// letters of earlier pages were removed, and MUST hold no more than a page in memory. A page MAY be empty and still say where to
    /// go on. `[dead-letters/pages]`
    async fn letter_page(&self, behind: Option<u64>, limit: usize) -> Result<LetterPage, StoreError>;

    /// The letter with this key, if it is there. `[dead-letters/get]`
    async fn letter(&self, key: &str) -> Result<Option<DeadLetterRecord>, StoreError>;

    /// Takes a letter away; says whether it was there. `[dead-letters/remove]`
    async fn remove_letter(&self, key: &str) -> Result<bool, StoreError>;

    /// Takes away every letter from before an instant; says how many. Some MAY be gone when it fails. `[dead-letters/purge]`
    async fn purge_letters(&self, before: Timestamp) -> Result<u64, StoreError>;
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

/// A page of letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LetterPage {
    /// The letters, newest first.
    pub letters: Vec<DeadLetterRecord>,
    /// Where to go on, if there may be more.
    pub next: Option<u64>,
}
