//! The heart of pyoco: what an execution is, and every rule about it.
//!
//! Here live the commands, the 24 events, the state they fold into, the plan a flow compiles to,
//! and the three views (run, execution, job). Nothing here does I/O, reads a clock or makes a random
//! number: ids and times are inputs, so the same log folds to the same state on every machine.
//!
//! Not here: flow.yaml and its graph text (`pyoco-flow`), storage (`pyoco-ports`), anything async.

pub mod access;
mod apply;
pub mod command;
pub mod cursor;
pub mod decide;
pub mod digest;
pub mod event;
pub mod expr;
pub mod ids;
pub mod json;
pub mod kept;
pub mod notice;
pub mod outcome;
pub mod plain;
pub mod plan;
pub mod record;
pub mod state;
pub mod time;
pub mod trace;
pub mod view;
pub mod wheels;
