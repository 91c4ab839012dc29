//! What an expression of a graph stands for, and what the reference would make of it.
//!
//! `ours` marks a form that the reference refuses with an error although it has one evident meaning; `lead`
//! counts the steps at the beginning of a chain that the reference has forgotten by then, because its
//! groups hand on only what stands on their right.

use std::sync::Arc;

use pyoco_core::expr::Expression;
use serde_json::Value as Json;

use super::ast::Literal;
use crate::program::{Control, NameId, Parallel, Step};
use crate::yaml;

#[derive(Debug, Clone)]
pub(super) enum Value {
    /// A task, or steps one after the other.
    Chain(Chain),
    /// `a & b`, `a | b`, or the list behind a group.
    Group(Group),
    /// A list or tuple as written.
    List(List),
    /// The word `flow`.
    Flow,
    Literal(Literal),
    /// `"X" >> a`.
    Case(Arc<Case>),
    /// `switch("..")` whose cases are still missing.
    Switch(Expression),
    /// The word `switch`.
    SwitchWord,
}

#[derive(Debug, Clone)]
pub(super) struct Chain {
    pub(super) steps: Vec<Step>,
    /// A single task to the reference.
    pub(super) is_task: bool,
    pub(super) ours: bool,
    pub(super) lead: usize,
    /// Steps with everything inside them, and how deep loops, switches and groups go.
    pub(super) size: usize,
    pub(super) depth: usize,
}

impl Chain {
    pub(super) fn task(name: NameId) -> Self {
        Self { steps: vec![Step::Task(name)], is_task: true, ours: false, lead: 0, size: 1, depth: 0 }
    }

    pub(super) fn control(control: Control, size: usize, depth: usize, ours: bool) -> Self {
        Self { steps: vec![Step::Control(Arc::new(control))], is_task: false, ours, lead: 0, size, depth }
    }
}

#[derive(Debug, Clone)]
pub(super) struct List {
    pub(super) items: Vec<Value>,
    pub(super) tuple: bool,
    pub(super) size: usize,
    pub(super) depth: usize,
}

impl List {
    pub(super) fn new(items: Vec<Value>, tuple: bool) -> Self {
        let size = items.iter().fold(1_usize, |sum, item| sum.saturating_add(item.size()));
        let depth = 1 + items.iter().map(Value::depth).max().unwrap_or(0);
        Self { items, tuple, size, depth }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GroupKind {
    All,
    Any,
    List,
}

#[derive(Debug, Clone)]
pub(super) struct Group {
    pub(super) kind: GroupKind,
    pub(super) members: Vec<Value>,
    pub(super) ours: bool,
    /// What stands before it and the reference has forgotten (or, if `ours`, what stands before it).
    pub(super) before: Vec<Step>,
    pub(super) before_depth: usize,
    pub(super) size: usize,
    pub(super) depth: usize,
}

impl Group {
    /// Whether the reference sees all its members: it looks at plain tasks only.
    pub(super) fn is_plain(&self) -> bool {
        self.members.iter().all(|member| matches!(member, Value::Chain(chain) if chain.is_task))
    }
}

#[derive(Debug)]
pub(super) struct Case {
    /// `None`: the default.
    pub(super) value: Option<Json>,
    pub(super) body: Vec<Step>,
    pub(super) size: usize,
    pub(super) depth: usize,
    pub(super) ours: bool,
}

/// Last tasks of a sequence, and whether what follows waits for any of them. `Err`: that cannot be said.
pub(super) fn tails(steps: &[Step]) -> Result<(Vec<NameId>, bool), NoJoin> {
    match steps.last() {
        None | Some(Step::Control(_)) => Ok((Vec::new(), false)),
        Some(Step::Task(task)) => Ok((vec![*task], false)),
        Some(Step::Parallel(parallel)) => {
            let Parallel { branches, any } = &**parallel;
            let mut all = Vec::new();
            for branch in branches {
                let (tails, inner_any) = tails(branch)?;
                // "any of two, and a third" is not one join.
                if inner_any && branches.len() > 1 && tails.len() > 1 {
                    return Err(NoJoin);
                }
                all.extend(tails);
            }
            Ok((all, *any))
        }
    }
}

/// A mixture of "all of" and "any of" that no single join expresses.
#[derive(Debug)]
pub(super) struct NoJoin;

/// First tasks of a sequence.
pub(super) fn heads(steps: &[Step]) -> Vec<NameId> {
    match steps.first() {
        None | Some(Step::Control(_)) => Vec::new(),
        Some(Step::Task(task)) => vec![*task],
        Some(Step::Parallel(parallel)) => parallel.branches.iter().flat_map(|branch| heads(branch)).collect(),
    }
}

/// Whether there is a loop or a switch among the steps.
pub(super) fn has_control(steps: &[Step]) -> bool {
    steps.iter().any(|step| match step {
        Step::Task(_) => false,
        Step::Control(_) => true,
        Step::Parallel(parallel) => parallel.branches.iter().any(|branch| has_control(branch)),
    })
}

impl Value {
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Chain(chain) => chain.size,
            Self::Group(group) => group.size,
            Self::List(list) => list.size,
            Self::Case(case) => case.size,
            Self::Flow | Self::Literal(_) | Self::Switch(_) | Self::SwitchWord => 1,
        }
    }

    pub(super) fn depth(&self) -> usize {
        match self {
            Self::Chain(chain) => chain.depth,
            Self::Group(group) => group.before_depth.max(group.depth),
            Self::List(list) => list.depth,
            Self::Case(case) => case.depth,
            Self::Flow | Self::Literal(_) | Self::Switch(_) | Self::SwitchWord => 0,
        }
    }

    /// Whether a loop or switch in it would be lost if nothing attached it to `flow`.
    pub(super) fn has_control(&self) -> bool {
        match self {
            Self::Chain(chain) => has_control(&chain.steps),
            Self::Group(group) => has_control(&group.before) || group.members.iter().any(Self::has_control),
            Self::List(list) => list.items.iter().any(Self::has_control),
            Self::Case(_) | Self::Flow | Self::Literal(_) | Self::Switch(_) | Self::SwitchWord => false,
        }
    }

    /// What it is, for messages.
    pub(super) fn noun(&self) -> &'static str {
        match self {
            Self::Chain(chain) if chain.is_task => "a task",
            Self::Chain(_) => "a chain of tasks",
            Self::Group(_) => "a group of tasks",
            Self::List(list) if list.tuple => "a tuple",
            Self::List(_) => "a list",
            Self::Flow => "'flow'",
            Self::Literal(_) => "a literal value",
            Self::Case(_) => "a case of a switch",
            Self::Switch(_) => "a switch without cases",
            Self::SwitchWord => "the word 'switch'",
        }
    }

    /// Python's text of it, as far as it has one here.
    pub(super) fn repr(&self) -> String {
        match self {
            Self::Literal(literal) => literal_repr(literal),
            Self::List(List { items, tuple, .. }) => {
                let inner = items.iter().map(Self::repr).collect::<Vec<_>>().join(", ");
                match (tuple, items.len()) {
                    (false, _) => format!("[{inner}]"),
                    (true, 1) => format!("({inner},)"),
                    (true, _) => format!("({inner})"),
                }
            }
            Self::Chain(_)
            | Self::Group(_)
            | Self::Flow
            | Self::Case(_)
            | Self::Switch(_)
            | Self::SwitchWord => {
                format!("<{}>", self.noun())
            }
        }
    }
}

fn literal_repr(literal: &Literal) -> String {
    let value = match literal {
        Literal::None => yaml::Value::Null,
        Literal::Bool(value) => yaml::Value::Bool(*value),
        Literal::Int(value) => yaml::Value::Int(i128::from(*value)),
        Literal::Float(value) => yaml::Value::Float(*value),
        Literal::Str { text, .. } => yaml::Value::Str(text.clone()),
    };
    yaml::repr(&value)
}

/// The value as a case of a switch compares it.
pub(super) fn literal_json(literal: &Literal) -> Json {
    match literal {
        Literal::None => Json::Null,
        Literal::Bool(value) => Json::Bool(*value),
        Literal::Int(value) => Json::from(*value),
        Literal::Float(value) => Json::from(*value),
        Literal::Str { text, .. } => Json::String(text.clone()),
    }
}
