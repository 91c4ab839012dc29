//! Golden cases of the original, run end to end: HTTP, the engine, a SQLite file, the worker and real Python.
//!
//! Each vector is read (`vector`), written down as the product takes it (`submission`), submitted to a server in this
//! process and watched to its end (`stage`), and what the server, its log and its Python say of it (`run`, `calls`) is
//! compared with what the original did (`check`), after our own decisions were written over it (`decisions`). `judge`
//! does so with many.
//!
//! Not here: what a flow compiles to; `pyoco-flow` compares that with the vectors itself.

mod base64;
mod calls;
pub mod check;
pub mod decisions;
mod judge;
mod run;
mod stage;
mod submission;
pub mod vector;

pub use judge::{Report, judge_all};
pub use run::{Artifact, Moment, Run};
pub use stage::{Outcome, Stage, run_alone};
pub use submission::Source;

/// Why a vector could not be run at all. A vector that runs and ends otherwise than expected is a mismatch.
pub type Broken = String;
