//! What `/openapi.json` promises, held against a real server by schemathesis: requests that fit the description and requests that do
//! not. No answer may be a 5xx, have a status or a content type that is not described, or a body that does not fit its schema.
//!
//! `make test` installs it, pinned in `requirements.txt` here, into `.venv-schemathesis`. What it sends follows from a fixed seed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and measures its own patience"
)]

#[path = "../support/mod.rs"]
mod support;

mod explorer;
mod scene;

use serde_json::Value;

use explorer::Explorer;
use scene::Scene;
use support::Site;

/// A stream of an execution that goes on does not end, and nobody here speaks WebSocket.
const STREAMS: &str = "/(watch|events/stream|logs/stream|ws)$";
const SOCKET: &str = "/jobs/{id}/ws";
const WATCH: &str = "/runs/{run_id}/watch";
const WATCH_ALL: &str = "/runs/watch";
const BULK: &str = "/executions/bulk";
/// Nobody hits upon the bytes of a sound wheel.
const UPLOAD: &str = "POST /wheels";

/// Ids are made up, or taken from what the server answered.
#[test]
fn a_stranger_finds_no_fault_and_nothing_that_is_not_described() {
    let site = Site::new();
    let server = site.start();
    let explorer = Explorer::new(&server.url);
    let report = explorer.run(&["--max-examples", "20", "--exclude-path-regex", STREAMS]);
    assert_eq!(report.failures(), Vec::<String>::new(), "{}", report.said);
    assert!(report.is_complete() && report.cases() > 500, "{}", report.said);
}

/// Each operation is given something that it can be done with, so that it is done.
#[tokio::test]
async fn one_who_knows_what_is_there_finds_no_fault_either() {
    let site = Site::new();
    let server = site.start();
    let scene = Scene::set(&server).await;
    let explorer = Explorer::new(&server.url).knowing(&scene.given);
    let reports = tokio::task::spawn_blocking(move || {
        // The stateful phase would take the ids that are given here for those that it has found.
        let most = ["--max-examples", "12", "--phases", "examples,coverage,fuzzing", "--exclude-path", WATCH];
        let not_here = ["--exclude-path", SOCKET, "--exclude-path", BULK, "--exclude-path", WATCH_ALL];
        let most = [&most[..], &not_here].concat();
        // A watch lasts for as long as its caller says: a second each.
        let few = ["--max-examples", "3", "--mode", "positive", "--phases", "coverage,fuzzing"];
        let watch = [&few[..], &["--include-path", WATCH, "--include-path", WATCH_ALL]].concat();
        // It may end all that the others were given, so it comes last.
        let bulk = ["--max-examples", "30", "--phases", "examples,coverage,fuzzing", "--include-path", BULK];
        [explorer.run(&most), explorer.run(&watch), explorer.run(&bulk)]
    });
    let reports = reports.await.unwrap();
    for report in &reports {
        assert_eq!(report.failures(), Vec::<String>::new(), "{}", report.said);
    }
    // It has come further than the door, everywhere. A command may be taken once, so what it did is looked at.
    for report in &reports {
        let is_expected = |name: &String| scene.is_command(name) || name == UPLOAD;
        let refused: Vec<String> =
            report.never_accepted().into_iter().filter(|name| !is_expected(name)).collect();
        assert_eq!(refused, Vec::<String>::new(), "{} {}", report.said, report.rates());
    }
    assert_eq!(scene.untouched().await, Vec::<&str>::new(), "{}", reports[0].said);
    assert!(reports[0].is_complete(), "{}", reports[0].said);
}

/// These tests would say so if something was wrong: a description that leaves out a status is not kept.
#[tokio::test]
async fn a_status_that_is_not_described_is_found() {
    let site = Site::new();
    let server = site.start();
    let explorer = Explorer::new(&server.url);
    let answer = reqwest::get(format!("{}/openapi.json", server.url)).await.unwrap();
    let mut description: Value = answer.json().await.unwrap();
    let answers = description["paths"]["/runs/{run_id}"]["get"]["responses"].as_object_mut().unwrap();
    assert!(answers.remove("404").is_some());
    let only = ["--max-examples", "3", "--phases", "fuzzing", "--include-path", "/runs/{run_id}"];
    let report = tokio::task::spawn_blocking(move || explorer.run_with(&description, &only)).await.unwrap();
    let failures = report.failures();
    assert!(failures.len() == 1 && failures[0].contains("Undocumented status code"), "{failures:?}");
}
