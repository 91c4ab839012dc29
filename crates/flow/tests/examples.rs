//! The examples of the repository and of its documentation compile.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

use std::path::Path;

use pyoco_flow::{Limits, Loaded, parse};

fn compiles(source: &str) {
    let workflow = parse(source.as_bytes(), Limits::default())
        .unwrap_or_else(|e| panic!("{}", e.render("flow.yaml", source)));
    workflow
        .compile("main", &Loaded::default())
        .unwrap_or_else(|e| panic!("{}", e.render("flow.yaml", source)));
}

#[test]
fn the_hello_example_compiles() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/hello/flow.yaml");
    compiles(&std::fs::read_to_string(path).unwrap());
}

#[test]
fn the_flow_of_the_readme_compiles() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = std::fs::read_to_string(path).unwrap();
    let (_, rest) = readme.split_once("```yaml\n").unwrap();
    compiles(rest.split_once("```").unwrap().0);
}
