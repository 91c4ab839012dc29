//! What a repeat of an execution keeps of it: results of tasks that succeeded, and the answers that loops and switches got.
//!
//! It stands in the first record of the repeat. `decide::advance` uses it up: a node that is reached and kept has succeeded already.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::event::{BlobRef, Changes, Choice, Event};
use crate::ids::{ExecutionId, NodeId};
use crate::json::Json;
use crate::plan::NodeIndex;
use crate::state::{NodeStatus, Place, State};

/// What is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Kept {
    /// The execution it comes from.
    pub of: ExecutionId,
    /// By node.
    pub nodes: BTreeMap<NodeId, KeptNode>,
}

/// What is kept of one node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KeptNode {
    /// It is a task that succeeded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub succeeded: bool,
    /// What it produced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Arc<Json>>,
    /// The value where it stands outside the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_ref: Option<BlobRef>,
    /// What it changed in the context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Box<Changes>>,
    /// What a loop or switch was answered, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Choice>,
}

impl Kept {
    /// The task behind a node succeeded.
    pub(crate) fn success(&self, id: &NodeId) -> Option<&KeptNode> {
        self.nodes.get(id).filter(|node| node.succeeded)
    }

    /// What a loop or switch was answered when it asked in this round; before its first round that is 0.
    pub(crate) fn answer(&self, id: &NodeId, round: u64) -> Option<&Choice> {
        let position = usize::try_from(round.saturating_sub(1)).ok()?;
        self.nodes.get(id)?.choices.get(position)
    }

    /// What can be kept of an execution, given its history. With `from`, that node and everything behind it is left out, so that
    /// it runs again. When the parameters are others, a loop or switch that has not succeeded is asked again.
    pub fn new<'a>(
        state: &State,
        history: impl IntoIterator<Item = &'a Event>,
        from: Option<&NodeId>,
        is_input_changed: bool,
    ) -> Self {
        let mut nodes: BTreeMap<NodeId, KeptNode> = BTreeMap::new();
        for event in history {
            if let Event::NodeSucceeded(payload) = event
                && is_done_task(state, &payload.node_id)
            {
                let kept = nodes.entry(payload.node_id.clone()).or_default();
                kept.succeeded = true;
                kept.output.clone_from(&payload.output);
                kept.output_ref.clone_from(&payload.output_ref);
                kept.changes.clone_from(&payload.changes);
            } else if let Event::NodeStarted(payload) = event {
                keep_choice(&mut nodes, &payload.node_id, &payload.choice);
            } else if let Event::NodeProgressReported(payload) = event {
                keep_choice(&mut nodes, &payload.node_id, &payload.choice);
            }
        }
        let mut kept = Self { of: state.id.clone(), nodes };
        if let Some(place) = from.and_then(|from| state.place_of(from)) {
            kept.leave_out(state, place);
        }
        if is_input_changed {
            let is_open =
                |id: &NodeId| state.nodes.get(id).is_none_or(|node| node.status != NodeStatus::Succeeded);
            let asked = kept.nodes.iter().filter(|(id, node)| !node.choices.is_empty() && is_open(id));
            let asked: HashSet<String> = asked.map(|(id, _)| id.as_str().to_owned()).collect();
            kept.forget(&asked);
        }
        kept
    }

    /// Leaves out these nodes and everything inside of them.
    fn forget(&mut self, gone: &HashSet<String>) {
        self.nodes.retain(|id, _| !prefixes(id.as_str()).any(|prefix| gone.contains(prefix)));
    }

    /// Leaves out a node and everything that came after it: in its own block, in later rounds of the loops around it, and behind
    /// those loops.
    fn leave_out(&mut self, state: &State, from: Place) {
        let mut gone: HashSet<String> = HashSet::new();
        let mut place = from;
        let mut is_inside = false;
        loop {
            for index in behind(state, place) {
                // The loop around the node goes on as it did until then; what stands behind the loop does not.
                let is_loop_itself = is_inside && index == place.index;
                if let Some(id) = state.id_at(Place { index, ..place }).filter(|_| !is_loop_itself) {
                    gone.insert(id.as_str().to_owned());
                }
            }
            let Some(frame) = state.frames.get(place.frame.0 as usize) else { break };
            let Some((id, around)) = frame.parent.and_then(|parent| state.node(parent)) else { break };
            gone.extend((frame.round + 1..=around.round).map(|round| format!("{id}/{round}")));
            let answers = self.nodes.get_mut(id).map(|kept| &mut kept.choices);
            // An until is answered after each round, the others once, before the first.
            if let Some(answers) = answers.filter(|answers| matches!(answers.first(), Some(Choice::Holds(_))))
            {
                answers.truncate(usize::try_from(frame.round.saturating_sub(1)).unwrap_or(usize::MAX));
            }
            let Some(outer) = around.place else { break };
            (place, is_inside) = (outer, true);
        }
        self.forget(&gone);
    }
}

fn is_done_task(state: &State, id: &NodeId) -> bool {
    state.nodes.get(id).is_some_and(|node| node.task.is_some() && node.status == NodeStatus::Succeeded)
}

fn keep_choice(nodes: &mut BTreeMap<NodeId, KeptNode>, id: &NodeId, choice: &Option<Choice>) {
    match choice {
        Some(choice @ (Choice::Rounds(_) | Choice::Items(_) | Choice::Holds(_) | Choice::Case(_))) => {
            nodes.entry(id.clone()).or_default().choices.push(choice.clone());
        }
        Some(Choice::Unanswerable(_)) | None => {}
    }
}

/// A planned node and those of its block that wait for it, directly or not.
fn behind(state: &State, place: Place) -> Vec<NodeIndex> {
    let mut found = vec![place.index];
    let mut seen: HashSet<NodeIndex> = found.iter().copied().collect();
    let Some(block) = state.block(place.frame) else { return found };
    let mut next = 0;
    while let Some(index) = found.get(next).copied() {
        next += 1;
        found.extend(block.dependents(index).iter().copied().filter(|index| seen.insert(*index)));
    }
    found
}

/// A path and every path above it.
fn prefixes(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').filter_map(|(at, _)| path.get(..at)).chain(std::iter::once(path))
}
