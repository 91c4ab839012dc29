//! Golden vectors, and a plan told back in the words of the vectors' IR.
#![allow(dead_code, reason = "every test binary uses its own part")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "a failure in a helper fails the test")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use pyoco_core::plan::{Block, Count, FailPolicy, Input, JoinPolicy, Kind, NodeIndex, Plan, TaskIndex};
use pyoco_core::time::Millis;
use serde_json::{Value, json};

pub(crate) fn folder(part: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testing/vectors/open").join(part)
}

pub(crate) fn vectors(part: &str) -> Vec<Value> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder(part)).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()).collect()
}

pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// The plan in the shape of the vectors' `ir`, as far as a plan keeps it: no signatures, no callables, and in
/// program mode no dependencies.
pub(crate) fn ir_of(plan: &Plan) -> Value {
    let is_program = has_control(&plan.root) || repeats_a_task(&plan.root);
    let mut tasks: Vec<Value> = (0_u32..).zip(&plan.tasks).map(|(number, task)| {
        let mut described = json!({
            "name": task.name,
            "inputs": task.inputs.iter().map(|(name, input)| (name.clone(), input_of(input))).collect::<serde_json::Map<_, _>>(),
            "outputs": task.outputs,
            "fail": if task.policy.fail == FailPolicy::Isolate { "isolate" } else { "stop" },
            "retries": task.policy.retries,
            "timeout_s": task.policy.timeout.map(Millis::as_seconds),
        });
        if !is_program {
            let node = plan.root.nodes().iter().position(|node| node.kind == Kind::Task(TaskIndex(number))).unwrap();
            let (deps, any) = waits_for(&plan.root, node);
            described["deps"] = json!(deps);
            described["trigger"] = json!(if any { "ANY" } else { "ALL" });
        }
        described
    }).collect();
    tasks.sort_by_key(|task| text(task, "name").to_owned());
    json!({
        "flow": plan.flow,
        "mode": if is_program { "program" } else { "dag" },
        "tasks": tasks,
        "program": if is_program { steps_of(plan, &plan.root) } else { Value::Null },
    })
}

/// The same of a vector's own `ir`.
pub(crate) fn reduced(ir: &Value, flow: &str) -> Value {
    let is_program = ir["mode"] == "program";
    let tasks: Vec<Value> = ir["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| {
            let mut kept =
                json!({"name": task["name"], "outputs": task["outputs"], "retries": task["retries"]});
            kept["inputs"] = task["inputs"].clone();
            kept["fail"] = task["fail"].clone();
            kept["timeout_s"] = task["timeout_s"].clone();
            if !is_program {
                let outside = task["deps_outside_flow"].as_array().cloned().unwrap_or_default();
                let deps: BTreeSet<&str> = task["deps"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .filter(|dep| !outside.contains(dep))
                    .map(|dep| dep.as_str().unwrap())
                    .collect();
                kept["deps"] = json!(deps);
                kept["trigger"] = task["trigger"].clone();
            }
            kept
        })
        .collect();
    json!({"flow": flow, "mode": ir["mode"], "tasks": tasks, "program": ir["program"]})
}

fn input_of(input: &Input) -> Value {
    match input {
        Input::Lit(value) => json!({"lit": value}),
        Input::Node { node, path } => json!({"node": node, "path": path}),
        Input::Param(key) => json!({"param": key}),
        Input::Env(key) => json!({"env": key}),
        Input::Invalid { text, message } => {
            let start = format!("Invalid reference '{text}': ");
            let reason =
                message.strip_prefix(&start).unwrap().split(". Supported selectors: ").next().unwrap();
            json!({"invalid": text, "reason": reason})
        }
    }
}

fn has_control(block: &Block) -> bool {
    block.nodes().iter().any(|node| !node.kind.blocks().is_empty())
}

fn repeats_a_task(block: &Block) -> bool {
    let mut seen = BTreeSet::new();
    block.nodes().iter().any(|node| matches!(node.kind, Kind::Task(task) if !seen.insert(task)))
}

/// Names a node waits for, through forks and joins, and whether any of them is enough.
fn waits_for(block: &Block, node: usize) -> (BTreeSet<String>, bool) {
    let (mut names, mut any) = (BTreeSet::new(), false);
    let mut open: Vec<NodeIndex> = block.nodes()[node].after.clone();
    while let Some(index) = open.pop() {
        let before = block.node(index).unwrap();
        match &before.kind {
            Kind::Fork { .. } => open.extend(&before.after),
            Kind::Join { policy, .. } => {
                any |= *policy == JoinPolicy::AnySuccess;
                open.extend(&before.after);
            }
            Kind::Start
            | Kind::Success
            | Kind::Failed
            | Kind::Canceled
            | Kind::Task(_)
            | Kind::Repeat { .. }
            | Kind::ForEach { .. }
            | Kind::Until { .. }
            | Kind::Switch { .. } => {
                names.insert(before.name.clone());
            }
        }
    }
    (names, any)
}

/// The steps of a block that is a plain sequence.
fn steps_of(plan: &Plan, block: &Block) -> Value {
    let order: Vec<&pyoco_core::plan::Node> = block.nodes().iter().collect();
    for (number, node) in order.iter().enumerate() {
        let expected: Vec<NodeIndex> =
            number.checked_sub(1).map(|n| NodeIndex(u32::try_from(n).unwrap())).into_iter().collect();
        assert_eq!(node.after, expected, "a plain sequence was expected");
    }
    let expression = |text: &pyoco_core::expr::Expression| json!({"expr": text.text()});
    order.iter().map(|node| match &node.kind {
        Kind::Task(task) => json!({"op": "task", "task": plan.task(*task).unwrap().name}),
        Kind::Repeat { count, body } => {
            let count = match count {
                Count::Fixed(count) => json!(count),
                Count::Computed(text) => expression(text),
            };
            json!({"op": "repeat", "count": count, "body": steps_of(plan, body)})
        }
        Kind::ForEach { over, item, index, body } => {
            json!({"op": "foreach", "over": expression(over), "item": item, "index": index, "body": steps_of(plan, body)})
        }
        Kind::Until { condition, max_rounds, body } => {
            json!({"op": "until", "cond": expression(condition), "max_iter": max_rounds, "body": steps_of(plan, body)})
        }
        Kind::Switch { on, cases, default } => json!({
            "op": "switch",
            "on": expression(on),
            "cases": cases.iter().map(|case| json!({"value": case.value, "body": steps_of(plan, &case.body)})).collect::<Vec<_>>(),
            "default": default.as_ref().map(|body| steps_of(plan, body)),
        }),
        other @ (Kind::Start | Kind::Success | Kind::Failed | Kind::Canceled | Kind::Fork { .. } | Kind::Join { .. }) => {
            panic!("no step: {other:?}")
        }
    }).collect()
}

/// What waits for what in a block, one line per node: `d < a|b`, forks and joins looked through.
pub(crate) fn edges(plan: &Plan) -> Vec<String> {
    block_edges(&plan.root)
}

pub(crate) fn block_edges(block: &Block) -> Vec<String> {
    let mut lines = Vec::new();
    for (number, node) in block.nodes().iter().enumerate() {
        if matches!(node.kind, Kind::Fork { .. } | Kind::Join { .. }) {
            continue;
        }
        let (names, any) = waits_for(block, number);
        let names: Vec<String> = names.into_iter().collect();
        lines.push(
            format!("{} < {}", node.name, names.join(if any { "|" } else { " " }))
                .trim_end_matches(['<', ' '])
                .to_owned(),
        );
        for inner in node.kind.blocks() {
            lines.extend(block_edges(inner).into_iter().map(|line| format!("  {line}")));
        }
    }
    lines
}
