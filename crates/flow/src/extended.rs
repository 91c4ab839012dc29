//! The keys that version 2 adds to flow.yaml: who runs a task, its policy, how it joins, what it is a copy
//! of; pipes and the language of the graph.

use indexmap::IndexMap;
use pyoco_core::expr::Expression;
use pyoco_core::json::Json;
use pyoco_core::plan::{FailPolicy, JoinPolicy};
use pyoco_core::time::Millis;

use crate::diagnostic::{Diagnostic, Position};
use crate::document::{Section, Syntax, TaskEntry, Text, problem};
use crate::yaml::{self, Node, Value};

/// Every key of a task in version 2.
pub(crate) const TASK_KEYS: [&str; 11] = [
    "callable",
    "inputs",
    "outputs",
    "command",
    "wait",
    "use",
    "retries",
    "retry_delay_sec",
    "timeout_sec",
    "fail_policy",
    "join",
];

/// Most retries of a task.
const MAX_RETRIES: i128 = 100;

/// What a task of version 2 says beyond version 1.
#[derive(Debug, Clone, Default)]
pub(crate) struct Extended {
    pub(crate) command: Option<Vec<String>>,
    pub(crate) wait: Option<Wait>,
    pub(crate) uses: Option<String>,
    pub(crate) retries: Option<u32>,
    pub(crate) retry_delay: Option<Millis>,
    pub(crate) timeout: Option<Millis>,
    pub(crate) fail: Option<FailPolicy>,
    pub(crate) join: Option<JoinPolicy>,
}

/// A task that waits to be resumed.
#[derive(Debug, Clone)]
pub(crate) struct Wait {
    pub(crate) key: String,
    pub(crate) prompt: Option<Json>,
}

impl Extended {
    pub(crate) fn read(
        name: &str,
        task: &Section<'_>,
        has_callable: bool,
        at: Position,
    ) -> Result<Self, Diagnostic> {
        let read = Reader { name, task };
        let this = Self {
            command: read.command()?,
            wait: read.wait()?,
            uses: read.uses()?,
            retries: read.retries()?,
            retry_delay: read.seconds("retry_delay_sec", 0.0, "a number of seconds, 0 or more")?,
            timeout: read.seconds("timeout_sec", f64::MIN_POSITIVE, "a number of seconds above 0")?,
            fail: read.fail_policy()?,
            join: read.join()?,
        };
        this.check_runners(name, has_callable, at)?;
        Ok(this)
    }

    fn check_runners(&self, name: &str, has_callable: bool, at: Position) -> Result<(), Diagnostic> {
        let given = [
            ("callable", has_callable),
            ("use", self.uses.is_some()),
            ("command", self.command.is_some()),
            ("wait", self.wait.is_some()),
        ];
        let mut given = given.into_iter().filter(|(_, present)| *present).map(|(key, _)| key);
        if let (Some(first), Some(second)) = (given.next(), given.next()) {
            let message =
                format!("Invalid config: tasks.{name} cannot define both '{first}' and '{second}'.");
            return Err(Diagnostic::new(format!("invalid_task_config: {name}"), message)
                .at(at)
                .with_help("a task is run in one way: keep one of the two"));
        }
        Ok(())
    }
}

/// The keys of one task, with its name for the messages.
struct Reader<'a> {
    name: &'a str,
    task: &'a Section<'a>,
}

impl<'a> Reader<'a> {
    fn get(&self, key: &str) -> Option<&'a Node> {
        self.task.get(key).filter(|node| !node.is_null())
    }

    fn wrong(&self, key: &str, wanted: &str, node: &Node) -> Diagnostic {
        problem(format!("invalid_task_{key}: {}", self.name), format!("'{key}' is {wanted}"), node.place.at)
    }

    fn command(&self) -> Result<Option<Vec<String>>, Diagnostic> {
        let Some(node) = self.get("command") else { return Ok(None) };
        let items = node.as_seq().unwrap_or_default();
        let words: Option<Vec<String>> = items.iter().map(|item| item.as_str().map(str::to_owned)).collect();
        match words {
            Some(words) if words.first().is_some_and(|program| !program.is_empty()) => Ok(Some(words)),
            Some(_) | None => Err(self.wrong("command", "a list of texts, e.g. ['ls', '-l']", node)),
        }
    }

    fn wait(&self) -> Result<Option<Wait>, Diagnostic> {
        let Some(node) = self.get("wait") else { return Ok(None) };
        let wrong = || self.wrong("wait", "a mapping {key: text, prompt: anything}", node);
        let section = Section::new(node.as_map().ok_or_else(wrong)?);
        section.only(&["key", "prompt"], &format!("unknown_wait_keys: {}", self.name))?;
        let key = section
            .get("key")
            .and_then(Node::as_str)
            .filter(|key| !key.trim().is_empty())
            .ok_or_else(wrong)?;
        let prompt = match section.get("prompt").filter(|node| !node.is_null()) {
            None => None,
            Some(node) => match yaml::to_json(node, "wait.prompt") {
                Ok(value) => Some(Json(value)),
                Err(error) => {
                    let text = format!("{} {}", error.path, error.problem);
                    return Err(problem(format!("invalid_task_wait: {}", self.name), text, error.at));
                }
            },
        };
        Ok(Some(Wait { key: key.to_owned(), prompt }))
    }

    fn uses(&self) -> Result<Option<String>, Diagnostic> {
        let Some(node) = self.get("use") else { return Ok(None) };
        match node.as_str() {
            Some(text) if !text.trim().is_empty() => Ok(Some(text.to_owned())),
            Some(_) | None => Err(self.wrong("use", "the name of another task of this file", node)),
        }
    }

    fn retries(&self) -> Result<Option<u32>, Diagnostic> {
        let Some(node) = self.get("retries") else { return Ok(None) };
        if let Value::Int(count) = node.value
            && (0..=MAX_RETRIES).contains(&count)
        {
            return Ok(u32::try_from(count).ok());
        }
        Err(self.wrong("retries", "a whole number from 0 to 100", node))
    }

    fn seconds(&self, key: &str, least: f64, wanted: &str) -> Result<Option<Millis>, Diagnostic> {
        let Some(node) = self.get(key) else { return Ok(None) };
        let seconds = number(&node.value).filter(|seconds| *seconds >= least);
        match seconds.and_then(Millis::from_seconds) {
            // A limit that rounds to nothing would be no limit at all.
            Some(Millis(0)) if least > 0.0 => Ok(Some(Millis(1))),
            Some(millis) => Ok(Some(millis)),
            None => Err(self.wrong(key, wanted, node)),
        }
    }

    fn fail_policy(&self) -> Result<Option<FailPolicy>, Diagnostic> {
        let Some(node) = self.get("fail_policy") else { return Ok(None) };
        match node.as_str() {
            Some("stop") => Ok(Some(FailPolicy::Stop)),
            Some("isolate") => Ok(Some(FailPolicy::Isolate)),
            Some(_) | None => Err(self.wrong("fail_policy", "stop or isolate", node)),
        }
    }

    fn join(&self) -> Result<Option<JoinPolicy>, Diagnostic> {
        const WANTED: &str = "ALL_SUCCESS, ANY_SUCCESS, ALL_DONE or {policy: CUSTOM, when: \"expression\"}";
        let Some(node) = self.get("join") else { return Ok(None) };
        let wrong = || self.wrong("join", WANTED, node);
        let (policy, when) = match node.as_map() {
            None => (node.as_str().ok_or_else(wrong)?, None),
            Some(entries) => {
                let section = Section::new(entries);
                section.only(&["policy", "when"], &format!("unknown_join_keys: {}", self.name))?;
                let policy = section.get("policy").and_then(Node::as_str).ok_or_else(wrong)?;
                (policy, section.get("when"))
            }
        };
        match (policy, when) {
            ("ALL_SUCCESS", None) => Ok(Some(JoinPolicy::AllSuccess)),
            ("ANY_SUCCESS", None) => Ok(Some(JoinPolicy::AnySuccess)),
            ("ALL_DONE", None) => Ok(Some(JoinPolicy::AllDone)),
            ("CUSTOM", Some(when)) => {
                let text = when.as_str().ok_or_else(wrong)?;
                let expression =
                    Expression::parse(text).map_err(|error| self.wrong("join", &error.to_string(), when))?;
                Ok(Some(JoinPolicy::Custom(expression)))
            }
            _ => Err(wrong()),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "seconds beyond 2^53 are refused anyway")]
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(value) => Some(*value as f64),
        Value::Float(value) => Some(*value),
        Value::Null | Value::Bool(_) | Value::Huge(_) | Value::Str(_) | Value::Date(_) => None,
        Value::Binary(_) | Value::Seq(_) | Value::Pairs(_) | Value::Map(_) | Value::Set(_) => None,
    }
}

/// Every `use` names a task of the file, and following them comes to an end.
pub(crate) fn check_uses(tasks: &IndexMap<String, TaskEntry>) -> Result<(), Diagnostic> {
    // 1: on the way, 2: known to end.
    let mut seen = vec![0_u8; tasks.len()];
    for start in 0..tasks.len() {
        let mut way = Vec::new();
        let mut current = start;
        while let Some((name, entry)) = tasks.get_index(current).filter(|_| seen[current] != 2) {
            let refuse =
                |message: String| Diagnostic::new(format!("invalid_task_use: {name}"), message).at(entry.at);
            if seen[current] == 1 {
                return Err(refuse(format!("Task '{name}' uses itself, directly or through others.")));
            }
            seen[current] = 1;
            way.push(current);
            let Some(uses) = &entry.extended.uses else { break };
            let Some(next) = tasks.get_index_of(uses) else {
                return Err(refuse(format!("Task '{name}' uses unknown task '{uses}'."))
                    .with_help("'use' names another task of this file"));
            };
            current = next;
        }
        for index in way {
            seen[index] = 2;
        }
    }
    Ok(())
}

/// `flow.syntax`.
pub(crate) fn read_syntax(node: Option<&Node>) -> Result<Syntax, Diagnostic> {
    match node.map(|node| (node, node.as_str())) {
        None | Some((_, Some("server"))) => Ok(Syntax::Server),
        Some((_, Some("native"))) => Ok(Syntax::Native),
        Some((node, _)) => Err(problem("invalid_flow_syntax", "'syntax' is server or native", node.place.at)),
    }
}

/// `pipes`: named pieces of graph text.
pub(crate) fn read_pipes(node: Option<&Node>) -> Result<IndexMap<String, Text>, Diagnostic> {
    let Some(node) = node.filter(|node| yaml::is_truthy(&node.value)) else { return Ok(IndexMap::new()) };
    let refuse = |message: String, at| Diagnostic::new("invalid_pipes", message).at(at);
    let Some(entries) = node.as_map() else {
        return Err(refuse("Invalid config: 'pipes' must be a mapping/object.".to_owned(), node.place.at));
    };
    let mut pipes = IndexMap::with_capacity(entries.len());
    for (key, value) in entries {
        let name = key.as_str().map_or_else(|| yaml::repr(&key.value), str::to_owned);
        let Some(text) = value.as_str() else {
            return Err(refuse(format!("Invalid config: pipes.{name} must be a string."), value.place.at));
        };
        pipes.insert(name, Text { text: text.to_owned(), place: value.place });
    }
    Ok(pipes)
}
