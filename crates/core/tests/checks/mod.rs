//! The promises that every state keeps, whatever led to it.

use pyoco_core::state::{NodeStatus, Phase, State};

/// What must never be taken back.
#[derive(Debug, Clone)]
pub(crate) struct Promises {
    terminal: Option<Phase>,
    cancel_requested: bool,
    settled: Vec<(usize, NodeStatus)>,
}

impl Promises {
    /// What a state promises about every later one.
    pub(crate) fn before(state: &State) -> Self {
        Self {
            terminal: Some(state.phase).filter(|phase| phase.is_terminal()),
            cancel_requested: state.cancel.is_some(),
            settled: state
                .nodes
                .values()
                .enumerate()
                .filter(|(_, node)| node.status.is_settled())
                .map(|(at, node)| (at, node.status))
                .collect(),
        }
    }

    /// Checks a later state against them.
    #[track_caller]
    pub(crate) fn after(&self, state: &State) -> Self {
        if let Some(phase) = self.terminal {
            assert_eq!(state.phase, phase, "an end was taken back");
        }
        if self.cancel_requested {
            assert!(
                matches!(state.phase, Phase::Canceling | Phase::Canceled),
                "cancel did not win: {:?}",
                state.phase
            );
        }
        for (at, status) in &self.settled {
            assert_eq!(state.nodes[*at].status, *status, "the end of a node was taken back");
        }
        Self::before(state)
    }
}

/// The sets of open nodes say what the nodes say.
#[track_caller]
pub(crate) fn check_shape(state: &State) {
    let open = &state.open;
    for (number, (id, node)) in (0_u32..).zip(&state.nodes) {
        let number = pyoco_core::state::NodeNumber(number);
        let sets = [&open.ready, &open.running, &open.waiting, &open.asking];
        let in_sets = sets.iter().filter(|set| set.contains(&number)).count();
        assert!(in_sets <= 1, "{id} is in several sets");
        if node.status.is_settled() {
            assert_eq!(in_sets, 0, "{id} is settled and open");
        }
        assert_eq!(open.waiting.contains(&number), node.status == NodeStatus::Waiting, "{id}");
    }
    let waiting = open.waiting.iter().map(|number| (state.node(*number).unwrap().1, *number));
    let waiting = waiting.map(|(node, number)| (node.waiting.as_ref().unwrap().since, number));
    assert_eq!(waiting.collect::<std::collections::BTreeSet<_>>(), open.waiting_since);
    let resting: std::collections::BTreeSet<_> = open.resting.iter().map(|(_, number)| *number).collect();
    assert!(resting.is_subset(&open.ready) && open.for_workers.is_subset(&open.ready));
    assert!(resting.is_disjoint(&open.for_workers) && open.in_workers.is_subset(&open.running));
    for number in &open.ready {
        let (id, node) = state.node(*number).unwrap();
        let is_workers = state.is_worker_node(node);
        assert_eq!(resting.contains(number), node.retry_at.is_some(), "{id} rests");
        assert_eq!(
            open.for_workers.contains(number),
            node.retry_at.is_none() && is_workers,
            "{id} is a worker's"
        );
    }
    for number in &open.running {
        let (id, node) = state.node(*number).unwrap();
        assert_eq!(open.in_workers.contains(number), state.is_worker_node(node), "{id} runs in a worker");
    }
    assert_eq!(state.cancel.is_some(), matches!(state.phase, Phase::Canceling | Phase::Canceled));
    assert_eq!(state.ended_at.is_some(), state.phase.is_terminal());
}
