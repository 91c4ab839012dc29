//! How much is too much. All limits of the expression language are here.

use std::cell::Cell;

use super::error::Cause;

/// Longest text that is read, in bytes.
pub(super) const TEXT_BYTES: usize = 64 * 1024;

/// Deepest nesting of brackets, signs, `not`, `**`, conditionals and the like.
pub(super) const NESTING: usize = 64;

/// Deepest data a reference may return; what `serde_json` reads is never deeper.
pub(super) const DATA_DEPTH: usize = 128;

/// Largest integer, in bits.
pub(super) const INT_BITS: u64 = 4096;

/// Largest string or list that an operation may make, in bytes.
pub(super) const SIZE_BYTES: usize = 1024 * 1024;

/// What a value costs besides its text: the estimate behind the size of lists and the work budget.
pub(super) const VALUE_BYTES: usize = 16;

/// All bytes one evaluation may read and make. Without it a 64 KiB text could repeat a 1 MiB operation
/// thousands of times.
const WORK_BYTES: usize = 64 * 1024 * 1024;

pub(super) const INT_TOO_LARGE: Cause = Cause::Limit("integer is too large (limit 4096 bits)");
pub(super) const STR_TOO_LARGE: Cause = Cause::Limit("string is too large (limit 1 MiB)");
pub(super) const LIST_TOO_LARGE: Cause = Cause::Limit("list is too large (limit 1 MiB)");
pub(super) const DATA_TOO_DEEP: Cause = Cause::Limit("data is nested too deeply (limit 128 levels)");
const TOO_MUCH_WORK: Cause = Cause::Limit("expression reads or makes too much data (limit 64 MiB)");

/// What is left of one evaluation's work.
#[derive(Debug)]
pub(super) struct Budget(Cell<usize>);

impl Budget {
    pub(super) fn new() -> Self {
        Self(Cell::new(WORK_BYTES))
    }

    pub(super) fn charge(&self, bytes: usize) -> Result<(), Cause> {
        self.0.set(self.0.get().checked_sub(bytes).ok_or(TOO_MUCH_WORK)?);
        Ok(())
    }
}
