//! A flow.yaml whose graph has been parsed, and its way to a plan once the tasks are known.

use std::collections::HashMap;

use pyoco_core::plan::Plan;
use serde_json::{Map, Value};

use crate::blueprint::{Blueprint, Member};
use crate::cycle;
use crate::diagnostic::{Diagnostic, FlowError, Position};
use crate::document::{Dialect, Document, Limits, Syntax, decode, read};
use crate::graph;
use crate::names::closest;
use crate::native;
use crate::program::{NameId, PolicyChange, Program};
use crate::source::{Locator, Source};
use crate::tasks::{Known, Loaded, Tasks};

/// What a flow.yaml says. Its graph is checked; which tasks exist is only known where they are loaded.
#[derive(Debug, Clone)]
pub struct Workflow {
    document: Document,
    graph: Graph,
}

#[derive(Debug, Clone)]
enum Graph {
    Server(Program),
    Native(native::Graph),
}

/// Reads a flow.yaml and checks all that can be checked without its tasks.
pub fn parse(source: &[u8], limits: Limits) -> Result<Workflow, FlowError> {
    parse_as(source, limits, Dialect::ByVersion)
}

/// The same for a document of the pyoco command line: its graph is native whatever the version says.
pub fn parse_native(source: &[u8], limits: Limits) -> Result<Workflow, FlowError> {
    parse_as(source, limits, Dialect::Native)
}

fn parse_as(source: &[u8], limits: Limits, dialect: Dialect) -> Result<Workflow, FlowError> {
    let text = decode(source, limits)?;
    let (document, loosened) = read(text, limits, true, dialect)?;
    let Some(graph) = &document.graph else {
        return Err(Diagnostic::new("missing_flow_graph", "'flow' has no 'graph'").into());
    };
    let source = Source::new(&loosened);
    let graph = match document.syntax {
        Syntax::Native => Graph::Native(native::read(graph, &document.pipes, &source)?),
        Syntax::Server => {
            let locator = Locator::new(&source, &graph.text, graph.place);
            let program = graph::read(&graph.text, &locator)?;
            if document.version == 2 {
                refuse_circle(&program)?;
            }
            Graph::Server(program)
        }
    };
    Ok(Workflow { document, graph })
}

/// Version 1 finds circles only when it runs into them; version 2 does not start such a flow.
fn refuse_circle(program: &Program) -> Result<(), Diagnostic> {
    if program.steps.is_some() {
        return Ok(());
    }
    let mut after = vec![Vec::new(); program.names.len()];
    for (task, on) in &program.links {
        if let Some(list) = after.get_mut(task.0) {
            list.push(on.0);
        }
    }
    let Some(circle) = cycle::find(&after) else { return Ok(()) };
    let name = |task| program.names.get_index(task).map(|(name, _)| name.clone()).unwrap_or_default();
    let at = circle.first().and_then(|task| program.names.get_index(*task)).map(|(_, at)| *at);
    let message = format!("these tasks wait for each other: {}", cycle::describe(&circle, name));
    Err(Diagnostic::new("invalid_graph", message).at(at).with_help("remove one of the links"))
}

impl Workflow {
    /// The version of the document; 1 when it does not say.
    pub const fn version(&self) -> i64 {
        self.document.version
    }

    /// The graph as written.
    pub fn graph(&self) -> &str {
        self.document.graph().unwrap_or_default()
    }

    /// The parameters of a run.
    pub fn defaults(&self) -> &Map<String, Value> {
        static EMPTY: std::sync::OnceLock<Map<String, Value>> = std::sync::OnceLock::new();
        self.document.defaults().unwrap_or_else(|| EMPTY.get_or_init(Map::new))
    }

    /// What a worker must import: tasks with their `module:attribute`, copies included.
    pub fn callables(&self) -> impl Iterator<Item = (&str, &str)> {
        let tasks = &self.document.tasks;
        tasks.iter().filter_map(move |(name, entry)| {
            let mut entry = entry;
            // Copies of copies end, which was checked when the document was read.
            while let Some(base) = entry.extended.uses.as_ref().and_then(|uses| tasks.get(uses)) {
                entry = base;
            }
            Some((name.as_str(), entry.callable.as_deref()?))
        })
    }

    /// The names that tasks and expressions may see of the environment; `None`: all.
    pub fn expose_env(&self) -> Option<&[String]> {
        self.document.expose_env()
    }

    /// Links names to tasks and builds the plan.
    pub fn compile(&self, flow_name: &str, loaded: &Loaded) -> Result<Plan, FlowError> {
        let mut tasks = Tasks::collect(&self.document, loaded)?;
        let warnings = std::mem::take(&mut tasks.warnings);
        let mut blueprint = Blueprint {
            flow: flow_name.to_owned(),
            members: Vec::new(),
            steps: None,
            member_of: Vec::new(),
            explicit: self.document.version == 2,
            expose_env: self.document.expose_env.clone(),
            warnings,
        };
        match &self.graph {
            Graph::Server(program) => link_server(program, tasks, &mut blueprint)?,
            Graph::Native(graph) => link_native(graph, &tasks, &mut blueprint)?,
        }
        blueprint.build()
    }
}

/// Every task is a member, named or not.
fn link_server(program: &Program, tasks: Tasks, blueprint: &mut Blueprint) -> Result<(), FlowError> {
    let mut problems = Vec::new();
    for (name, at) in &program.names {
        match tasks.known.get_index_of(name) {
            Some(member) => blueprint.member_of.push(member),
            None => {
                blueprint.member_of.push(usize::MAX);
                problems.push(undefined(format!("name '{name}' is not defined"), name, *at, &tasks));
            }
        }
    }
    if let Some(error) = FlowError::several(problems) {
        return Err(error);
    }
    blueprint.members = tasks.known.into_values().map(member).collect();
    let member_of = |name: NameId| blueprint.member_of.get(name.0).copied().unwrap_or(usize::MAX);
    for (task, on) in &program.links {
        if let Some(member) = blueprint.members.get_mut(member_of(*task)) {
            member.after.push(member_of(*on));
        }
    }
    for name in &program.any {
        if let Some(member) = blueprint.members.get_mut(member_of(*name)) {
            member.any = true;
        }
    }
    for (name, change) in &program.policies {
        if let Some(member) = blueprint.members.get_mut(member_of(*name)) {
            change_policy(member, *change);
        }
    }
    blueprint.steps.clone_from(&program.steps);
    blueprint.warnings.extend(program.warnings.iter().cloned());
    for member in blueprint.members.iter().filter(|member| member.any && member.join.is_some()) {
        let name = &member.spec.name;
        blueprint.warnings.push(format!("task '{name}': its 'join' counts, not the '|' of the graph"));
    }
    Ok(())
}

fn change_policy(member: &mut Member, change: PolicyChange) {
    match change {
        PolicyChange::Fail(fail) => {
            member.spec.policy.fail = fail;
            member.explicit_fail = true;
        }
        PolicyChange::Retries(retries) => member.spec.policy.retries = retries,
        PolicyChange::Timeout(timeout) => member.spec.policy.timeout = timeout,
    }
}

fn member(known: Known) -> Member {
    let Known { spec, explicit_fail, join } = known;
    Member { explicit_fail, join, ..Member::new(spec) }
}

/// A name that is no task: what stands in the way, or what was probably meant.
fn undefined(message: String, name: &str, at: Position, tasks: &Tasks) -> Diagnostic {
    if let Some(reason) = tasks.absent.get(name) {
        return Diagnostic::new("unknown_task", format!("{message} ({reason})")).at(at);
    }
    let problem = Diagnostic::new("unknown_task", message).at(at);
    match closest(name, tasks.known.keys().map(String::as_str)) {
        Some(close) => problem.with_help(format!("did you mean '{close}'?")),
        None => problem
            .with_help(format!("define it under 'tasks:', or let a worker discover a task named '{name}'")),
    }
}

/// Only tasks that the graph names are members; `node: task` is a copy under its own name.
fn link_native(graph: &native::Graph, tasks: &Tasks, blueprint: &mut Blueprint) -> Result<(), FlowError> {
    let mut places: HashMap<&str, (usize, bool)> = HashMap::new();
    for mention in &graph.mentions {
        let Some(known) = tasks.known.get(&mention.task) else {
            let message = format!("Task not found: {}", mention.task);
            return Err(undefined(message, &mention.task, mention.at, tasks).into());
        };
        let name = mention.node.as_deref().unwrap_or(&mention.task);
        let place = match places.get(name) {
            Some((place, false)) if mention.node.is_none() => *place,
            Some(_) => {
                let message = format!("Duplicate node name: {name}");
                return Err(Diagnostic::new("invalid_graph", message).at(mention.at).into());
            }
            None => {
                let mut member = member(known.clone());
                name.clone_into(&mut member.spec.name);
                blueprint.members.push(member);
                places.insert(name, (blueprint.members.len() - 1, mention.node.is_some()));
                blueprint.members.len() - 1
            }
        };
        blueprint.member_of.push(place);
    }
    if graph.has_control {
        blueprint.steps = Some(graph.steps.clone());
        return Ok(());
    }
    for pair in blueprint.member_of.windows(2) {
        if let [before, task] = *pair
            && let Some(member) = blueprint.members.get_mut(task)
        {
            member.after.push(before);
        }
    }
    Ok(())
}
