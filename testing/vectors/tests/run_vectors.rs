//! Every golden run vector, through our compiler and state machine, with its real Python tasks.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::Path;

use pyoco_vectors::vector::{Loader, Vector, open, read_folder};
use pyoco_vectors::{Source, judge_all};

fn vectors(kind: &str, loader: Loader) -> Vec<Vector> {
    let vectors: Vec<Vector> =
        open(kind).unwrap().into_iter().filter(|vector| vector.loader == loader).collect();
    assert!(!vectors.is_empty());
    vectors
}

fn assert_all(vectors: &[Vector], source: Source) {
    if let Err(report) = judge_all(vectors, source) {
        panic!("{report}");
    }
}

#[test]
fn every_flow_of_the_server_does_what_the_original_does() {
    assert_all(&vectors("run", Loader::Server), Source::Own);
}

#[test]
fn every_flow_object_does_what_the_original_does() {
    assert_all(&vectors("run", Loader::FlowObject), Source::Own);
}

#[test]
fn every_flow_of_the_command_line_does_what_the_original_does() {
    assert_all(&vectors("native", Loader::Native), Source::Own);
}

#[test]
fn every_described_flow_does_what_the_original_does() {
    let all = open("run").unwrap().into_iter().chain(open("native").unwrap());
    let described: Vec<Vector> = all.filter(|vector| vector.ir.is_some()).collect();
    assert_all(&described, Source::Ir);
}

/// Vectors that are kept elsewhere: `PYOCO_VECTORS` names a folder of them.
#[test]
#[expect(clippy::disallowed_methods, reason = "whoever has more vectors says here where they are")]
fn vectors_of_another_folder_do_what_the_original_does() {
    if let Ok(folder) = std::env::var("PYOCO_VECTORS") {
        assert_all(&read_folder(Path::new(&folder)).unwrap(), Source::Own);
    }
}
