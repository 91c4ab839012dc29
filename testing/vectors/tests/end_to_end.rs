//! Every golden run vector, end to end: over HTTP, through the engine and a SQLite file, by the worker and real Python.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use pyoco_vectors::vector::{Loader, Vector, open, read_folder};
use pyoco_vectors::{Report, Source, judge_all};

fn vectors(kind: &str, loader: Loader) -> Vec<Vector> {
    let vectors: Vec<Vector> =
        open(kind).unwrap().into_iter().filter(|vector| vector.loader == loader).collect();
    assert!(!vectors.is_empty());
    vectors
}

#[tokio::test]
async fn every_flow_of_the_server_does_what_the_original_does() -> Result<(), Report> {
    judge_all(&vectors("run", Loader::Server), Source::Own).await
}

#[tokio::test]
async fn every_flow_object_does_what_the_original_does() -> Result<(), Report> {
    judge_all(&vectors("run", Loader::FlowObject), Source::Own).await
}

#[tokio::test]
async fn every_flow_of_the_command_line_does_what_the_original_does() -> Result<(), Report> {
    judge_all(&vectors("native", Loader::Native), Source::Own).await
}

#[tokio::test]
async fn every_described_flow_does_what_the_original_does() -> Result<(), Report> {
    let all = open("run").unwrap().into_iter().chain(open("native").unwrap());
    // Those that come as Flow objects are compared with their description there.
    let is_described = |vector: &Vector| vector.ir.is_some() && vector.loader != Loader::FlowObject;
    let described: Vec<Vector> = all.filter(is_described).collect();
    assert!(!described.is_empty());
    judge_all(&described, Source::Ir).await
}

/// Vectors that are kept elsewhere: `PYOCO_VECTORS` names a folder of them.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "whoever has more vectors says here where they are")]
async fn vectors_of_another_folder_do_what_the_original_does() -> Result<(), Report> {
    match std::env::var("PYOCO_VECTORS") {
        Ok(folder) => judge_all(&read_folder(Path::new(&folder)).unwrap(), Source::Own).await,
        Err(_) => Ok(()),
    }
}
