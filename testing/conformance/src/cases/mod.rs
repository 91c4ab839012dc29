//! The cases, by role.

pub(crate) mod audit;
pub(crate) mod graphs;
pub(crate) mod index;
pub(crate) mod jobs;
pub(crate) mod keys;
pub(crate) mod log;
pub(crate) mod others;
pub(crate) mod queue;
pub(crate) mod retention;
pub(crate) mod task_logs;
pub(crate) mod wheel_history;
pub(crate) mod wheels;
