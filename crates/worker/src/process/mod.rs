//! Processes that run tasks: a group that ends as one, the lines it writes, and tasks that are commands.
//!
//! What a Python task is, and how a warm process runs many of them, stands in `python`.

mod command;
mod group;
mod lines;

pub use command::CommandRuntime;
pub(crate) use command::{visible, with_wheels};
pub(crate) use group::{Group, how_it_ended};
pub(crate) use lines::{Pipe, Scribe, TaskLines, pipe};
