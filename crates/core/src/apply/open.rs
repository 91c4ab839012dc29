//! The sets of open nodes: which node waits for what, kept as events are applied so that nothing has to walk over
//! all nodes to know it.

use crate::plan::{Kind, Runner};
use crate::state::{NodeNumber, NodeState, NodeStatus, OpenNodes, State};
use crate::time::Timestamp;

/// The sets that one node belongs to.
#[derive(Default)]
struct Lists {
    ready: bool,
    for_workers: bool,
    resting: Option<Timestamp>,
    running: bool,
    in_workers: bool,
    deadline: Option<Timestamp>,
    waiting: bool,
    waiting_since: Option<Timestamp>,
    asking: bool,
}

impl State {
    /// Changes a node and keeps the sets right.
    pub(super) fn change(&mut self, number: NodeNumber, change: impl FnOnce(&mut NodeState)) {
        let before = self.lists_of(number);
        unlist(&mut self.open, number, &before);
        if let Some((_, node)) = self.nodes.get_index_mut(number.0 as usize) {
            change(node);
        }
        let after = self.lists_of(number);
        list(&mut self.open, number, &after);
    }

    fn lists_of(&self, number: NodeNumber) -> Lists {
        let Some((_, node)) = self.node(number) else { return Lists::default() };
        let is_workers = self.is_worker_node(node);
        match node.status {
            NodeStatus::Ready if self.is_control(number) => Lists { asking: true, ..Lists::default() },
            NodeStatus::Ready => Lists {
                ready: true,
                resting: node.retry_at,
                for_workers: is_workers && node.retry_at.is_none(),
                ..Lists::default()
            },
            // A loop runs while its body does; what is open then is in the body, unless it asks for its next round.
            NodeStatus::Running if self.is_control(number) => {
                Lists { asking: node.asking, ..Lists::default() }
            }
            NodeStatus::Running => Lists {
                running: true,
                in_workers: is_workers,
                deadline: self.deadline_of(node).filter(|_| !is_workers),
                ..Lists::default()
            },
            NodeStatus::Waiting => Lists {
                waiting: true,
                waiting_since: node.waiting.as_ref().map(|waiting| waiting.since),
                deadline: self.deadline_of(node),
                ..Lists::default()
            },
            NodeStatus::Pending | NodeStatus::Succeeded | NodeStatus::Failed | NodeStatus::Canceled => {
                Lists::default()
            }
        }
    }

    /// Whether a node is a loop or a switch.
    pub(super) fn is_control(&self, number: NodeNumber) -> bool {
        let planned =
            self.node(number).and_then(|(_, node)| node.place).and_then(|place| self.planned(place));
        match planned.map(|planned| &planned.kind) {
            Some(Kind::Repeat { .. } | Kind::ForEach { .. } | Kind::Until { .. } | Kind::Switch { .. }) => {
                true
            }
            Some(Kind::Start | Kind::Success | Kind::Failed | Kind::Canceled | Kind::Task(_)) => false,
            Some(Kind::Fork { .. } | Kind::Join { .. }) | None => false,
        }
    }

    /// When an attempt is to be ended. Time that a caller's node spends waiting for a person does not count; for a
    /// wait node it is all that counts.
    pub fn deadline_of(&self, node: &NodeState) -> Option<Timestamp> {
        let task = self.task_of(node)?;
        let since = match (&task.runner, &node.waiting) {
            (Runner::Wait { .. }, Some(waiting)) => Some(waiting.since),
            (
                Runner::Callable(_) | Runner::Registered(_) | Runner::Command(_) | Runner::External,
                Some(_),
            ) => None,
            (_, None) => node.attempt_started_at,
        };
        Some(since?.after(task.policy.timeout?))
    }
}

fn list(open: &mut OpenNodes, number: NodeNumber, lists: &Lists) {
    if lists.ready {
        open.ready.insert(number);
    }
    if lists.for_workers {
        open.for_workers.insert(number);
    }
    if let Some(at) = lists.resting {
        open.resting.insert((at, number));
    }
    if lists.running {
        open.running.insert(number);
    }
    if lists.in_workers {
        open.in_workers.insert(number);
    }
    if let Some(at) = lists.deadline {
        open.deadlines.insert((at, number));
    }
    if lists.waiting {
        open.waiting.insert(number);
    }
    if let Some(at) = lists.waiting_since {
        open.waiting_since.insert((at, number));
    }
    if lists.asking {
        open.asking.insert(number);
    }
}

fn unlist(open: &mut OpenNodes, number: NodeNumber, lists: &Lists) {
    if lists.ready {
        open.ready.remove(&number);
    }
    if lists.for_workers {
        open.for_workers.remove(&number);
    }
    if let Some(at) = lists.resting {
        open.resting.remove(&(at, number));
    }
    if lists.running {
        open.running.remove(&number);
    }
    if lists.in_workers {
        open.in_workers.remove(&number);
    }
    if let Some(at) = lists.deadline {
        open.deadlines.remove(&(at, number));
    }
    if lists.waiting {
        open.waiting.remove(&number);
    }
    if let Some(at) = lists.waiting_since {
        open.waiting_since.remove(&(at, number));
    }
    if lists.asking {
        open.asking.remove(&number);
    }
}
