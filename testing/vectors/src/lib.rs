//! Golden cases of the original, run through our compiler and state machine with real Python tasks.
//!
//! Each vector is loaded (`vector`), compiled (`load`), driven to its end by an in-memory worker (`driver`)
//! whose task bodies run in a Python process (`host`, `host.py`), and compared with what the original did
//! (`check`), after our own decisions were written over it (`decisions`).
//!
//! Not here: a queue, a store, a server. The log is a list of records in memory, and it is folded again
//! after every record.

mod base64;
pub mod check;
pub mod decisions;
mod driver;
mod execution;
mod folder;
mod host;
mod load;
mod pool;
mod run;
mod task;
pub mod vector;

pub use driver::{Outcome, drive};
pub use load::Source;
pub use pool::judge_all;
pub use run::{Moment, Run};

/// Why a vector could not be run at all. A vector that runs and ends otherwise than expected is a mismatch.
pub type Broken = String;
