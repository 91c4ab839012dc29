//! Every run and native vector: the plan says what the reference built, or the build fails as it did.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failure in a helper fails the test"
)]

mod support;

use pyoco_core::plan::{FailPolicy, Plan};
use pyoco_core::time::Millis;
use pyoco_flow::{FlowError, Limits, Loaded, ir, parse, parse_native};
use serde_json::Value;
use support::{ir_of, reduced, text, vectors};

/// Vectors of level `quirk` that we refuse, as their `recommended` says.
const REFUSED: [&str; 11] = [
    "case-chain-without-parens",
    "fragment-in-group",
    "group-of-or",
    "group-subscript",
    "group-to-fragment",
    "list-lost-in-program",
    "list-on-the-left",
    "literal-after-flow",
    "loop-without-flow",
    "nested-list",
    "repeat-bool",
];

/// Vectors that the reference refuses and we accept, with what they mean here.
const ACCEPTED: [(&str, &[&str]); 2] =
    [("task-to-list", &["a", "b < a", "c < a"]), ("three-way-and", &["a", "b", "c"])];

/// What the worker would report: a callable whose function the vector's module does not define.
fn loaded(vector: &Value) -> Loaded {
    let mut loaded = Loaded::default();
    let Ok(workflow) = parse(text(vector, "flow_yaml").as_bytes(), Limits::default()) else { return loaded };
    for (task, callable) in workflow.callables() {
        let (module, attribute) = callable.split_once(':').unwrap();
        let source = text(vector, "tasks_py");
        let defined = source.contains(&format!("def {attribute}("))
            || source.contains(&format!("{attribute} ="))
            || source.contains(&format!("class {attribute}"));
        if !attribute.contains(':') && (module != "vt" || !defined) {
            loaded
                .missing
                .insert(task.to_owned(), format!("module '{module}' has no attribute '{attribute}'"));
        }
    }
    loaded
}

fn build(vector: &Value) -> Result<Plan, FlowError> {
    let source = text(vector, "flow_yaml").as_bytes();
    match text(vector, "loader") {
        "native" => parse_native(source, Limits::default())?.compile("main", &Loaded::default()),
        _ => parse(source, Limits::default())?.compile("main", &loaded(vector)),
    }
}

/// Policies that the vector's runner sets on the task objects after loading.
fn set_policies(plan: &mut Plan, vector: &Value) {
    for task in &mut plan.tasks {
        let policy = &vector["policies"][&task.name];
        if policy["fail_policy"] == "isolate" {
            task.policy.fail = FailPolicy::Isolate;
        }
        if let Some(retries) = policy["retries"].as_u64() {
            task.policy.retries = u32::try_from(retries).unwrap();
        }
        if let Some(seconds) = policy["timeout_sec"].as_f64() {
            task.policy.timeout = Millis::from_seconds(seconds);
        }
    }
}

fn check(vector: &Value) {
    let name = text(vector, "name");
    let phase = text(&vector["expect"], "phase");
    let plan = build(vector);
    if REFUSED.contains(&name) || name == "switch-without-cases" {
        let error = plan.expect_err(name);
        assert!(error.first().line().is_some() && error.first().help().is_some(), "{name}: {error}");
        return;
    }
    if let Some((_, edges)) = ACCEPTED.iter().find(|(accepted, _)| *accepted == name) {
        assert_eq!(support::edges(&plan.unwrap()), *edges, "{name}");
        return;
    }
    if matches!(phase, "build" | "config") {
        let error = plan.expect_err(name);
        if vector["expect"]["error_strict"] == true {
            let wanted = text(&vector["expect"], "error_contains");
            assert!(error.to_string().contains(wanted), "{name}: '{error}' lacks '{wanted}'");
        }
        return;
    }
    let mut plan = plan.unwrap_or_else(|error| panic!("{name}: {error}"));
    set_policies(&mut plan, vector);
    assert_eq!(ir_of(&plan), reduced(&vector["ir"], "main"), "{name}");
}

#[test]
fn run_vectors_build_what_the_reference_builds() {
    let vectors = vectors("run");
    let of_server = vectors.iter().filter(|vector| text(vector, "loader") == "server");
    assert!(of_server.map(check).count() > 100);
}

#[test]
fn native_vectors_build_what_the_reference_builds() {
    assert!(vectors("native").iter().map(check).count() > 15);
}

#[test]
fn every_described_flow_compiles_to_what_it_describes() {
    let mut count = 0;
    for vector in vectors("run").iter().chain(&vectors("native")) {
        let Some(_) = vector["ir"].as_object() else { continue };
        let name = text(vector, "name");
        let mut ir = vector["ir"].clone();
        if name == "case-chain-without-parens" {
            // Its case can never match and is left out.
            ir["program"][0]["cases"] = serde_json::json!([]);
        }
        let plan = ir::compile(&vector["ir"]).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(ir_of(&plan), reduced(&ir, text(&ir, "flow")), "{name}");
        count += 1;
    }
    assert!(count > 100);
}

#[test]
fn a_dependency_outside_the_flow_is_never_met() {
    let vectors = vectors("run");
    let vector = vectors.iter().find(|vector| text(vector, "name") == "obj-dependency-outside").unwrap();
    let plan = ir::compile(&vector["ir"]).unwrap();
    assert!(plan.root.nodes().iter().all(|node| node.unreachable));
}
