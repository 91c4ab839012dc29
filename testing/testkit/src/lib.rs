//! What tests share: small plans, an execution that is driven step by step, and given/when/then.
//!
//! Every accepted step is sealed into a record and the whole log is folded again, so each test that uses an
//! `Execution` also shows that the fold of the log equals the live state.

mod execution;
mod plans;
mod requests;

pub use execution::{Execution, When};
pub use plans::{Graph, callable, external, wait};
pub use requests::*;
