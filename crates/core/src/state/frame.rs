//! A block that was opened: the whole flow, or one round of a loop, or the chosen case of a switch.

use std::collections::BTreeMap;

use super::node::NodeNumber;
use crate::plan::{Block, JoinPolicy, Kind, NodeIndex};

/// The number of a frame, in the order of opening. 0 is the whole flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FrameIndex(pub u32);

impl FrameIndex {
    pub(crate) fn from_index(index: usize) -> Self {
        Self(u32::try_from(index).unwrap_or(u32::MAX))
    }
}

/// Where a node stands: in which frame, as which planned node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The frame.
    pub frame: FrameIndex,
    /// The planned node.
    pub index: NodeIndex,
}

/// The way from the outermost block to an inner one: a node, and which of its blocks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlockPath(pub Vec<(NodeIndex, u32)>);

/// How a planned node ended in a frame; `None` in the frame while it has not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// Well.
    Succeeded,
    /// Badly.
    Failed,
    /// By a cancel.
    Canceled,
}

/// An opened block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// What the ids of its nodes begin with; empty for the outermost one.
    pub prefix: String,
    /// Which block of the plan.
    pub path: BlockPath,
    /// The loop or switch it belongs to.
    pub parent: Option<NodeNumber>,
    /// The round, from 1 (also for a switch).
    pub round: u64,
    /// How each planned node ended.
    pub settled: Vec<Option<Settled>>,
    /// How many have not.
    pub open: usize,
    /// How the branches of its joins ended so far.
    pub gates: BTreeMap<NodeIndex, Gate>,
}

/// How the branches of a join ended so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gate {
    /// Branches that succeeded.
    pub completed: u32,
    /// Branches that failed.
    pub failed: u32,
    /// Branches that were canceled.
    pub canceled: u32,
    /// A report about it is on the agenda.
    pub queued: bool,
}

/// What is certain about a join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It passes now.
    Pass,
    /// It can never pass.
    Doomed,
    /// Not known before more branches end.
    Open,
    /// Its expression has to be asked.
    Ask,
}

impl Gate {
    /// Up to so many branches, each one that ends is reported; beyond, only what settles the join is, so that
    /// the history of a wide join grows with its width and not with its square.
    const REPORTS_EACH: u32 = 32;

    pub(crate) const fn count(&mut self, how: Settled) {
        match how {
            Settled::Succeeded => self.completed += 1,
            Settled::Failed => self.failed += 1,
            Settled::Canceled => self.canceled += 1,
        }
    }

    /// Branches that have not ended.
    pub const fn missing(self, expected: u32) -> u32 {
        expected.saturating_sub(self.completed + self.failed + self.canceled)
    }

    /// What is certain now.
    pub const fn verdict(self, policy: &JoinPolicy, expected: u32) -> Verdict {
        let all_ended = self.missing(expected) == 0;
        match policy {
            JoinPolicy::AllSuccess if self.failed + self.canceled > 0 => Verdict::Doomed,
            JoinPolicy::AllSuccess | JoinPolicy::AllDone if all_ended => Verdict::Pass,
            JoinPolicy::AnySuccess if self.completed > 0 => Verdict::Pass,
            JoinPolicy::AnySuccess if all_ended => Verdict::Doomed,
            JoinPolicy::AllSuccess | JoinPolicy::AllDone | JoinPolicy::AnySuccess => Verdict::Open,
            JoinPolicy::Custom(_) => Verdict::Ask,
        }
    }

    /// Whether the end of a branch is worth an event.
    pub(crate) const fn reports(self, policy: &JoinPolicy, expected: u32) -> bool {
        match self.verdict(policy, expected) {
            Verdict::Pass | Verdict::Doomed | Verdict::Ask => true,
            Verdict::Open => expected <= Self::REPORTS_EACH,
        }
    }
}

impl Block {
    /// The block at the end of a path that starts here.
    pub fn at(&self, path: &BlockPath) -> Option<&Self> {
        let mut block = self;
        for (index, which) in &path.0 {
            block = block.node(*index)?.kind.inner(*which)?;
        }
        Some(block)
    }
}

impl Kind {
    /// One of the blocks of a loop or switch, numbered as a choice numbers them: cases first, then the default.
    pub fn inner(&self, which: u32) -> Option<&Block> {
        match self {
            Self::Start | Self::Success | Self::Failed | Self::Canceled => None,
            Self::Task(_) | Self::Fork { .. } | Self::Join { .. } => None,
            Self::Repeat { body, .. } | Self::ForEach { body, .. } | Self::Until { body, .. } => Some(body),
            Self::Switch { cases, default, .. } => {
                cases.get(which as usize).map(|case| &case.body).or(default.as_ref())
            }
        }
    }
}
