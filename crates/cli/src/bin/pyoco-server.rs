//! `pyoco-server`: everything in one process.

use std::process::ExitCode;

fn main() -> ExitCode {
    pyoco_cli::serve::server(std::env::args_os().collect())
}
