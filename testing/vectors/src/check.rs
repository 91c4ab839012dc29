//! Compares what a run did with what a vector expects, and says every difference.

use std::fmt;

use serde_json::{Map, Value, json};

use crate::base64;
use crate::run::Run;

/// One difference.
#[derive(Debug, Clone, PartialEq)]
pub struct Mismatch {
    /// Where, as a path inside `expect`.
    pub field: String,
    /// What the vector says.
    pub expected: Value,
    /// What we did.
    pub got: Value,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}, got {}", self.field, self.expected, self.got)
    }
}

/// What a run has to show, and where it need not.
#[derive(Debug, Clone, Default)]
pub struct Expectation {
    /// The fields of `expect`.
    pub fields: Map<String, Value>,
    /// Paths that are not compared.
    pub exempt: Vec<String>,
}

/// Fields that are compared as they stand.
const PLAIN: [&str; 12] = [
    "run_status",
    "tasks",
    "results",
    "outputs",
    "scratch",
    "params_after",
    "snapshot_params_after",
    "call_counts",
    "calls",
    "records",
    "logs",
    "peak",
];

/// Fields that say how to read the others.
const NOTES: [&str; 6] = ["phase", "raises", "error_kind", "error_contains", "error_strict", "check"];

/// Compares a run with what is expected of it.
pub fn run(expectation: &Expectation, run: &Run) -> Vec<Mismatch> {
    let observed = run.observed();
    let mut differences = Differences {
        exempt: &expectation.exempt,
        strict: is_strict(&expectation.fields),
        found: Vec::new(),
    };
    for (field, expected) in &expectation.fields {
        match field.as_str() {
            "error" => differences.error("error", expected, &observed["error"]),
            "order" => differences.order(expected, run),
            "timing" => differences.timing(expected, run),
            "artifacts" => differences.artifacts(expected, run),
            field if PLAIN.contains(&field) => differences.compare(field, expected, &observed[field]),
            field if NOTES.contains(&field) => {}
            unknown => differences.note(unknown, &json!("a field we know"), &json!("an unknown field")),
        }
    }
    differences.found
}

/// Compares a refusal with the message that is expected of it.
pub fn refusal(expectation: &Expectation, message: &str) -> Vec<Mismatch> {
    let fields = &expectation.fields;
    let mut found = Vec::new();
    if !matches!(fields.get("phase").and_then(Value::as_str), Some("build" | "config")) {
        found.push(Mismatch { field: "phase".to_owned(), expected: json!("it runs"), got: json!(message) });
    }
    let contains = fields.get("error_contains").and_then(Value::as_str).unwrap_or_default();
    if is_strict(fields) && !message.contains(contains) {
        found.push(Mismatch {
            field: "error_contains".to_owned(),
            expected: json!(contains),
            got: json!(message),
        });
    }
    found
}

/// Whether error texts are pyoco's own; the interpreter's are not compared.
fn is_strict(fields: &Map<String, Value>) -> bool {
    fields.get("error_strict").and_then(Value::as_bool).unwrap_or(true)
}

struct Differences<'a> {
    exempt: &'a [String],
    strict: bool,
    found: Vec<Mismatch>,
}

impl Differences<'_> {
    fn note(&mut self, field: &str, expected: &Value, got: &Value) {
        self.found.push(Mismatch { field: field.to_owned(), expected: expected.clone(), got: got.clone() });
    }

    fn is_exempt(&self, path: &str) -> bool {
        self.exempt.iter().any(|exempt| exempt == path)
    }

    /// An error text, or at least that there is one.
    fn error(&mut self, path: &str, expected: &Value, got: &Value) {
        if self.strict || expected.is_null() || got.is_null() {
            self.compare(path, expected, got);
        }
    }

    fn compare(&mut self, path: &str, expected: &Value, got: &Value) {
        if self.is_exempt(path) || is_same(expected, got) {
            return;
        }
        match (expected, got) {
            (Value::Object(expected), Value::Object(got)) => {
                let only_got = got.iter().filter(|(key, _)| !expected.contains_key(*key));
                for (key, value) in only_got {
                    self.compare(&format!("{path}.{key}"), &json!({"$absent": true}), value);
                }
                for (key, value) in expected {
                    let inner = format!("{path}.{key}");
                    match got.get(key) {
                        Some(got) if is_record_error(&inner) => self.error(&inner, value, got),
                        Some(got) => self.compare(&inner, value, got),
                        None if self.is_exempt(&inner) => {}
                        None => self.note(&inner, value, &json!({"$absent": true})),
                    }
                }
            }
            _ => self.note(path, expected, got),
        }
    }

    fn order(&mut self, expected: &Value, run: &Run) {
        for rule in expected.as_array().into_iter().flatten() {
            let pairs =
                rule.get("any_of").and_then(Value::as_array).map_or_else(|| vec![rule.clone()], Clone::clone);
            if !pairs.iter().any(|pair| holds(pair, run)) {
                let moments: Vec<String> =
                    run.moments.iter().map(|(task, moment)| format!("{task}.{}", moment.name())).collect();
                self.note("order", rule, &json!(moments));
            }
        }
    }

    fn timing(&mut self, expected: &Value, run: &Run) {
        for (task, least) in expected["min_duration_ms"].as_object().into_iter().flatten() {
            let got = run.duration_ms(task);
            if least.as_f64() > got {
                self.note(&format!("timing.min_duration_ms.{task}"), least, &json!(got));
            }
        }
        let elapsed = run.elapsed();
        if expected["min_elapsed_s"].as_f64().is_some_and(|least| Some(least) > elapsed) {
            self.note("timing.min_elapsed_s", &expected["min_elapsed_s"], &json!(elapsed));
        }
    }

    fn artifacts(&mut self, expected: &Value, run: &Run) {
        for (name, artifact) in expected.as_object().into_iter().flatten() {
            let path = format!("artifacts.{name}");
            let Some(saved) = run.artifacts.get(name) else {
                self.note(&path, artifact, &Value::Null);
                continue;
            };
            self.compare(&format!("{path}.type"), &artifact["type"], &json!(saved.kind));
            self.compare(&format!("{path}.path"), &artifact["path"], &json!(saved.path));
            let text = artifact["text"].as_str().map(|text| text.as_bytes().to_vec());
            let content = text.or_else(|| base64::decode(artifact["base64"].as_str()?));
            if content.as_ref() != Some(&saved.bytes) {
                self.note(&path, artifact, &json!(String::from_utf8_lossy(&saved.bytes)));
            }
        }
    }
}

/// `{"$repr": text}` is a value that a record can only show as that text.
fn is_same(expected: &Value, got: &Value) -> bool {
    expected == got || expected.get("$repr").is_some_and(|text| text == got)
}

fn is_record_error(path: &str) -> bool {
    path.starts_with("records.") && path.ends_with(".error")
}

fn holds(pair: &Value, run: &Run) -> bool {
    let position = |index: usize| run.position(pair.get(index)?.as_str()?);
    match (position(0), position(1)) {
        (Some(first), Some(second)) => first < second,
        (_, _) => false,
    }
}
