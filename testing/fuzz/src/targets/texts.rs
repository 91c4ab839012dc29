//! What people and programs write as text: cursors, traces, expressions, flows and parameters.

use std::path::Path;

use pyoco_core::cursor::Cursor;
use pyoco_core::expr::{Expression, Scope};
use pyoco_core::ids::ExecutionId;
use pyoco_core::json::{self, Limits as JsonLimits};
use pyoco_core::plan::Plan;
use pyoco_core::time::Timestamp;
use pyoco_core::trace::TraceContext;
use pyoco_flow::{Limits, Loaded, parse, parse_native, read_parameters};
use serde_json::{Value, json};

fn vectors(path: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../vectors/open").join(path);
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn member(cases: &Value, name: &str) -> Vec<Vec<u8>> {
    let cases = cases.as_array().unwrap().iter();
    cases.filter_map(|case| Some(case[name].as_str()?.as_bytes().to_vec())).collect()
}

/// Every golden case of a folder.
fn folder(name: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../vectors/open").join(name);
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let read = |file: &std::path::PathBuf| -> Value {
        serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
    };
    files.iter().map(read).collect()
}

pub(super) fn cursors() -> Vec<Vec<u8>> {
    let id = ExecutionId::new("e-1").unwrap();
    let micros = [0, 1, 1_700_000_000_123_456, 253_402_300_799_000_000];
    let cursors = micros.map(|at| Cursor { updated_at: Timestamp::from_micros(at), id: id.clone() });
    cursors.iter().map(|cursor| cursor.encode().into_bytes()).collect()
}

pub(super) fn cursor(bytes: &[u8]) -> bool {
    let Ok(cursor) = Cursor::decode(&String::from_utf8_lossy(bytes)) else { return false };
    assert_eq!(Cursor::decode(&cursor.encode()), Ok(cursor));
    true
}

pub(super) fn traceparent(bytes: &[u8]) -> bool {
    let Some(trace) = TraceContext::parse(&String::from_utf8_lossy(bytes)) else { return false };
    assert_eq!(TraceContext::parse(&trace.to_string()), Some(trace));
    true
}

/// What an expression can see here.
struct Seen(Value);

impl Scope for Seen {
    fn ctx(&self, root: &str) -> Option<&Value> {
        self.0.get(root)
    }

    fn env(&self, name: &str) -> Option<&str> {
        (name == "HOME").then_some("/home")
    }
}

pub(super) fn expressions() -> Vec<Vec<u8>> {
    member(&vectors("expr.json"), "expr")
}

pub(super) fn expression(bytes: &[u8]) -> bool {
    let Ok(expression) = Expression::parse(&String::from_utf8_lossy(bytes)) else { return false };
    assert_eq!(Expression::parse(expression.text()).as_ref(), Ok(&expression));
    let seen = Seen(json!({
        "params": {"n": 3, "s": "abc", "items": [1, 2, 3], "d": {"k": {"z": 9}}, "t": true, "nil": null, "pi": 3.5},
        "results": {"a": 10}, "scratch": {"x": 0}, "artifacts": {}, "loop": null, "loops": [],
    }));
    // It has a value or a reason; the same each time.
    let value = expression.eval(&seen);
    assert_eq!(format!("{value:?}"), format!("{:?}", expression.eval(&seen)));
    true
}

pub(super) fn flows() -> Vec<Vec<u8>> {
    let mut all = member(&vectors("yaml.json"), "yaml");
    all.extend(member(&folder("run"), "flow_yaml"));
    all.extend(member(&folder("native"), "flow_yaml"));
    all
}

pub(super) fn flow_yaml(bytes: &[u8]) -> bool {
    let mut was_read = false;
    for read in [parse, parse_native] {
        match read(bytes, Limits::default()) {
            Ok(flow) => {
                was_read = true;
                if let Ok(plan) = flow.compile("main", &Loaded::default()) {
                    comes_back(&plan);
                }
            }
            Err(error) => {
                assert!(!error.render("flow.yaml", &String::from_utf8_lossy(bytes)).is_empty());
            }
        }
    }
    was_read
}

/// A plan is stored in a record, and read again.
fn comes_back(plan: &Plan) {
    let text = serde_json::to_vec(plan).unwrap();
    let again = json::decode::<Plan>(&text, JsonLimits { bytes: usize::MAX, ..JsonLimits::RECORD });
    assert_eq!(again.as_ref(), Ok(plan));
}

pub(super) fn parameters(bytes: &[u8]) -> bool {
    let Ok(parameters) = read_parameters(bytes, Limits::default()) else { return false };
    let text = serde_json::to_vec(&parameters).unwrap();
    let again = json::decode(&text, JsonLimits { bytes: usize::MAX, depth: 200 });
    assert_eq!(again, Ok(parameters));
    true
}

pub(super) fn described_flows() -> Vec<Vec<u8>> {
    let cases = [folder("run"), folder("native")];
    let cases = cases.iter().flat_map(|cases| cases.as_array().unwrap());
    let described = cases.filter(|case| case["ir"].is_object());
    described.map(|case| serde_json::to_vec(&case["ir"]).unwrap()).collect()
}

pub(super) fn described_flow(bytes: &[u8]) -> bool {
    let Ok(described) = serde_json::from_slice::<Value>(bytes) else { return false };
    let Ok(plan) = pyoco_flow::ir::compile(&described) else { return false };
    comes_back(&plan);
    true
}
