//! Checks of the repository itself: which crate may depend on what, which technology stays in its room, how
//! long a file may grow, that every command has a file of its own, and that links of the documentation lead somewhere. Run by
//! `make test` as `cargo run -p xtask`.
//!
//! What is checked here is a rule of docs/architecture.md that the compiler cannot see.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a tool that talks to a person")]

mod commands;
mod contract;
mod files;
mod layers;
mod links;

use std::path::Path;
use std::process::ExitCode;

use cargo_metadata::MetadataCommand;

fn main() -> ExitCode {
    let metadata = match MetadataCommand::new().exec() {
        Ok(metadata) => metadata,
        Err(error) => {
            eprintln!("xtask: cargo metadata failed: {error}");
            return ExitCode::FAILURE;
        }
    };
    let root: &Path = metadata.workspace_root.as_std_path();
    let checks = [
        layers::check(&metadata),
        files::check(root),
        commands::check(root),
        contract::check(root),
        links::check(root),
    ];
    let findings: Vec<String> = checks.into_iter().flatten().collect();
    for finding in &findings {
        eprintln!("xtask: {finding}");
    }
    if findings.is_empty() {
        println!("xtask: layers, file sizes, command files, port promises and links are as they should be");
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
