//! Checks a flow.yaml: prints its plan as JSON, or what is wrong with it and where.
//! `cargo run -p pyoco-flow --example check -- examples/hello/flow.yaml`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a tool that talks to a person")]

use std::process::ExitCode;

use pyoco_flow::{Limits, Loaded, parse};

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: check FLOW.yaml");
        return ExitCode::from(2);
    };
    let source = match std::fs::read(&path) {
        Ok(source) => source,
        Err(error) => {
            eprintln!("{path}: {error}");
            return ExitCode::FAILURE;
        }
    };
    let plan =
        parse(&source, Limits::default()).and_then(|workflow| workflow.compile("main", &Loaded::default()));
    match plan.map(|plan| serde_json::to_string_pretty(&plan)) {
        Ok(Ok(json)) => println!("{json}"),
        Ok(Err(error)) => eprintln!("{path}: {error}"),
        Err(error) => {
            eprintln!("{}", error.render(&path, &String::from_utf8_lossy(&source)));
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
