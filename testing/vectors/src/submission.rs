//! A vector as the product takes it: the text of a flow.yaml, or a flow that the worker's resolver builds.

use pyoco_core::plan::{Plan, Runner};
use pyoco_flow::Limits;
use serde_json::{Value, json};

use crate::Broken;
use crate::vector::{Loader, PolicyPatch, Vector};

/// What the flow is read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// As the vector says: its text, or its Flow object.
    Own,
    /// A Flow object that is built from the description in the vector.
    Ir,
}

impl Source {
    /// Whether a vector is submitted by name, for the resolver, and not as text.
    pub(crate) fn is_by_name(self, vector: &Vector) -> bool {
        self == Self::Ir || vector.loader == Loader::FlowObject
    }
}

/// The flow.yaml of a vector. What vectors set from outside is written into it: parameters as defaults, policies as
/// statements of the graph, and the language of the graph as version 2 names it.
pub(crate) fn flow_yaml(vector: &Vector) -> Result<String, Broken> {
    let mut text = vector.flow_yaml.clone().ok_or("no flow_yaml")?;
    let params = vector.params.clone().unwrap_or_default();
    if vector.loader == Loader::Native {
        text = text.replacen("version: 1\n", "version: 2\n", 1);
        insert_below(&mut text, "flow:", "  syntax: native")?;
    }
    if !params.is_empty() && !text.contains("\n  defaults:") {
        insert_below(&mut text, "flow:", &format!("  defaults: {}", json!(params)))?;
    }
    for (task, patch) in &vector.policies {
        for statement in statements(task, patch) {
            insert_below(&mut text, "  graph: |", &format!("    {statement}"))?;
        }
    }
    let meant = pyoco_flow::parse(text.as_bytes(), Limits::default());
    if meant.is_ok_and(|workflow| *workflow.defaults() != params) {
        return Err("its defaults are not its parameters".to_owned());
    }
    Ok(text)
}

fn insert_below(text: &mut String, line: &str, more: &str) -> Result<(), Broken> {
    let wanted = format!("{line}\n");
    let at = text.match_indices(&wanted).find(|(at, _)| *at == 0 || text[..*at].ends_with('\n'));
    let (at, _) = at.ok_or_else(|| format!("its text has no line '{line}'"))?;
    text.insert_str(at + wanted.len(), &format!("{more}\n"));
    Ok(())
}

fn statements(task: &str, patch: &PolicyPatch) -> Vec<String> {
    let fail = patch.fail_policy.as_ref().map(|fail| format!("{task}.task.fail_policy = '{fail}'"));
    let retries = patch.retries.map(|count| format!("{task}.task.retries = {count}"));
    let timeout = patch.timeout_sec.map(|seconds| format!("{task}.task.timeout_sec = {seconds:?}"));
    [fail, retries, timeout].into_iter().flatten().collect()
}

/// The plan that a worker must have made of a described flow under this name.
pub(crate) fn plan_of(ir: &Value, flow_name: &str) -> Result<Plan, Broken> {
    let mut plan = pyoco_flow::ir::compile(ir).map_err(|error| error.to_string())?;
    flow_name.clone_into(&mut plan.flow);
    for task in &mut plan.tasks {
        task.runner = Runner::Registered(format!("flow:{}", task.name));
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(more: &Value) -> Vector {
        let mut vector = json!({
            "name": "own", "level": "core", "loader": "server",
            "flow_yaml": "version: 1\nflow:\n  graph: |\n    a\ntasks:\n  a:\n    callable: vt:a\n",
        });
        vector.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(vector).unwrap()
    }

    #[test]
    fn what_comes_from_outside_is_written_into_the_text() {
        let more = json!({"params": {"x": "1"}, "policies": {"a": {"retries": 2, "timeout_sec": 5}}});
        let text = flow_yaml(&vector(&more)).unwrap();
        assert!(text.contains("flow:\n  defaults: {\"x\":\"1\"}\n  graph: |\n"), "{text}");
        assert!(text.contains("    a.task.timeout_sec = 5.0\n    a.task.retries = 2\n    a\n"), "{text}");
        let text = flow_yaml(&vector(&json!({"loader": "native"}))).unwrap();
        assert!(text.starts_with("version: 2\nflow:\n  syntax: native\n"), "{text}");
    }

    #[test]
    fn a_text_that_cannot_say_it_is_not_sent() {
        let other = "flow: {graph: a}\ntasks: {}\n";
        assert!(flow_yaml(&vector(&json!({"flow_yaml": other, "params": {"x": 1}}))).is_err());
        let other = "flow:\n  defaults: {x: 2}\n  graph: a\n";
        assert!(flow_yaml(&vector(&json!({"flow_yaml": other, "params": {"x": 1}}))).is_err());
    }
}
