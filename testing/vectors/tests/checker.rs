//! The comparison itself: every field that a vector can expect is really compared.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use pyoco_vectors::check::{self, Expectation};
use pyoco_vectors::decisions::{Verdict, verdict};
use pyoco_vectors::vector::{Vector, open};
use pyoco_vectors::{Outcome, Run, Source, run_alone};
use serde_json::{Value, json};

async fn ran(name: &str) -> (Vector, Run) {
    let vector = open("run").unwrap().into_iter().find(|vector| vector.name == name).unwrap();
    match run_alone(&vector).await.unwrap() {
        Outcome::Ran(run) => (vector, *run),
        Outcome::Refused(message) => panic!("{message}"),
    }
}

/// The paths that differ when one field of the expectation is another one.
fn differences(vector: &Vector, run: &Run, field: &str, pointer: &str, other: Value) -> Vec<String> {
    let mut fields = vector.expect.clone().unwrap();
    *fields[field].pointer_mut(pointer).unwrap() = other;
    let expectation = Expectation { fields, exempt: Vec::new() };
    check::run(&expectation, run).into_iter().map(|mismatch| mismatch.field).collect()
}

#[tokio::test]
async fn a_run_that_matches_has_no_differences() {
    let (vector, run) = ran("logs-both-streams").await;
    let expectation = Expectation { fields: vector.expect.unwrap(), exempt: Vec::new() };
    assert_eq!(check::run(&expectation, &run), []);
}

#[tokio::test]
async fn each_expected_field_is_compared() {
    let (vector, run) = ran("logs-both-streams").await;
    let cases = [
        ("run_status", "", json!("FAILED"), "run_status"),
        ("error", "", json!("boom"), "error"),
        ("tasks", "/a", json!("FAILED"), "tasks.a"),
        ("results", "/b", json!(2), "results.b"),
        ("outputs", "/b", json!("1"), "outputs.b"),
        ("outputs", "", json!({"a": null}), "outputs.b"),
        ("call_counts", "/a", json!(2), "call_counts.a"),
        ("records", "/a/state", json!("FAILED"), "records.a.state"),
        ("records", "/a/has_traceback", json!(true), "records.a.has_traceback"),
        ("records", "/b/inputs", json!({"x": 1}), "records.b.inputs.x"),
        ("records", "/b/has_ended", json!(false), "records.b.has_ended"),
        ("logs", "/a/1/1", json!("err 2\n"), "logs.a"),
        ("order", "/0", json!(["b.end", "a.start"]), "order"),
    ];
    for (field, pointer, other, path) in cases {
        assert_eq!(differences(&vector, &run, field, pointer, other), [path]);
    }
}

#[tokio::test]
async fn artifacts_and_timing_are_compared() {
    let (vector, run) = ran("artifacts").await;
    let found = differences(&vector, &run, "artifacts", "/note.txt/text", json!("hullo"));
    assert_eq!(found, ["artifacts.note.txt"]);
    let found = differences(&vector, &run, "artifacts", "/obj.json/type", json!("dict"));
    assert_eq!(found, ["artifacts.obj.json.type"]);
    let (vector, run) = ran("retry-exhausted").await;
    let found = differences(&vector, &run, "timing", "/min_duration_ms/a", json!(60_000));
    assert_eq!(found, ["timing.min_duration_ms.a"]);
}

#[tokio::test]
async fn an_unknown_field_is_a_difference() {
    let (vector, run) = ran("single-task").await;
    let mut fields = vector.expect.unwrap();
    fields.insert("colour".to_owned(), json!("blue"));
    let found = check::run(&Expectation { fields, exempt: Vec::new() }, &run);
    assert_eq!(found.len(), 1);
}

#[test]
fn what_we_promise_is_compared_even_where_the_vector_would_not_mind() {
    let vectors = open("run").unwrap();
    let vector = vectors.iter().find(|vector| vector.name == "cancel-task-raises").unwrap();
    let Verdict::Like(expectation) = verdict(vector, Source::Own) else { panic!("it runs") };
    assert_eq!(expectation.fields["run_status"], "CANCELLED");
    assert_eq!(expectation.exempt, Vec::<String>::new());
}
