//! What a flow.yaml may say: every check of the reference, in its order and with its reasons.
//!
//! Version 1 accepts exactly the keys of pyoco-server 0.5.1. Version 2 adds ours, which `extended` reads.
//! Not here: what the graph text means, and which tasks exist.

use indexmap::IndexMap;
use serde_json::{Map, Value as Json};

use crate::diagnostic::{Diagnostic, FlowError, Position};
use crate::extended::{self, Extended};
use crate::yaml::{self, Bounds, Loosened, Node, NotJson, Place};

/// How much of a document is read before it is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest document in bytes. The number of values it may hold grows with it: 10,000 per 256 KiB.
    pub max_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_bytes: 262_144 }
    }
}

impl Limits {
    pub(crate) const fn bounds(self) -> Bounds {
        let steps = self.max_bytes.div_ceil(262_144);
        let steps = if steps == 0 { 1 } else { steps };
        Bounds { nodes: steps.saturating_mul(10_000), bytes: self.max_bytes.saturating_mul(4) }
    }
}

/// Which keys a document may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// As its version says.
    ByVersion,
    /// The keys of the pyoco command line, whatever the version.
    Native,
}

/// The language of the graph.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Syntax {
    #[default]
    Server,
    Native,
}

/// A flow.yaml that passed its checks; the graph is still plain text.
#[derive(Debug, Clone)]
pub struct Document {
    pub(crate) version: i64,
    pub(crate) graph: Option<Text>,
    pub(crate) syntax: Syntax,
    pub(crate) defaults: Option<Map<String, Json>>,
    pub(crate) tasks: IndexMap<String, TaskEntry>,
    pub(crate) pipes: IndexMap<String, Text>,
    pub(crate) expose_env: Option<Vec<String>>,
}

/// A text of the document and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Text {
    pub(crate) text: String,
    pub(crate) place: Place,
}

/// One entry of `tasks`.
#[derive(Debug, Clone)]
pub struct TaskEntry {
    pub(crate) callable: Option<String>,
    pub(crate) inputs: Map<String, Json>,
    pub(crate) outputs: Vec<String>,
    pub(crate) extended: Extended,
    pub(crate) at: Position,
}

impl Document {
    /// The version as Python's `int()` reads it; 1 when absent.
    pub const fn version(&self) -> i64 {
        self.version
    }

    /// The graph text; `None` when there is no flow.
    pub fn graph(&self) -> Option<&str> {
        self.graph.as_ref().map(|graph| graph.text.as_str())
    }

    /// The parameters of a run; `None` when there is no flow.
    pub const fn defaults(&self) -> Option<&Map<String, Json>> {
        self.defaults.as_ref()
    }

    /// The tasks in the author's order.
    pub fn tasks(&self) -> impl Iterator<Item = (&str, &TaskEntry)> {
        self.tasks.iter().map(|(name, entry)| (name.as_str(), entry))
    }

    /// The names tasks may see of the environment; `None`: all.
    pub fn expose_env(&self) -> Option<&[String]> {
        self.expose_env.as_deref()
    }
}

impl TaskEntry {
    /// Its `module:attribute`, unchecked.
    pub fn callable(&self) -> Option<&str> {
        self.callable.as_deref()
    }

    /// Its configured arguments as written.
    pub const fn inputs(&self) -> &Map<String, Json> {
        &self.inputs
    }

    /// Where its result is stored as well.
    pub fn outputs(&self) -> &[String] {
        &self.outputs
    }
}

/// Checks a flow.yaml; `require_flow` is off only for documents that merely configure tasks.
pub fn validate(source: &[u8], limits: Limits, require_flow: bool) -> Result<Document, FlowError> {
    let text = decode(source, limits)?;
    Ok(read(text, limits, require_flow, Dialect::ByVersion)?.0)
}

/// The text of a document that is not too long.
pub(crate) fn decode(source: &[u8], limits: Limits) -> Result<&str, Diagnostic> {
    if source.len() > limits.max_bytes {
        let message =
            format!("the document has {} bytes, at most {} are allowed", source.len(), limits.max_bytes);
        return Err(Diagnostic::new("too_large", message));
    }
    std::str::from_utf8(source).map_err(|error| {
        let at = error.valid_up_to();
        Diagnostic::new("invalid_utf8", format!("invalid_utf8: byte {at} is not UTF-8"))
    })
}

pub(crate) fn read(
    text: &str,
    limits: Limits,
    require_flow: bool,
    dialect: Dialect,
) -> Result<(Document, Loosened), Diagnostic> {
    let (root, source) = yaml::load(text, limits.bounds())?;
    let Some(entries) = root.as_map() else {
        return Err(problem(
            "invalid_yaml_root",
            "a flow.yaml is a mapping with the key 'flow'",
            root.place.at,
        ));
    };
    let top = Section(entries);
    let version = top.get("version").map_or(Some(1), |node| yaml::to_int(&node.value));
    let extended = dialect == Dialect::Native || version == Some(2);
    check_top_level(&top, extended, dialect)?;

    let flow = match top.get("flow") {
        Some(node) if !node.is_null() => Some(read_flow(node, extended)?),
        Some(_) | None if !require_flow => None,
        Some(node) => {
            return Err(problem("missing_flow", "'flow' is empty; it needs a graph", node.place.at));
        }
        None => return Err(problem("missing_flow", "the key 'flow' is missing; it holds the graph", None)),
    };
    let tasks = read_tasks(&top, extended)?;
    let pipes = extended::read_pipes(top.get("pipes"))?;
    let expose_env = read_runtime(&top, version == Some(2))?;
    let Some(version) = version else {
        let at = top.get("version").map(|node| node.place.at);
        return Err(problem("invalid_version", "the version is not a number; write 'version: 1'", at));
    };
    let (graph, defaults, mut syntax) = match flow {
        Some(flow) => (Some(flow.graph), Some(flow.defaults), flow.syntax),
        None => (None, None, Syntax::Server),
    };
    if dialect == Dialect::Native {
        syntax = Syntax::Native;
    }
    Ok((Document { version, graph, syntax, defaults, tasks, pipes, expose_env }, source))
}

fn check_top_level(top: &Section<'_>, extended: bool, dialect: Dialect) -> Result<(), Diagnostic> {
    if let Some(key) = top.key("flows") {
        let long = "Unsupported config key 'flows'; a document holds a single flow, under 'flow'";
        return Err(problem("unsupported_key_flows", long, key.place.at));
    }
    if let Some(key) = top.key("discovery") {
        let long =
            "Unsupported config key 'discovery'; the worker's PYOCO_DISCOVERY_MODULES says what is imported";
        return Err(problem("unsupported_key_discovery", long, key.place.at));
    }
    // The command line of pyoco ignores keys it does not know.
    if dialect == Dialect::Native {
        return Ok(());
    }
    let allowed: &[&str] = if extended {
        &["version", "flow", "tasks", "runtime", "pipes"]
    } else {
        &["version", "flow", "tasks", "runtime"]
    };
    top.only(allowed, "unknown_top_level_keys")
}

struct FlowSection {
    graph: Text,
    defaults: Map<String, Json>,
    syntax: Syntax,
}

fn read_flow(node: &Node, extended: bool) -> Result<FlowSection, Diagnostic> {
    let Some(entries) = node.as_map() else {
        return Err(problem("invalid_flow", "'flow' is a mapping with the key 'graph'", node.place.at));
    };
    let flow = Section(entries);
    let allowed: &[&str] = if extended { &["graph", "defaults", "syntax"] } else { &["graph", "defaults"] };
    flow.only(allowed, "unknown_flow_keys")?;
    let graph = match flow.get("graph") {
        Some(graph) => match graph.as_str() {
            Some(text) if !text.trim().is_empty() => Text { text: text.to_owned(), place: graph.place },
            Some(_) | None => {
                return Err(problem(
                    "missing_flow_graph",
                    "'graph' is a text such as 'a >> b'",
                    graph.place.at,
                ));
            }
        },
        None => return Err(problem("missing_flow_graph", "'flow' has no 'graph'", node.place.at)),
    };
    let defaults = match flow.truthy("defaults") {
        None => Map::new(),
        Some(defaults) if defaults.as_map().is_none() => {
            let text = "'defaults' is a mapping from parameter names to values";
            return Err(problem("invalid_flow_defaults", text, defaults.place.at));
        }
        Some(defaults) => object(defaults, "defaults", "invalid_flow_defaults")?,
    };
    let syntax = extended::read_syntax(flow.get("syntax"))?;
    Ok(FlowSection { graph, defaults, syntax })
}

fn read_tasks(top: &Section<'_>, extended: bool) -> Result<IndexMap<String, TaskEntry>, Diagnostic> {
    let mut tasks = IndexMap::new();
    let Some(node) = top.truthy("tasks") else { return Ok(tasks) };
    let Some(entries) = node.as_map() else {
        return Err(problem(
            "invalid_tasks",
            "'tasks' is a mapping from task names to their configuration",
            node.place.at,
        ));
    };
    tasks.reserve(entries.len());
    for (key, config) in entries {
        let Some(name) = key.as_str().filter(|name| !name.trim().is_empty()) else {
            let text = format!("{} is no task name; write it in quotes", yaml::repr(&key.value));
            return Err(problem("invalid_task_name", text, key.place.at));
        };
        tasks.insert(name.to_owned(), read_task(name, key.place.at, config, extended)?);
    }
    extended::check_uses(&tasks)?;
    Ok(tasks)
}

fn read_task(name: &str, at: Position, config: &Node, is_extended: bool) -> Result<TaskEntry, Diagnostic> {
    let Some(entries) = config.as_map() else {
        let text = "a task is a mapping, e.g. {callable: 'module:function'}";
        return Err(problem(format!("invalid_task_config: {name}"), text, at));
    };
    let task = Section(entries);
    let allowed: &[&str] =
        if is_extended { &extended::TASK_KEYS } else { &["callable", "inputs", "outputs"] };
    task.only(allowed, &format!("unknown_task_keys: {name}"))?;
    let callable = match task.get("callable").filter(|node| !node.is_null()) {
        None => None,
        Some(node) => match node.as_str() {
            Some(text) if text.contains(':') => Some(text.to_owned()),
            Some(_) | None => {
                let text = "a callable is written 'module:function'";
                return Err(problem(format!("invalid_task_callable: {name}"), text, node.place.at));
            }
        },
    };
    let inputs = match task.truthy("inputs") {
        None => Map::new(),
        Some(node) if node.as_map().is_none() => {
            let text = "'inputs' is a mapping from argument names to values";
            return Err(problem(format!("invalid_task_inputs: {name}"), text, node.place.at));
        }
        Some(node) => object(node, "inputs", &format!("invalid_task_inputs: {name}"))?,
    };
    let outputs = match task.truthy("outputs") {
        None => Vec::new(),
        Some(node) => texts(node).ok_or_else(|| {
            let text = "'outputs' is a list of texts such as 'scratch.total'";
            problem(format!("invalid_task_outputs: {name}"), text, node.place.at)
        })?,
    };
    let extended =
        if is_extended { Extended::read(name, &task, callable.is_some(), at)? } else { Extended::default() };
    Ok(TaskEntry { callable, inputs, outputs, extended, at })
}

fn read_runtime(top: &Section<'_>, empty_is_given: bool) -> Result<Option<Vec<String>>, Diagnostic> {
    let Some(node) = top.truthy("runtime") else { return Ok(None) };
    let Some(entries) = node.as_map() else {
        return Err(problem(
            "invalid_runtime",
            "'runtime' is a mapping with the key 'expose_env'",
            node.place.at,
        ));
    };
    let runtime = Section(entries);
    runtime.only(&["expose_env"], "unknown_runtime_keys")?;
    match runtime.truthy("expose_env") {
        // An empty list is "nothing" to the author; the reference, which never looks at it, takes it as absent.
        None if empty_is_given && runtime.get("expose_env").is_some_and(|node| node.as_seq().is_some()) => {
            Ok(Some(Vec::new()))
        }
        None => Ok(None),
        Some(node) => texts(node).map(Some).ok_or_else(|| {
            let text = "'expose_env' is a list of names of environment variables";
            problem("invalid_runtime_expose_env", text, node.place.at)
        }),
    }
}

fn texts(node: &Node) -> Option<Vec<String>> {
    node.as_seq()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}

/// A mapping as a JSON object; what JSON cannot hold is refused by its key.
pub(crate) fn object(node: &Node, what: &str, reason: &str) -> Result<Map<String, Json>, Diagnostic> {
    match yaml::to_json(node, "") {
        Ok(Json::Object(object)) => Ok(object),
        Ok(_) => Ok(Map::new()),
        Err(NotJson { problem: text, path, at }) => Err(problem(reason, format!("{what}.{path} {text}"), at)),
    }
}

/// A failed check. The message begins with the reason, which users of the reference know.
pub(crate) fn problem(
    reason: impl Into<String>,
    text: impl std::fmt::Display,
    at: impl Into<Option<Position>>,
) -> Diagnostic {
    let reason = reason.into();
    let message = format!("{reason} ({text})");
    Diagnostic::new(reason, message).at(at)
}

/// The entries of a mapping, by key.
pub(crate) struct Section<'a>(&'a [(Node, Node)]);

impl<'a> Section<'a> {
    pub(crate) const fn new(entries: &'a [(Node, Node)]) -> Self {
        Self(entries)
    }

    fn key(&self, name: &str) -> Option<&'a Node> {
        self.0.iter().map(|(key, _)| key).find(|key| key.as_str() == Some(name))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&'a Node> {
        self.0.iter().find(|(key, _)| key.as_str() == Some(name)).map(|(_, value)| value)
    }

    /// The value, unless Python counts it as false.
    fn truthy(&self, name: &str) -> Option<&'a Node> {
        self.get(name).filter(|node| yaml::is_truthy(&node.value))
    }

    pub(crate) fn only(&self, allowed: &[&str], reason: &str) -> Result<(), Diagnostic> {
        let is_known = |key: &Node| key.as_str().is_some_and(|name| allowed.contains(&name));
        let unknown: Vec<&Node> = self.0.iter().map(|(key, _)| key).filter(|key| !is_known(key)).collect();
        let Some(first) = unknown.first() else { return Ok(()) };
        let reason = format!("{reason}: {}", yaml::repr_sorted(&unknown));
        Err(problem(reason, format!("allowed here: {}", allowed.join(", ")), first.place.at))
    }
}
