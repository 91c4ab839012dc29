//! One program under several names: it does what the name says that it was called by.
//!
//! The Python package and the container carry `pyoco-server` once and call it by the names of the others, which hold the same code for the
//! most part. Not here: what the programs do.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use crate::{admin, bootstrap, client, serve};

/// Does what the program of the name in the first argument does; by any other name it is `pyoco-server`.
pub fn main(arguments: Vec<OsString>) -> ExitCode {
    let called =
        arguments.first().and_then(|path| Path::new(path).file_name()).and_then(|name| name.to_str());
    match called {
        Some("pyoco-worker") => serve::worker(arguments),
        Some("pyoco-client") => client::main(arguments),
        Some("pyoco-server-admin") => admin::main(arguments),
        Some("nats-bootstrap") => bootstrap::main(arguments),
        Some(_) | None => serve::server(arguments),
    }
}
