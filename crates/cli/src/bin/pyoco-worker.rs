//! `pyoco-worker`: a worker of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    pyoco_cli::serve::worker(std::env::args_os().collect())
}
