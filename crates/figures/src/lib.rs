//! What a process has done, counted: how often, how long, how many. Prometheus reads it as text.
//!
//! - `table` names every figure there is, once: its kind, its labels, what it means. The reference in docs/metrics.md is made of it
//! - `figures` counts: one method for each thing that happens, called by whoever does it
//! - `process` is what the system knows about this process; `text` is the form that Prometheus reads
//!
//! Nothing is global: two servers in one process count apart. Counting costs an atomic addition and, where there are labels, a
//! look into a table. No label has an id or a tenant in it; flows, which people name, are at most a hundred.

mod figures;
mod process;
mod stopwatch;
pub mod table;
mod text;

pub use figures::{Figures, Open, Stream};
pub use stopwatch::Stopwatch;
pub use text::Sheet;
