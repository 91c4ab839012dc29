//! `pyoco-client` as its users start it: what it writes, where, and its exit code.

use std::process::{Command, Output, Stdio};

use serde_json::Value;

pub(crate) fn program(url: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pyoco-client"));
    command.args(["--server", url]).args(arguments).stdin(Stdio::null());
    command
}

pub(crate) fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Runs a command that succeeds.
#[track_caller]
pub(crate) fn done(url: &str, arguments: &[&str]) -> Output {
    let output = program(url, arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", err(&output));
    output
}

/// Runs a command that succeeds, and gives what it wrote to standard output.
#[track_caller]
pub(crate) fn said(url: &str, arguments: &[&str]) -> String {
    out(&done(url, arguments))
}

/// Runs a command that succeeds, and gives the JSON that it wrote.
#[track_caller]
pub(crate) fn ask(url: &str, arguments: &[&str]) -> Value {
    let said = said(url, arguments);
    serde_json::from_str(&said).unwrap_or_else(|_| panic!("{arguments:?}: {said}"))
}

/// Runs a command that fails with code 1 and nothing on standard output, and gives what it said.
#[track_caller]
pub(crate) fn refused(url: &str, arguments: &[&str]) -> String {
    let output = program(url, arguments).output().unwrap();
    assert_eq!((output.status.code(), out(&output).as_str()), (Some(1), ""), "{arguments:?}");
    err(&output)
}
