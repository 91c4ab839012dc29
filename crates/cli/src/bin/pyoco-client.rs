//! `pyoco-client`: submit runs, look at them, watch them, cancel them.

use std::process::ExitCode;

fn main() -> ExitCode {
    pyoco_cli::client::main(std::env::args_os())
}
