//! `pyoco-server`: everything in one process. Called by the name of another program, it is that one.

use std::process::ExitCode;

fn main() -> ExitCode {
    pyoco_cli::called::main(std::env::args_os().collect())
}
