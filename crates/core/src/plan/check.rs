//! What every plan obeys, checked once when it is made or read: after that no index can dangle.

use std::collections::HashMap;

use serde::Deserialize;

use super::{Block, JoinPolicy, Kind, Node, NodeIndex, Plan, TaskSpec};
use crate::json::{Object, Weight};

/// Most nodes of one plan, all blocks together.
pub const MAX_NODES: usize = 50_000;
/// Widest join with a rule of its own: each branch that ends is reported, with the names of all.
pub const MAX_CUSTOM_BRANCHES: usize = 256;
/// Largest JSON form: a record holds it whole.
pub const MAX_BYTES: usize = 8 << 20;
/// Deepest JSON form, with room for the record around it.
const MAX_JSON_DEPTH: usize = 100;
/// Longest node id, as `NodeId` has it.
const MAX_ID: usize = 2048;
/// Digits of the largest round number.
const ROUND: usize = 20;
/// Deepest nesting of loops and switches.
pub const MAX_DEPTH: usize = 24;

/// Why a plan was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPlan {
    /// Larger than an execution can hold.
    #[error("the plan has more than {MAX_NODES} nodes")]
    TooManyNodes,
    /// Loops and switches nested too deep.
    #[error("loops and switches are nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// Two nodes of a block, or two tasks, share a name.
    #[error("the name {0:?} is used twice")]
    DuplicateName(String),
    /// An index points nowhere.
    #[error("node {0:?} refers to something that is not there")]
    Dangling(String),
    /// Only a join may wait for several nodes.
    #[error("node {0:?} waits for several nodes without being a join")]
    SeveralWithoutJoin(String),
    /// A loop without a body would never end.
    #[error("loop {0:?} has an empty body")]
    EmptyBody(String),
    /// The id of a node in it could become too long.
    #[error("the name {0:?} makes the ids of nodes longer than {MAX_ID} bytes; shorten it or nest less")]
    IdTooLong(String),
    /// Larger than a record can hold.
    #[error("the plan takes {0} bytes, at most {MAX_BYTES} are allowed")]
    TooLarge(usize),
    /// A rule over too many branches.
    #[error("join {0:?} has a rule of its own over more than {MAX_CUSTOM_BRANCHES} branches")]
    CustomTooWide(String),
    /// A name that cannot be part of a node id.
    #[error("{0:?} cannot be the name of a node")]
    BadName(String),
}

/// A plan as it was read, before its check.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Unchecked {
    pub(super) flow: String,
    pub(super) tasks: Vec<TaskSpec>,
    pub(super) root: Block,
    #[serde(default)]
    pub(super) expose_env: Option<Vec<String>>,
    #[serde(default)]
    pub(super) defaults: Object,
    #[serde(default)]
    pub(super) warnings: Vec<String>,
}

/// What is derived from a block's nodes, so that no walk over them is needed later.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Links {
    pub(super) by_name: HashMap<String, NodeIndex>,
    pub(super) roots: Vec<NodeIndex>,
    pub(super) dependents: Vec<Vec<NodeIndex>>,
}

impl TryFrom<Unchecked> for Plan {
    type Error = InvalidPlan;

    fn try_from(raw: Unchecked) -> Result<Self, InvalidPlan> {
        let mut names = std::collections::HashSet::new();
        for task in &raw.tasks {
            if !names.insert(task.name.as_str()) {
                return Err(InvalidPlan::DuplicateName(task.name.clone()));
            }
        }
        let mut seen = 0;
        let root = link(raw.root, raw.tasks.len(), 0, &mut seen)?;
        check_ids(&root, 0)?;
        let plan = Self {
            flow: raw.flow,
            tasks: raw.tasks,
            root,
            expose_env: raw.expose_env,
            defaults: raw.defaults,
            warnings: raw.warnings,
        };
        let weight = Weight::of(&plan);
        if weight.depth > MAX_JSON_DEPTH {
            return Err(InvalidPlan::TooDeep);
        }
        if weight.bytes > MAX_BYTES {
            return Err(InvalidPlan::TooLarge(weight.bytes));
        }
        Ok(plan)
    }
}

/// Every id that the plan can unfold to has room in a `NodeId`.
fn check_ids(block: &Block, prefix: usize) -> Result<(), InvalidPlan> {
    for node in &block.nodes {
        let escaped = node.name.len() + 2 * node.name.matches(['/', '%']).count();
        let longest = prefix + escaped;
        if longest > MAX_ID {
            return Err(InvalidPlan::IdTooLong(node.name.clone()));
        }
        for inner in node.kind.blocks() {
            check_ids(inner, longest + ROUND + 2)?;
        }
    }
    Ok(())
}

/// Checks a block and everything in it, and fills in its links.
fn link(mut block: Block, tasks: usize, depth: usize, seen: &mut usize) -> Result<Block, InvalidPlan> {
    if depth > MAX_DEPTH {
        return Err(InvalidPlan::TooDeep);
    }
    *seen += block.nodes.len();
    if *seen > MAX_NODES {
        return Err(InvalidPlan::TooManyNodes);
    }
    let mut links = Links { dependents: vec![Vec::new(); block.nodes.len()], ..Links::default() };
    for (number, node) in (0_u32..).zip(&block.nodes) {
        let index = NodeIndex(number);
        check_node(node, tasks, block.nodes.len())?;
        if links.by_name.insert(node.name.clone(), index).is_some() {
            return Err(InvalidPlan::DuplicateName(node.name.clone()));
        }
        if node.after.is_empty() && !node.unreachable {
            links.roots.push(index);
        }
        for before in &node.after {
            links.dependents[before.0 as usize].push(index);
        }
    }
    block.links = links;
    for node in &mut block.nodes {
        link_inner(&mut node.kind, tasks, depth + 1, seen)?;
    }
    Ok(block)
}

fn link_inner(kind: &mut Kind, tasks: usize, depth: usize, seen: &mut usize) -> Result<(), InvalidPlan> {
    match kind {
        Kind::Start | Kind::Success | Kind::Failed | Kind::Canceled => {}
        Kind::Task(_) | Kind::Fork { .. } | Kind::Join { .. } => {}
        Kind::Repeat { body, .. } | Kind::ForEach { body, .. } | Kind::Until { body, .. } => {
            *body = link(std::mem::take(body), tasks, depth, seen)?;
        }
        Kind::Switch { cases, default, .. } => {
            for body in cases.iter_mut().map(|case| &mut case.body).chain(default) {
                *body = link(std::mem::take(body), tasks, depth, seen)?;
            }
        }
    }
    Ok(())
}

fn check_node(node: &Node, tasks: usize, nodes: usize) -> Result<(), InvalidPlan> {
    let dangling = || InvalidPlan::Dangling(node.name.clone());
    let present = |index: &NodeIndex| (index.0 as usize) < nodes;
    if node.name.is_empty() || node.name.len() > 512 || node.name.chars().any(char::is_control) {
        return Err(InvalidPlan::BadName(node.name.clone()));
    }
    if !node.after.iter().all(present) {
        return Err(dangling());
    }
    let is_join = matches!(node.kind, Kind::Join { .. });
    if node.after.len() > 1 && !is_join {
        return Err(InvalidPlan::SeveralWithoutJoin(node.name.clone()));
    }
    match &node.kind {
        Kind::Join { policy: JoinPolicy::Custom(_), .. } if node.after.len() > MAX_CUSTOM_BRANCHES => {
            Err(InvalidPlan::CustomTooWide(node.name.clone()))
        }
        Kind::Task(task) if task.0 as usize >= tasks => Err(dangling()),
        Kind::Fork { branches } if !branches.iter().all(present) => Err(dangling()),
        Kind::Repeat { body, .. } | Kind::ForEach { body, .. } | Kind::Until { body, .. }
            if body.nodes.is_empty() =>
        {
            Err(InvalidPlan::EmptyBody(node.name.clone()))
        }
        Kind::Start | Kind::Success | Kind::Failed | Kind::Canceled => Ok(()),
        Kind::Task(_) | Kind::Fork { .. } | Kind::Join { .. } => Ok(()),
        Kind::Repeat { .. } | Kind::ForEach { .. } | Kind::Until { .. } | Kind::Switch { .. } => Ok(()),
    }
}
