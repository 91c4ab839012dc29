//! The plan of an execution as a graph that can be drawn: every node with its state, every edge, loops and switches unfolded as far as
//! they were opened.

use serde::Serialize;

use super::shown_status;
use crate::ids::NodeId;
use crate::plan::{Block, Kind, Plan};
use crate::state::{Frame, NodeStatus, State};
use crate::time::Timestamp;

/// A graph with more nodes than this is cut: nobody can look at it.
const MOST_NODES: usize = 5_000;

/// The graph of an execution.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct GraphView {
    /// Its nodes: those of the flow, then those of each loop and switch, as they were opened.
    pub nodes: Vec<GraphNode>,
    /// What comes before what, in the same block.
    pub edges: Vec<GraphEdge>,
    /// There are more nodes than are shown.
    pub is_truncated: bool,
}

/// One node.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GraphNode {
    /// Its id. One that stands in a block that was never opened has an id of this graph alone.
    pub id: String,
    /// Its name in its block.
    pub name: String,
    /// What it is, as NODE_CREATED says it.
    pub kind: &'static str,
    /// The task behind it.
    pub task: Option<String>,
    /// The loop or switch that it stands in.
    pub parent: Option<String>,
    /// The round of a loop, from 1.
    pub round: Option<u64>,
    /// The case of a switch.
    pub case: Option<String>,
    /// Where it stands; nothing if its block was never opened.
    pub status: Option<NodeStatus>,
    /// The last attempt that started.
    pub attempt: u32,
    /// When its first attempt started, in unix seconds.
    pub started_at: Option<f64>,
    /// When it settled.
    pub ended_at: Option<f64>,
}

/// One node comes before another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GraphEdge {
    /// The first.
    pub from: String,
    /// The second.
    pub to: String,
}

impl GraphView {
    /// The graph of an execution; nothing before its plan is known.
    pub fn of(state: &State) -> Option<Self> {
        let plan = state.plan.as_deref()?;
        let mut view = Self::default();
        for frame in &state.frames {
            if let Some(block) = plan.root.at(&frame.path) {
                let place = Opened { state, frame, case: case_of(plan, frame) };
                view.add(state, plan, block, &place);
            }
        }
        if state.frames.is_empty() {
            view.add_unopened(plan, &plan.root, "", None, None);
        }
        Some(view)
    }

    /// A block that was opened.
    fn add(&mut self, state: &State, plan: &Plan, block: &Block, place: &Opened<'_>) {
        let prefix = &place.frame.prefix;
        for node in block.nodes() {
            if !self.has_room() {
                return;
            }
            let id = NodeId::within(prefix, &node.name);
            let reached = state.nodes.get(&id);
            let unix = |at: Option<Timestamp>| at.map(Timestamp::as_unix_seconds);
            self.nodes.push(GraphNode {
                id: id.to_string(),
                name: node.name.clone(),
                kind: State::node_type(node, plan),
                task: task_name(plan, &node.kind),
                parent: place.parent(),
                round: place.round(),
                case: place.case.clone(),
                status: Some(shown_status(state, reached)),
                attempt: reached.map_or(0, |node| node.attempt.0),
                started_at: unix(reached.and_then(|node| node.started_at)),
                ended_at: unix(reached.and_then(|node| node.ended_at)),
            });
            let was_opened = reached.is_some_and(|node| node.round > 0);
            if !was_opened {
                self.add_insides(plan, &node.kind, id.as_str());
            }
        }
        self.join(block, |name| NodeId::within(prefix, name).to_string());
    }

    /// The blocks of a loop or switch that was not opened.
    fn add_insides(&mut self, plan: &Plan, kind: &Kind, parent: &str) {
        for (number, block) in kind.blocks().into_iter().enumerate() {
            let case = case_name(kind, number);
            let prefix = format!("{parent}~{number}");
            self.add_unopened(plan, block, &prefix, Some(parent), case.as_deref());
        }
    }

    fn add_unopened(
        &mut self,
        plan: &Plan,
        block: &Block,
        prefix: &str,
        parent: Option<&str>,
        case: Option<&str>,
    ) {
        let id = |name: &str| if prefix.is_empty() { name.to_owned() } else { format!("{prefix}/{name}") };
        for node in block.nodes() {
            if !self.has_room() {
                return;
            }
            self.nodes.push(GraphNode {
                id: id(&node.name),
                name: node.name.clone(),
                kind: State::node_type(node, plan),
                task: task_name(plan, &node.kind),
                parent: parent.map(ToOwned::to_owned),
                round: None,
                case: case.map(ToOwned::to_owned),
                status: None,
                attempt: 0,
                started_at: None,
                ended_at: None,
            });
            self.add_insides(plan, &node.kind, &id(&node.name));
        }
        self.join(block, id);
    }

    fn join(&mut self, block: &Block, id: impl Fn(&str) -> String) {
        for node in block.nodes() {
            let before = node.after.iter().filter_map(|index| block.node(*index));
            self.edges.extend(before.map(|first| GraphEdge { from: id(&first.name), to: id(&node.name) }));
        }
    }

    fn has_room(&mut self) -> bool {
        self.is_truncated |= self.nodes.len() >= MOST_NODES;
        !self.is_truncated
    }
}

/// A block that was opened.
struct Opened<'a> {
    state: &'a State,
    frame: &'a Frame,
    case: Option<String>,
}

impl Opened<'_> {
    fn parent(&self) -> Option<String> {
        let (id, _) = self.state.node(self.frame.parent?)?;
        Some(id.to_string())
    }

    /// A switch has one round, which is none.
    fn round(&self) -> Option<u64> {
        (self.frame.parent.is_some() && self.case.is_none()).then_some(self.frame.round)
    }
}

/// The case of a switch that a block belongs to.
fn case_of(plan: &Plan, frame: &Frame) -> Option<String> {
    let ((index, which), outer) = frame.path.0.split_last()?;
    let outer = plan.root.at(&crate::state::BlockPath(outer.to_vec()))?;
    case_name(&outer.node(*index)?.kind, usize::try_from(*which).ok()?)
}

fn case_name(kind: &Kind, number: usize) -> Option<String> {
    match kind {
        Kind::Switch { cases, .. } => {
            let text = |case: &crate::plan::Case| case.value.0.to_string();
            Some(cases.get(number).map_or_else(|| "default".to_owned(), text))
        }
        Kind::Start | Kind::Success | Kind::Failed | Kind::Canceled | Kind::Task(_) => None,
        Kind::Fork { .. } | Kind::Join { .. } => None,
        Kind::Repeat { .. } | Kind::ForEach { .. } | Kind::Until { .. } => None,
    }
}

fn task_name(plan: &Plan, kind: &Kind) -> Option<String> {
    let Kind::Task(task) = kind else { return None };
    plan.task(*task).map(|task| task.name.clone())
}
