//! Replay is for ever: logs that an earlier version wrote still fold to what it showed.
//!
//! The files under golden/v1 are never rewritten. A new case is added with `ADD_GOLDEN=1`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    clippy::needless_pass_by_value,
    reason = "a test stops at the first surprise"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyoco_core::command::{Command, ForeignStatus, Issuer};
use pyoco_core::event::Choice;
use pyoco_core::expr::Expression;
use pyoco_core::ids::ExecutionId;
use pyoco_core::json::Json;
use pyoco_core::plan::{JoinPolicy, Kind, Policy};
use pyoco_core::state::State;
use pyoco_core::time::Millis;
use pyoco_core::view::{ExecutionView, JobView, RunSnapshot};
use pyoco_testkit::*;
use serde_json::{Value, json};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/v1")
}

fn views(state: &State) -> Value {
    json!({
        "run": RunSnapshot::of(state, None),
        "execution": ExecutionView::of(state),
        "job": JobView::of(state),
    })
}

fn chain(steps: Vec<(Issuer, Command)>, begun: Execution) -> Execution {
    steps.into_iter().fold(begun, |execution, (issuer, command)| execution.given(&issuer, command))
}

/// One history of every kind that the product can write.
fn histories() -> Vec<(&'static str, Execution)> {
    let w = worker(1);
    let run = |id: &str| {
        vec![(worker(1), start_node(id).into()), (worker(1), succeed(id, json!({"from": id})).into())]
    };
    let diamond = Graph::new()
        .task("s", callable())
        .task("l", callable())
        .task("r", callable())
        .task("end", callable())
        .edge("s", "l")
        .edge("s", "r")
        .edge("l", "end")
        .edge("r", "end")
        .join("end", JoinPolicy::AnySuccess)
        .plan();
    let completed = chain([run("s"), run("l"), run("r"), run("end")].concat(), Execution::claimed(&diamond));
    let retry = Policy { retries: 1, retry_delay: Millis(100), ..Policy::default() };
    let retried = Execution::claimed(&Graph::new().task_with("a", callable(), retry).plan());
    let retried =
        chain(vec![(w.clone(), start_node("a").into()), (w.clone(), fail("a", "first").into())], retried);
    let failed = chain(
        vec![
            (w.clone(), start_node("a").into()),
            (w.clone(), fail("a", "second").into()),
            (caller(), archive().into()),
        ],
        retried.later(Millis(200)),
    );
    let canceled = chain(
        vec![
            (w.clone(), start_node("a").into()),
            (caller(), cancel().into()),
            (w.clone(), confirm_stopped("a").into()),
            (caller(), add_label("late").into()),
        ],
        Execution::claimed(&Graph::chain(&["a", "b"], &callable()).plan()),
    );
    let approval = Graph::new().task("ask", wait("k")).task("go", external()).edge("ask", "go").plan();
    let approved = chain(
        vec![(caller(), resume("ask", "k").into()), (caller(), start_node("go").into())],
        Execution::started(&approval),
    );
    let body = Graph::new().task("each", callable()).block();
    let over = Expression::parse("$ctx.params.items").unwrap();
    let kind = Kind::ForEach { over, item: Some("x".to_owned()), index: None, body };
    let looped = Graph::new().task("each", callable()).node("loop", kind).edge("each", "loop").plan();
    let items = Choice::Items(Arc::new(vec![Json(json!("p")), Json(json!("q"))]));
    let looped = chain(
        [
            run("each"),
            vec![(w.clone(), choose("loop", items).into())],
            run("loop/1/each"),
            run("loop/2/each"),
        ]
        .concat(),
        Execution::claimed(&looped),
    );
    let foreign = Issuer::Foreign { id: None };
    let imported = chain(
        vec![
            (foreign.clone(), import(ForeignStatus::Running).into()),
            (foreign, import(ForeignStatus::Completed).into()),
        ],
        Execution::new(),
    );
    let taken_over = chain(
        vec![
            (w, start_node("a").into()),
            (worker(0), claim("job-1", None).into()),
            (worker(2), drain().into()),
        ],
        Execution::claimed(&Graph::chain(&["a"], &callable()).plan()),
    );
    vec![
        ("approved", approved),
        ("canceled", canceled),
        ("completed", completed),
        ("failed", failed),
        ("imported", imported),
        ("looped", looped),
        ("taken-over", taken_over),
    ]
}

#[test]
fn stored_logs_fold_to_what_was_shown() {
    if std::env::var_os("ADD_GOLDEN").is_some() {
        add_missing();
    }
    let mut replayed = 0;
    for entry in std::fs::read_dir(folder()).expect("golden logs") {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            let log = std::fs::read_to_string(&path).unwrap();
            let state = State::from_log(ExecutionId::new("e-1").unwrap(), log.lines().map(str::as_bytes));
            let state = state.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let stored = std::fs::read_to_string(path.with_extension("json")).unwrap();
            let stored: Value = serde_json::from_str(&stored).unwrap();
            still_shown(&views(&state), &stored, &path.display().to_string());
            replayed += 1;
        }
    }
    assert!(replayed >= 7, "the golden logs are there");
}

#[test]
fn todays_histories_are_those_that_are_stored() {
    for (name, execution) in histories() {
        let stored = std::fs::read_to_string(folder().join(format!("{name}.jsonl"))).expect("a golden log");
        let written: Vec<&str> =
            execution.log().iter().map(|bytes| std::str::from_utf8(bytes).unwrap()).collect();
        assert_eq!(
            written,
            stored.lines().collect::<Vec<_>>(),
            "{name}: new records differ from those of format 1"
        );
    }
}

/// A view may gain members; what was shown once is shown for ever.
fn still_shown(shown: &Value, stored: &Value, at: &str) {
    match (shown, stored) {
        (Value::Object(shown), Value::Object(stored)) => {
            for (name, value) in stored {
                let now = shown.get(name).unwrap_or_else(|| panic!("{at}.{name} is shown no longer"));
                still_shown(now, value, &format!("{at}.{name}"));
            }
        }
        (Value::Array(shown), Value::Array(stored)) => {
            assert_eq!(shown.len(), stored.len(), "{at}");
            shown.iter().zip(stored).for_each(|(now, value)| still_shown(now, value, at));
        }
        (shown, stored) => assert_eq!(shown, stored, "{at}"),
    }
}

fn add_missing() {
    std::fs::create_dir_all(folder()).unwrap();
    for (name, execution) in histories() {
        let path = folder().join(format!("{name}.jsonl"));
        if !path.exists() {
            let lines: Vec<&str> =
                execution.log().iter().map(|bytes| std::str::from_utf8(bytes).unwrap()).collect();
            std::fs::write(&path, lines.join("\n") + "\n").unwrap();
            let shown = serde_json::to_string_pretty(&views(execution.state())).unwrap();
            std::fs::write(path.with_extension("json"), shown + "\n").unwrap();
        }
    }
}
