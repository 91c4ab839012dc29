//! `pyoco-server` under the names of the other programs, as the Python package and the container call it.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output};

const ALL: &str = env!("CARGO_BIN_EXE_pyoco-server");
const OTHERS: [(&str, &str); 4] = [
    ("pyoco-worker", env!("CARGO_BIN_EXE_pyoco-worker")),
    ("pyoco-client", env!("CARGO_BIN_EXE_pyoco-client")),
    ("pyoco-server-admin", env!("CARGO_BIN_EXE_pyoco-server-admin")),
    ("nats-bootstrap", env!("CARGO_BIN_EXE_nats-bootstrap")),
];

/// Everything that it says, and how it ends.
fn said(command: &mut Command, argument: &str) -> (String, String, Option<i32>) {
    let Output { status, stdout, stderr } = command.arg(argument).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(stdout), text(stderr), status.code())
}

#[test]
fn by_the_name_of_another_program_it_is_that_program() {
    let folder = tempfile::tempdir().unwrap();
    for (name, program) in OTHERS {
        let link = folder.path().join(name);
        symlink(ALL, &link).unwrap();
        for argument in ["--help", "--version", "--no-such-thing"] {
            let wanted = said(&mut Command::new(program), argument);
            assert!(wanted.0.contains(name) || wanted.1.contains(name), "{wanted:?}");
            assert_eq!(said(&mut Command::new(&link), argument), wanted, "{name} {argument}");
            assert_eq!(said(Command::new(ALL).arg0(name), argument), wanted, "{name} {argument}");
        }
    }
}

#[test]
fn by_any_other_name_it_is_the_server() {
    let wanted = said(&mut Command::new(ALL), "--help");
    assert!(wanted.0.contains("check-config"), "{wanted:?}");
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("pyoco");
    symlink(Path::new(ALL), &link).unwrap();
    let renamed = said(&mut Command::new(&link), "--help");
    assert_eq!((renamed.0.contains("check-config"), renamed.2), (true, Some(0)), "{renamed:?}");
}
