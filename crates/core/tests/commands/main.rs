//! Every command: what it does, when it is refused, its repeat, and after a cancel.

mod executions;
mod idempotency;
mod joins;
mod loops;
mod nodes;
mod sweeper;
mod workers;
