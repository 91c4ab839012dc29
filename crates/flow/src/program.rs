//! What a graph says, whichever language it was written in: who waits for whom, or the steps of a program.
//!
//! Names are numbers here; whether they are tasks is decided when a plan is compiled.

use std::sync::Arc;

use indexmap::IndexMap;
use pyoco_core::expr::Expression;
use pyoco_core::plan::Count;
use serde_json::Value as Json;

use crate::diagnostic::Position;

/// The number of a name in `Program::names`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NameId(pub(crate) usize);

/// The meaning of a graph.
#[derive(Debug, Clone, Default)]
pub(crate) struct Program {
    /// Every name the graph uses, where it first does.
    pub(crate) names: IndexMap<String, Position>,
    /// `(task, on)`: the first waits for the second. Means nothing when there are steps.
    pub(crate) links: Vec<(NameId, NameId)>,
    /// Tasks that wait for any of theirs.
    pub(crate) any: Vec<NameId>,
    /// Present when there is a loop or a switch: then only these run.
    pub(crate) steps: Option<Vec<Step>>,
    /// Policies the graph sets.
    pub(crate) policies: Vec<(NameId, PolicyChange)>,
    /// What the author should know.
    pub(crate) warnings: Vec<String>,
}

/// One step of a sequence. Shared, because a bound name may be used often.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Task(NameId),
    Control(Arc<Control>),
    Parallel(Arc<Parallel>),
}

/// Sequences side by side.
#[derive(Debug)]
pub(crate) struct Parallel {
    pub(crate) branches: Vec<Vec<Step>>,
    /// What follows waits for any of them, not all.
    pub(crate) any: bool,
}

/// A loop or a switch.
#[derive(Debug)]
pub(crate) struct Control {
    /// Its number in the graph, to find out which of them a flow really contains.
    pub(crate) id: usize,
    pub(crate) kind: ControlKind,
}

#[derive(Debug)]
pub(crate) enum ControlKind {
    Repeat { count: Count, body: Vec<Step> },
    ForEach { over: Expression, item: Option<String>, index: Option<String>, body: Vec<Step> },
    Until { condition: Expression, max_rounds: i64, body: Vec<Step> },
    Switch { on: Expression, cases: Vec<(Json, Vec<Step>)>, default: Option<Vec<Step>> },
}

impl ControlKind {
    /// The sequences inside.
    pub(crate) fn bodies(&self) -> Vec<&[Step]> {
        match self {
            Self::Repeat { body, .. } | Self::ForEach { body, .. } | Self::Until { body, .. } => vec![body],
            Self::Switch { cases, default, .. } => {
                cases.iter().map(|(_, body)| body.as_slice()).chain(default.as_deref()).collect()
            }
        }
    }
}

/// One policy of a task.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum PolicyChange {
    Fail(pyoco_core::plan::FailPolicy),
    Retries(u32),
    Timeout(Option<pyoco_core::time::Millis>),
}
