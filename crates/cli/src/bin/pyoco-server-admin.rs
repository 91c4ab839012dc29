//! `pyoco-server-admin`: looks after API keys.

use std::process::ExitCode;

fn main() -> ExitCode {
    pyoco_cli::admin::main(std::env::args_os())
}
