//! What an expression sees at a node, and the questions that loops and switches ask.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{Context, FrameIndex, NodeNumber, NodeState, Root, State};
use crate::event::Choice;
use crate::expr::{self, Expression, Scope};
use crate::ids::NodeId;
use crate::json::Json;
use crate::plan::{Case, Count, Kind};

/// One round of an enclosing loop, as `ctx.loop` shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct LoopFrame {
    /// The members name, type, index, iteration, count, item, condition and path.
    pub members: Map<String, Value>,
    /// The variables that a for-each sets.
    pub variables: Vec<(String, Value)>,
}

/// What an expression, or a task, sees at one node.
#[derive(Debug)]
pub struct NodeScope<'a> {
    context: &'a Context,
    env: &'a HashMap<String, String>,
    exposed: Option<&'a [String]>,
    innermost: Value,
    loops: Value,
    variables: Map<String, Value>,
}

impl Scope for NodeScope<'_> {
    fn ctx(&self, root: &str) -> Option<&Value> {
        match root {
            "loop" => Some(&self.innermost),
            "loops" => Some(&self.loops),
            _ => match Root::named(root) {
                Some(root) => Some(self.context.root(root)),
                None => self.variables.get(root),
            },
        }
    }

    fn member(&self, root: &str, key: &str) -> Option<&Value> {
        match Root::named(root) {
            Some(root) => self.context.member(root, key),
            None => self.ctx(root)?.as_object()?.get(key),
        }
    }

    fn env(&self, name: &str) -> Option<&str> {
        if self.exposed.is_some_and(|names| !names.iter().any(|exposed| exposed == name)) {
            return None;
        }
        self.env.get(name).map(String::as_str)
    }
}

/// A question that a reached loop or switch asks before it can go on.
#[derive(Debug, Clone)]
pub struct Question<'a> {
    /// Who asks.
    pub node: &'a NodeId,
    /// About what.
    pub expression: &'a Expression,
    asks: Asks<'a>,
}

#[derive(Debug, Clone)]
enum Asks<'a> {
    Rounds,
    Items,
    Holds,
    Case(&'a [Case], bool),
}

impl State {
    /// The questions that are open, in the order in which they were asked.
    pub fn questions(&self) -> impl Iterator<Item = Question<'_>> {
        self.open.asking.iter().filter_map(|number| self.question(*number))
    }

    /// The question of one node.
    pub fn question(&self, number: NodeNumber) -> Option<Question<'_>> {
        let (node, state) = self.node(number)?;
        let (expression, asks) = match &self.planned(state.place?)?.kind {
            Kind::Repeat { count: Count::Computed(expression), .. } => (expression, Asks::Rounds),
            Kind::ForEach { over, .. } => (over, Asks::Items),
            Kind::Until { condition, .. } => (condition, Asks::Holds),
            Kind::Switch { on, cases, default } => (on, Asks::Case(cases, default.is_some())),
            Kind::Repeat { count: Count::Fixed(_), .. } | Kind::Start | Kind::Success | Kind::Failed => {
                return None;
            }
            Kind::Canceled | Kind::Task(_) | Kind::Fork { .. } | Kind::Join { .. } => return None,
        };
        Some(Question { node, expression, asks })
    }

    /// The rounds of the loops around a node, outermost first. The round that an asking until has just
    /// finished counts too: its condition is looked at with that round still in view.
    pub fn loops_around(&self, number: NodeNumber) -> Vec<LoopFrame> {
        let mut chain: Vec<(NodeNumber, u64)> = Vec::new();
        let Some((_, node)) = self.node(number) else { return Vec::new() };
        if node.asking {
            chain.push((number, node.round));
        }
        let mut frame: Option<FrameIndex> = node.place.map(|place| place.frame);
        while let Some(current) = frame.and_then(|index| self.frames.get(index.0 as usize)) {
            let Some(parent) = current.parent else { break };
            chain.push((parent, current.round));
            frame = self.node(parent).and_then(|(_, node)| node.place).map(|place| place.frame);
        }
        let mut frames: Vec<LoopFrame> = Vec::new();
        for (number, round) in chain.into_iter().rev() {
            let parent_path =
                frames.last().and_then(|frame| frame.members.get("path")).and_then(Value::as_str);
            let made = self.node(number).and_then(|(_, node)| self.loop_frame(node, round, parent_path));
            frames.extend(made);
        }
        frames
    }

    /// A switch is no loop and has no frame.
    fn loop_frame(&self, node: &NodeState, round: u64, parent_path: Option<&str>) -> Option<LoopFrame> {
        let index = round.saturating_sub(1);
        let item = || {
            let items = node.items.as_ref();
            let item = usize::try_from(index).ok().and_then(|at| items?.get(at));
            item.map_or(Value::Null, |item| item.0.clone())
        };
        let (name, kind, count, item, condition, variables) = match &self.planned(node.place?)?.kind {
            Kind::Repeat { .. } => {
                ("repeat".to_owned(), "repeat", json!(node.rounds), Value::Null, Value::Null, Vec::new())
            }
            Kind::ForEach { over, item: alias, index: position, .. } => {
                let name = format!("foreach:{}", alias.as_deref().unwrap_or_else(|| over.text()));
                let mut variables: Vec<(String, Value)> = Vec::new();
                variables.extend(alias.iter().map(|alias| (alias.clone(), item())));
                variables.extend(position.iter().map(|position| (position.clone(), json!(index))));
                (name, "foreach", json!(node.rounds), item(), Value::Null, variables)
            }
            Kind::Until { max_rounds, .. } => {
                let condition = node.condition.map_or(Value::Null, Value::Bool);
                ("until".to_owned(), "until", json!(max_rounds), Value::Null, condition, Vec::new())
            }
            Kind::Switch { .. } | Kind::Start | Kind::Success | Kind::Failed | Kind::Canceled => return None,
            Kind::Task(_) | Kind::Fork { .. } | Kind::Join { .. } => return None,
        };
        let step = format!("{name}[{index}]");
        let path = parent_path.map_or_else(|| step.clone(), |parent| format!("{parent}.{step}"));
        let members = [
            ("name", Value::String(name)),
            ("type", json!(kind)),
            ("index", json!(index)),
            ("iteration", json!(round)),
            ("count", count),
            ("item", item),
            ("condition", condition),
            ("path", Value::String(path)),
        ];
        let members = members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        Some(LoopFrame { members, variables })
    }

    /// What an expression sees at a node. `env` is the worker's environment.
    pub fn scope_at<'a>(&'a self, number: NodeNumber, env: &'a HashMap<String, String>) -> NodeScope<'a> {
        let frames = self.loops_around(number);
        let mut variables = Map::new();
        for (name, value) in frames.iter().flat_map(|frame| &frame.variables) {
            variables.insert(name.clone(), value.clone());
        }
        let loops: Vec<Value> = frames.into_iter().map(|frame| Value::Object(frame.members)).collect();
        NodeScope {
            context: &self.context,
            env,
            exposed: self.plan.as_ref().and_then(|plan| plan.expose_env.as_deref()),
            innermost: loops.last().cloned().unwrap_or(Value::Null),
            loops: Value::Array(loops),
            variables,
        }
    }
}

impl Question<'_> {
    /// Evaluates the expression and says what follows from it.
    pub fn answer(&self, scope: &dyn Scope) -> Choice {
        let value = match self.expression.eval(scope) {
            Ok(value) => value,
            Err(error) => return Choice::Unanswerable(error.to_string()),
        };
        match &self.asks {
            Asks::Rounds => rounds(&value),
            Asks::Items => items(&value),
            Asks::Holds => Choice::Holds(value.truthy()),
            Asks::Case(cases, has_default) => {
                let found = cases.iter().position(|case| expr::Value::from_json(&case.value.0).py_eq(&value));
                match found.and_then(|at| u32::try_from(at).ok()) {
                    Some(case) => Choice::Case(Some(case)),
                    None if *has_default => Choice::Case(None),
                    None => Choice::Unanswerable(format!(
                        "Switch expression '{}' did not match any case.",
                        self.expression.text()
                    )),
                }
            }
        }
    }
}

fn rounds(value: &expr::Value) -> Choice {
    match value {
        expr::Value::Bool(flag) => Choice::Rounds(u64::from(*flag)),
        expr::Value::Int(count) => match u64::try_from(count) {
            Ok(count) => Choice::Rounds(count),
            Err(_) if count.sign() == num_bigint::Sign::Minus => {
                Choice::Unanswerable("Repeat count cannot be negative.".to_owned())
            }
            Err(_) => Choice::Unanswerable("Repeat count is too large.".to_owned()),
        },
        expr::Value::None
        | expr::Value::Float(_)
        | expr::Value::Str(_)
        | expr::Value::List(_)
        | expr::Value::Map(_) => Choice::Unanswerable("Repeat count must evaluate to an integer.".to_owned()),
    }
}

fn items(value: &expr::Value) -> Choice {
    match value {
        expr::Value::List(_) => match value.to_json() {
            Some(Value::Array(items)) => Choice::Items(Arc::new(items.into_iter().map(Json).collect())),
            Some(_) | None => {
                Choice::Unanswerable("ForEach source holds a number that JSON cannot express.".to_owned())
            }
        },
        expr::Value::None | expr::Value::Bool(_) | expr::Value::Int(_) | expr::Value::Float(_) => {
            not_a_list()
        }
        expr::Value::Str(_) | expr::Value::Map(_) => not_a_list(),
    }
}

fn not_a_list() -> Choice {
    Choice::Unanswerable("ForEach source must evaluate to a list or tuple.".to_owned())
}
