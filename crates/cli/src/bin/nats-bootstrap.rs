//! `nats-bootstrap`: looks after nats-servers.

use std::process::ExitCode;

fn main() -> ExitCode {
    pyoco_cli::bootstrap::main(std::env::args_os())
}
