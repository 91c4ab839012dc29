//! Opening and settling of blocks: what an ended node makes possible.

use std::collections::BTreeMap;

use crate::event::Choice;
use crate::plan::{Block, Kind, NodeIndex};
use crate::state::{
    BlockPath, Frame, FrameIndex, NodeNumber, NodeStatus, Phase, Place, Settled, State, TaskRecord, Todo,
};

impl State {
    /// Opens the whole flow, once it is started and its plan is known.
    pub(crate) fn open_root(&mut self) {
        let Some(plan) = self.plan.clone() else { return };
        if self.phase != Phase::Started || !self.frames.is_empty() {
            return;
        }
        self.tasks = vec![TaskRecord::default(); plan.tasks.len()];
        self.open_frame(&plan.root, String::new(), BlockPath::default(), None, 1);
    }

    fn open_frame(
        &mut self,
        block: &Block,
        prefix: String,
        path: BlockPath,
        parent: Option<NodeNumber>,
        round: u64,
    ) {
        let frame = FrameIndex::from_index(self.frames.len());
        let open = block.nodes().len();
        self.frame_by_prefix.insert(prefix.clone(), frame);
        self.frames.push(Frame {
            prefix,
            path,
            parent,
            round,
            settled: vec![None; open],
            open,
            gates: BTreeMap::new(),
        });
        for index in block.roots() {
            self.plan_next(Todo::Reach(Place { frame, index: *index }));
        }
        if open == 0 {
            self.frame_settled(frame);
        }
    }

    /// A loop or switch has decided: its first block opens, or it is done already.
    pub(super) fn begin_control(&mut self, number: NodeNumber, choice: Option<&Choice>) {
        let Some((_, node)) = self.nodes.get_index_mut(number.0 as usize) else { return };
        match choice {
            None => self.open_round(number, 1, 0),
            Some(Choice::Rounds(rounds)) => {
                node.rounds = Some(*rounds);
                self.next_round(number);
            }
            Some(Choice::Items(items)) => {
                node.rounds = Some(items.len() as u64);
                node.items = Some(items.clone());
                self.next_round(number);
            }
            Some(Choice::Case(case)) => self.open_round(number, 1, case.unwrap_or(u32::MAX)),
            Some(Choice::Holds(_) | Choice::Unanswerable(_)) => {}
        }
    }

    /// An until has looked at its condition.
    pub(super) fn condition_known(&mut self, number: NodeNumber, holds: bool) {
        let mut round = 0;
        self.change(number, |node| {
            node.condition = Some(holds);
            node.asking = false;
            round = node.round;
        });
        if holds {
            self.plan_next(Todo::Finish(number));
        } else {
            self.open_round(number, round + 1, 0);
        }
    }

    fn next_round(&mut self, number: NodeNumber) {
        let Some((_, node)) = self.node(number) else { return };
        if node.round < node.rounds.unwrap_or(0) {
            self.open_round(number, node.round + 1, 0);
        } else {
            self.plan_next(Todo::Finish(number));
        }
    }

    fn open_round(&mut self, number: NodeNumber, round: u64, which: u32) {
        let Some(plan) = self.plan.clone() else { return };
        let Some((id, node)) = self.nodes.get_index_mut(number.0 as usize) else { return };
        let Some(place) = node.place else { return };
        node.round = round;
        let prefix = format!("{id}/{round}");
        let Some(outer) = self.frames.get(place.frame.0 as usize) else { return };
        let mut path = outer.path.clone();
        path.0.push((place.index, which));
        if let Some(block) = plan.root.at(&path) {
            self.open_frame(block, prefix, path, Some(number), round);
        }
    }

    /// A node of a frame has ended: note it, and what can go on because of it.
    pub(super) fn settle_in_frame(&mut self, place: Place, how: Settled) {
        let Some(plan) = self.plan.clone() else { return };
        let Some(frame) = self.frames.get_mut(place.frame.0 as usize) else { return };
        let Some(slot @ None) = frame.settled.get_mut(place.index.0 as usize) else { return };
        *slot = Some(how);
        frame.open -= 1;
        let all_settled = frame.open == 0;
        if let Some(block) = plan.root.at(&frame.path) {
            for dependent in block.dependents(place.index) {
                self.unblock(block, Place { frame: place.frame, index: *dependent }, how);
            }
        }
        if all_settled {
            self.frame_settled(place.frame);
        }
    }

    fn unblock(&mut self, block: &Block, place: Place, how: Settled) {
        let Some(planned) = block.node(place.index) else { return };
        if let Kind::Join { policy, .. } = &planned.kind {
            let Some(frame) = self.frames.get_mut(place.frame.0 as usize) else { return };
            let expected = planned.expected_branches();
            let is_open = is_open(&frame.settled, place.index);
            let gate = frame.gates.entry(place.index).or_default();
            gate.count(how);
            if is_open && !gate.queued && gate.reports(policy, expected) {
                gate.queued = true;
                self.plan_next(Todo::Gate(place));
            }
        } else if how == Settled::Succeeded && planned.unreachable {
            // It waits for something outside as well, for ever.
        } else if how == Settled::Succeeded {
            self.plan_next(Todo::Reach(place));
        } else {
            self.plan_next(Todo::Inherit(place));
        }
    }

    pub(super) fn gate_reported(&mut self, place: Place) {
        let frame = self.frames.get_mut(place.frame.0 as usize);
        if let Some(gate) = frame.and_then(|frame| frame.gates.get_mut(&place.index)) {
            gate.queued = false;
        }
    }

    /// Every node of a block has ended: the loop or switch around it goes on.
    fn frame_settled(&mut self, frame: FrameIndex) {
        let Some(parent) = self.frames.get(frame.0 as usize).and_then(|frame| frame.parent) else { return };
        let Some((_, node)) = self.node(parent) else { return };
        let (status, place) = (node.status, node.place);
        if status != NodeStatus::Running {
            return;
        }
        let outcome = self.outcome_of(frame);
        if outcome != Settled::Succeeded {
            self.change(parent, |node| node.body = Some(outcome));
            return self.plan_next(Todo::Finish(parent));
        }
        match place.and_then(|place| self.planned(place)).map(|planned| &planned.kind) {
            Some(Kind::Repeat { .. } | Kind::ForEach { .. }) => self.next_round(parent),
            Some(Kind::Until { .. }) => self.change(parent, |node| node.asking = true),
            Some(Kind::Switch { .. }) => self.plan_next(Todo::Finish(parent)),
            Some(Kind::Start | Kind::Success | Kind::Failed | Kind::Canceled | Kind::Task(_)) => {}
            Some(Kind::Fork { .. } | Kind::Join { .. }) | None => {}
        }
    }

    /// A block ends as its last nodes end: what failed before them and was not caught by a join has reached them.
    fn outcome_of(&self, frame: FrameIndex) -> Settled {
        let Some(block) = self.block(frame) else { return Settled::Succeeded };
        let settled = self.frames.get(frame.0 as usize).map_or(&[][..], |frame| &frame.settled);
        let last =
            settled.iter().zip(0_u32..).filter(|(_, index)| block.dependents(NodeIndex(*index)).is_empty());
        let ends: Vec<Settled> = last.filter_map(|(how, _)| *how).collect();
        match (ends.contains(&Settled::Failed), ends.contains(&Settled::Canceled)) {
            (true, _) => Settled::Failed,
            (false, true) => Settled::Canceled,
            (false, false) => Settled::Succeeded,
        }
    }

    /// Whether every node of the flow has ended.
    pub fn is_settled(&self) -> bool {
        self.frames.first().is_some_and(|root| root.open == 0)
    }
}

fn is_open(settled: &[Option<Settled>], index: NodeIndex) -> bool {
    settled.get(index.0 as usize).is_some_and(Option::is_none)
}
