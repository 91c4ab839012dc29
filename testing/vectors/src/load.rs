//! From a vector to a plan, the way a worker does it: parse, import the callables, compile.

use std::sync::Arc;

use pyoco_core::plan::{FailPolicy, Plan};
use pyoco_core::time::Millis;
use pyoco_flow::{FlowError, Limits, Workflow};
use serde_json::Value;

use crate::Broken;
use crate::host::Host;
use crate::vector::{Loader, PolicyPatch, Vector};

/// What the flow is read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// As the vector says: its text, or its Flow object described by the host.
    Own,
    /// The description in the vector.
    Ir,
}

/// What came of it.
#[derive(Debug)]
pub(crate) enum Loaded {
    /// Refused when it was submitted: nothing exists of it.
    Refused(String),
    /// Refused by the worker: the run fails.
    Unusable(String),
    /// It can run.
    Plan(Arc<Plan>),
}

/// The name that jobs carry in the vectors.
pub(crate) const FLOW: &str = "main";

/// Loads a vector into a host.
pub(crate) fn load(vector: &Vector, source: Source, host: &mut Host) -> Result<Loaded, Broken> {
    let loaded = match (source, vector.loader) {
        (Source::Ir, _) => from_ir(vector, host)?,
        (Source::Own, Loader::Server) => from_text(vector, pyoco_flow::parse, host)?,
        (Source::Own, Loader::Native) => from_text(vector, pyoco_flow::parse_native, host)?,
        (Source::Own, Loader::FlowObject) => from_object(vector, host)?,
    };
    Ok(match loaded {
        Ok(mut plan) => {
            for (task, patch) in &vector.policies {
                set_policy(&mut plan, task, patch)?;
            }
            Loaded::Plan(Arc::new(plan))
        }
        Err(refused) => refused,
    })
}

type Compiled = Result<Plan, Loaded>;

fn from_text(
    vector: &Vector,
    parse: fn(&[u8], Limits) -> Result<Workflow, FlowError>,
    host: &mut Host,
) -> Result<Compiled, Broken> {
    let text = vector.flow_yaml.as_deref().ok_or("no flow_yaml")?;
    let workflow = match parse(text.as_bytes(), Limits::default()) {
        Ok(workflow) => workflow,
        Err(error) => return Ok(Err(Loaded::Refused(error.to_string()))),
    };
    let missing = host.load(vector.tasks_py.as_deref(), workflow.callables())?;
    let found = pyoco_flow::Loaded { missing, discovered: Vec::new() };
    Ok(workflow.compile(FLOW, &found).map_err(|error| Loaded::Unusable(error.to_string())))
}

fn from_object(vector: &Vector, host: &mut Host) -> Result<Compiled, Broken> {
    let source = vector.flow_py.as_deref().ok_or("no flow_py")?;
    let described = host.describe(source, FLOW)?;
    if vector.ir.as_ref().is_some_and(|ir| *ir != described) {
        return Err(format!("the host describes the flow differently:\n{described:#}"));
    }
    Ok(compile_ir(&described))
}

fn from_ir(vector: &Vector, host: &mut Host) -> Result<Compiled, Broken> {
    let ir = vector.ir.as_ref().ok_or("no ir")?;
    match &vector.flow_py {
        Some(source) => drop(host.describe(source, FLOW)?),
        None => {
            let tasks = ir["tasks"].as_array().ok_or("ir.tasks is no list")?;
            let callables =
                tasks.iter().filter_map(|task| Some((task["name"].as_str()?, task["callable"].as_str()?)));
            let missing = host.load(vector.tasks_py.as_deref(), callables)?;
            if !missing.is_empty() {
                return Err(format!("not importable: {missing:?}"));
            }
        }
    }
    Ok(compile_ir(ir))
}

fn compile_ir(ir: &Value) -> Compiled {
    pyoco_flow::ir::compile(ir).map_err(|error| Loaded::Unusable(error.to_string()))
}

/// The vectors set policies on the loaded tasks. A program knows retries only.
fn set_policy(plan: &mut Plan, task: &str, patch: &PolicyPatch) -> Result<(), Broken> {
    let is_program = plan.root.nodes().iter().any(|node| !node.kind.blocks().is_empty());
    let spec = plan.tasks.iter_mut().find(|spec| spec.name == task);
    let policy = &mut spec.ok_or_else(|| format!("no task '{task}' to set a policy on"))?.policy;
    policy.retries = patch.retries.unwrap_or(policy.retries);
    if is_program {
        return Ok(());
    }
    if let Some(fail) = &patch.fail_policy {
        policy.fail = if fail == "isolate" { FailPolicy::Isolate } else { FailPolicy::Stop };
    }
    if let Some(seconds) = patch.timeout_sec {
        policy.timeout = Millis::from_seconds(seconds).filter(|limit| *limit != Millis(0));
    }
    Ok(())
}
