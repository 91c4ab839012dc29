//! Where we deviate from the original on purpose, and what we do instead. The numbers are those of section 8
//! of the flow contract. A vector that is not named here, and that no rule here is about, must match.

use serde_json::{Map, Value, json};

use crate::check::Expectation;
use crate::submission::Source;
use crate::vector::{Level, Vector};

/// What we promise about a vector.
#[derive(Debug)]
pub enum Verdict {
    /// It is refused when submitted or loaded; any message will do.
    Refused,
    /// It runs (or is refused) like this.
    Like(Expectation),
    /// One of these.
    OneOf(Vec<Self>),
}

/// What we do instead, as paths inside `expect` and their values.
type Instead = Vec<(&'static str, Value)>;

/// What we promise about a vector that is read from `source`.
pub fn verdict(vector: &Vector, source: Source) -> Verdict {
    if let Some(instead) = instead(&vector.name, source) {
        let base = vector.expect.as_ref().or_else(|| vector.alternatives.first());
        return Verdict::Like(expectation(vector, base.cloned().unwrap_or_default(), instead));
    }
    let like = |fields: &Map<String, Value>| Verdict::Like(expectation(vector, fields.clone(), Vec::new()));
    let observed: Vec<Verdict> = vector.expect.iter().chain(&vector.alternatives).map(like).collect();
    if source == Source::Ir {
        // A description says what the original built, so nothing is left of the odd way to write it.
        return Verdict::OneOf(observed);
    }
    match (vector.level, vector.recommended.as_deref().unwrap_or_default()) {
        // Decision 1: what silently builds something else is refused.
        (Level::Quirk, advice) if advice.starts_with("reject") => Verdict::Refused,
        (Level::Quirk, advice) if advice.ends_with("or reject") => {
            Verdict::OneOf(observed.into_iter().chain([Verdict::Refused]).collect())
        }
        (Level::Core | Level::Quirk | Level::Optional | Level::Nondeterministic, _) => {
            Verdict::OneOf(observed)
        }
    }
}

fn expectation(vector: &Vector, mut fields: Map<String, Value>, instead: Instead) -> Expectation {
    rules(&mut fields);
    let mut exempt = vector.quirk_fields.clone();
    for (path, value) in instead {
        // What we promise is compared, also where the vector would not mind.
        exempt.retain(|field| !path.starts_with(field.as_str()) && !field.starts_with(path));
        set(&mut fields, path, value);
    }
    Expectation { fields, exempt }
}

/// Decisions that change what many vectors expect.
fn rules(fields: &mut Map<String, Value>) {
    // Decision 6: a cancelled run ends CANCELLED, also when nothing was left to cancel.
    if fields.get("run_status") == Some(&json!("CANCELLING")) {
        fields.insert("run_status".to_owned(), json!("CANCELLED"));
    }
    let tasks = fields.get("tasks").cloned().unwrap_or_default();
    for (task, record) in fields.get_mut("records").and_then(Value::as_object_mut).into_iter().flatten() {
        // Decision 3: a task that inherits a failure is FAILED in its record, too.
        if tasks[task] == "FAILED" && record["state"] == "PENDING" {
            record["state"] = json!("FAILED");
        }
        // Decision 7: after a success nothing remains of a failed attempt but its entry in `attempts`.
        if record["state"] == "SUCCEEDED" {
            record["error"] = json!(null);
            record["has_traceback"] = json!(false);
        }
    }
}

fn set(fields: &mut Map<String, Value>, path: &str, value: Value) {
    let Some((first, rest)) = path.split_once('.') else {
        fields.insert(path.to_owned(), value);
        return;
    };
    if let Some(inner) = fields.entry(first).or_insert_with(|| json!({})).as_object_mut() {
        set(inner, rest, value);
    }
}

/// The vectors that no rule covers.
fn instead(name: &str, source: Source) -> Option<Instead> {
    Some(match name {
        // Decision 3: failures are passed on to the end; the original calls the third task a deadlock.
        "isolate-then-two-stops" => vec![
            ("run_status", json!("COMPLETED")),
            ("error", json!("boom a")),
            ("tasks.c", json!("FAILED")),
            ("records.c.state", json!("FAILED")),
        ],
        // Decision 3: of what the original does one time or another, this.
        "isolate-chain" => Vec::new(),
        // Decision 4: a task that timed out stays FAILED, its late result counts nothing, nobody waits for it.
        "timeout-stop" => vec![
            ("tasks.a", json!("FAILED")),
            ("records.a.state", json!("FAILED")),
            ("records.a.error", json!("Task 'a' exceeded timeout of 0.1s")),
            ("records.a.output", json!(null)),
            ("results", json!({})),
            ("outputs", json!({})),
            ("timing", json!({"min_elapsed_s": 0.1})),
        ],
        // Decision 6: a failure while cancelling does not win; the error keeps the text.
        "cancel-task-raises" => vec![
            ("run_status", json!("CANCELLED")),
            ("tasks.b", json!("CANCELLED")),
            ("records.b.state", json!("CANCELLED")),
            ("records.b.has_ended", json!(true)),
        ],
        // Decisions 13 and 16: tasks share no process, so no task can count its neighbours; we count for it.
        "eight-workers" => vec![("peak", json!(8))],
        // Decision 15: forms with an evident meaning work.
        "task-to-list" => ran(&["a", "b", "c"], json!([["a.end", "b.start"], ["a.end", "c.start"]])),
        "three-way-and" => ran(&["a", "b", "c"], json!([])),
        // The recommendation: the outer value comes back when the inner loop has ended.
        "foreach-same-alias-nested" => vec![("scratch.b", json!(["p", "q"]))],
        // The text is refused; of its description only the number is left, which a frame shows as a number.
        "repeat-bool" if source == Source::Ir => {
            vec![("scratch.seen", json!([["repeat", "repeat", 0, 1, 1, null, null, "repeat[0]"]]))]
        }
        _ => return None,
    })
}

/// A run in which every task succeeds, in this order, where the original refused.
fn ran(tasks: &[&str], order: Value) -> Instead {
    let all =
        |value: &Value| -> Value { tasks.iter().map(|task| ((*task).to_owned(), value.clone())).collect() };
    vec![
        ("phase", json!("run")),
        ("run_status", json!("COMPLETED")),
        ("tasks", all(&json!("SUCCEEDED"))),
        ("call_counts", all(&json!(1))),
        ("error", json!(null)),
        ("order", order),
    ]
}
