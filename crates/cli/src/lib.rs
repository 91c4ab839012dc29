//! The command lines. The binaries are one line each; what they do is here: arguments in, lines and exit codes out.
//!
//! `called` is all of them in one. Shared by all of them: `arguments` (clap, with errors in the contract's form), `errors` (what a person is told, and the exit
//! code), `foreground` (a command until it is done or interrupted), `output` and `table` (what goes to standard output), `past` (how
//! long ago). Not here: what a run is, or how it is stored.

pub mod admin;
pub mod arguments;
pub mod bootstrap;
pub mod called;
pub mod client;
pub mod errors;
pub mod foreground;
pub mod output;
pub mod past;
pub mod serve;
pub mod table;

/// Requests and rows are many small values that one thread makes and another drops; the allocator of the system locks for each.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
