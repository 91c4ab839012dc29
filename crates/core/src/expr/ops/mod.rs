//! What the operators do, by Python's rules.

mod arithmetic;
mod compare;
mod format;
mod format_number;

pub(super) use arithmetic::{apply, power, sign};
pub(super) use compare::holds;
