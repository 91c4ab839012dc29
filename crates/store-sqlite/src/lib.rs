//! The embedded store: one folder, real tables, one writer for each of its two files, and the files of wheels beside them.
//!
//! - `open` decides which file may be opened, and makes a new one; `aside` sets a damaged file of lines aside; `connection`
//!   sets a connection up; `schema` has the tables
//! - `scratch` opens a store in a folder of its own that goes with it, for what can be made again
//! - `store` is the handle; `database` is one file at work: `writer` gathers what `command`s write into transactions and sees that
//!   they are on the disk; `pen` is the connection that it, or whoever finds it free, writes with; `readers` read beside it
//! - `log`, `queue`, `index`, `blobs`, `workers`, `dead_letters`, `task_logs`, `graphs`, `keys`: one role of `pyoco-ports` each, with
//!   its statements; the lists of the index have files of their own: `list`, `waits`, `jobs` and `labels`
//! - `wheels` has rows too, and their bytes in files beside the tables
//! - `backup` copies all of it while it is in use
//! - `health` looks at a folder and changes nothing
//! - `error` is the one mapping of SQLite's errors
//!
//! All SQL of the product is in this crate, with bound parameters only. Time is an input.

mod aside;
mod audit;
mod backup;
mod blobs;
mod command;
mod connection;
mod database;
mod dead_letters;
mod error;
mod graphs;
mod health;
mod inbox;
mod index;
mod jobs;
mod keys;
mod labels;
mod list;
mod log;
mod open;
mod pen;
mod queue;
mod readers;
mod retention;
mod schema;
mod scratch;
mod store;
mod task_logs;
#[cfg(test)]
mod tests;
mod unsettled;
mod waits;
mod wheels;
mod workers;
mod writer;

pub use backup::Copied;
pub use health::{Examination, FileHealth, Listed, OpenToOthers, Overdue};
pub use open::{Check, OpenError, Options};
pub use store::SqliteStore;
