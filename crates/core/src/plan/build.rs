//! Makes a block from nodes and plain dependencies: forks and joins are put in here, once, for every
//! language a flow can be written in.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{Block, JoinPolicy, Kind, Node, NodeIndex, TaskIndex};

/// A node of a block under construction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(usize);

/// Collects nodes and dependencies of one block.
#[derive(Debug, Default)]
pub struct BlockBuilder {
    nodes: Vec<Draft>,
    names: HashSet<String>,
    /// The number that a repeated name gets next.
    numbers: HashMap<String, u32>,
}

#[derive(Debug)]
struct Draft {
    name: String,
    kind: Kind,
    after: BTreeSet<Slot>,
    outside: bool,
    join: Option<JoinPolicy>,
}

/// A finished block, and what its joins mean for the tasks in it.
#[derive(Debug)]
pub struct Built {
    /// The block, with its forks and joins.
    pub block: Block,
    /// Tasks whose every way forward meets a join that was asked to tolerate failures: unless their author
    /// says otherwise, a failure of theirs is isolated.
    pub sheltered: Vec<TaskIndex>,
}

impl BlockBuilder {
    /// An empty block.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a node. Where the name is taken (the same task twice in a sequence) it gets a number: `a~2`.
    pub fn add(&mut self, name: &str, kind: Kind) -> Slot {
        let name = self.free_name(name);
        self.nodes.push(Draft { name, kind, after: BTreeSet::new(), outside: false, join: None });
        Slot(self.nodes.len() - 1)
    }

    fn free_name(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        while !self.names.insert(name.clone()) {
            let number = self.numbers.entry(wanted.to_owned()).or_insert(1);
            *number += 1;
            name = format!("{wanted}~{number}");
        }
        name
    }

    /// `node` waits for `on`.
    pub fn depend(&mut self, node: Slot, on: Slot) {
        if let Some(draft) = self.nodes.get_mut(node.0) {
            draft.after.insert(on);
        }
    }

    /// `node` waits for something outside the flow, for ever.
    pub fn depend_outside(&mut self, node: Slot) {
        if let Some(draft) = self.nodes.get_mut(node.0) {
            draft.outside = true;
        }
    }

    /// How `node` weighs the nodes it waits for.
    pub fn join(&mut self, node: Slot, policy: JoinPolicy) {
        if let Some(draft) = self.nodes.get_mut(node.0) {
            draft.join = Some(policy);
        }
    }

    /// Puts in joins and forks. `explicit` says whether join policies are the author's own words (and so
    /// shelter the branches before them) or the implied ones of version 1.
    pub fn finish(mut self, explicit: bool) -> Built {
        let sheltered = if explicit { self.sheltered() } else { Vec::new() };
        let dependents = self.dependents();
        let drafts = std::mem::take(&mut self.nodes);

        // Where each draft goes: a join stands right before the node it guards, a fork right behind.
        let mut names = Vec::with_capacity(drafts.len());
        let mut next = 0_u32;
        for (draft, children) in drafts.iter().zip(&dependents) {
            let join = needs_join(draft).then(|| self.free_name(&format!("{}.join", draft.name)));
            let fork = (children.len() > 1).then(|| self.free_name(&format!("{}.fork", draft.name)));
            let place = Place {
                join: join.as_ref().map(|_| NodeIndex(next)),
                node: NodeIndex(next + u32::from(join.is_some())),
                fork: fork.as_ref().map(|_| NodeIndex(next + u32::from(join.is_some()) + 1)),
            };
            next += 1 + u32::from(join.is_some()) + u32::from(fork.is_some());
            names.push((place, join, fork));
        }
        let roots: Vec<Slot> = drafts
            .iter()
            .enumerate()
            .filter(|(_, d)| d.after.is_empty() && !d.outside)
            .map(|(i, _)| Slot(i))
            .collect();
        let opening = (roots.len() > 1).then(|| (NodeIndex(next), self.free_name("fork")));

        let places: Vec<Place> = names.iter().map(|(place, ..)| *place).collect();
        let head = |slot: Slot| places[slot.0].join.unwrap_or(places[slot.0].node);
        let mut nodes = Vec::with_capacity(next as usize + 1);
        for ((draft, (place, join, fork)), children) in drafts.into_iter().zip(names).zip(&dependents) {
            let mut after: Vec<NodeIndex> = Vec::new();
            if let Some(name) = join {
                let branches = draft.after.iter().map(|slot| places[slot.0].node).collect();
                let explicit = explicit && draft.join.is_some();
                let kind = Kind::Join { policy: draft.join.unwrap_or_default(), explicit };
                nodes.push(Node { name, kind, after: branches, unreachable: draft.outside });
                after.extend(place.join);
            } else if let Some(slot) = draft.after.first() {
                after.push(places[slot.0].fork.unwrap_or(places[slot.0].node));
            } else if let (Some((fork, _)), false) = (&opening, draft.outside) {
                after.push(*fork);
            }
            let unreachable = draft.outside && place.join.is_none();
            nodes.push(Node { name: draft.name, kind: draft.kind, after, unreachable });
            if let Some(name) = fork {
                let branches = children.iter().map(|slot| head(*slot)).collect();
                nodes.push(Node {
                    name,
                    kind: Kind::Fork { branches },
                    after: vec![place.node],
                    unreachable: false,
                });
            }
        }
        if let Some((_, name)) = opening {
            let branches = roots.iter().map(|slot| head(*slot)).collect();
            nodes.push(Node { name, kind: Kind::Fork { branches }, after: Vec::new(), unreachable: false });
        }
        Built { block: Block { nodes, links: super::check::Links::default() }, sheltered }
    }

    fn dependents(&self) -> Vec<Vec<Slot>> {
        let mut dependents = vec![Vec::new(); self.nodes.len()];
        for (number, draft) in self.nodes.iter().enumerate() {
            for before in &draft.after {
                if let Some(list) = dependents.get_mut(before.0) {
                    list.push(Slot(number));
                }
            }
        }
        dependents
    }

    /// Goes backwards from the joins that tolerate failures until nothing more is sheltered.
    fn sheltered(&self) -> Vec<TaskIndex> {
        let dependents = self.dependents();
        let tolerant: Vec<bool> =
            self.nodes.iter().map(|d| d.join.as_ref().is_some_and(JoinPolicy::tolerates_failure)).collect();
        let mut open: Vec<usize> = dependents.iter().map(Vec::len).collect();
        let mut queue: Vec<usize> = (0..self.nodes.len()).filter(|i| tolerant[*i]).collect();
        let mut sheltered = BTreeSet::new();
        while let Some(node) = queue.pop() {
            for before in &self.nodes[node].after {
                open[before.0] = open[before.0].saturating_sub(1);
                if open[before.0] == 0 && sheltered.insert(*before) && !tolerant[before.0] {
                    queue.push(before.0);
                }
            }
        }
        let task = |slot: &Slot| match self.nodes[slot.0].kind {
            Kind::Task(task) => Some(task),
            Kind::Start | Kind::Success | Kind::Failed | Kind::Canceled | Kind::Fork { .. } => None,
            Kind::Join { .. } | Kind::Repeat { .. } | Kind::ForEach { .. } => None,
            Kind::Until { .. } | Kind::Switch { .. } => None,
        };
        sheltered.iter().filter_map(task).collect()
    }
}

/// Where the parts of one draft stand in the finished block.
#[derive(Clone, Copy)]
struct Place {
    join: Option<NodeIndex>,
    node: NodeIndex,
    fork: Option<NodeIndex>,
}

/// Waiting for several is a join; so is a policy asked for by name, even over a single branch.
fn needs_join(draft: &Draft) -> bool {
    draft.after.len() > 1 || (draft.join.is_some() && !draft.after.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Plan, Runner, TaskSpec};

    fn task(number: u32) -> Kind {
        Kind::Task(TaskIndex(number))
    }

    fn plan_of(builder: BlockBuilder, tasks: &[&str]) -> Plan {
        let tasks = tasks.iter().map(|name| TaskSpec::new(name, Runner::External)).collect();
        Plan::new("main".to_owned(), tasks, builder.finish(true).block).unwrap()
    }

    fn lines(plan: &Plan) -> Vec<String> {
        let nodes = plan.root.nodes();
        let name = |index: &NodeIndex| nodes[index.0 as usize].name.clone();
        nodes
            .iter()
            .map(|n| format!("{} < {}", n.name, n.after.iter().map(name).collect::<Vec<_>>().join(" ")))
            .collect()
    }

    #[test]
    fn a_chain_needs_neither_fork_nor_join() {
        let mut builder = BlockBuilder::new();
        let (a, b) = (builder.add("a", task(0)), builder.add("b", task(1)));
        builder.depend(b, a);
        assert_eq!(lines(&plan_of(builder, &["a", "b"])), ["a < ", "b < a"]);
    }

    #[test]
    fn a_diamond_gets_a_fork_and_a_join() {
        let mut builder = BlockBuilder::new();
        let slots: Vec<Slot> =
            (0..4).map(|n| builder.add(["a", "b", "c", "d"][n as usize], task(n))).collect();
        for (node, on) in [(1, 0), (2, 0), (3, 1), (3, 2)] {
            builder.depend(slots[node], slots[on]);
        }
        let plan = plan_of(builder, &["a", "b", "c", "d"]);
        assert_eq!(
            lines(&plan),
            ["a < ", "a.fork < a", "b < a.fork", "c < a.fork", "d.join < b c", "d < d.join"]
        );
    }

    #[test]
    fn several_beginnings_are_opened_by_one_fork() {
        let mut builder = BlockBuilder::new();
        builder.add("a", task(0));
        builder.add("b", task(1));
        assert_eq!(lines(&plan_of(builder, &["a", "b"])), ["a < fork", "b < fork", "fork < "]);
    }

    #[test]
    fn a_task_twice_in_a_sequence_has_two_names() {
        let mut builder = BlockBuilder::new();
        let (first, second) = (builder.add("a", task(0)), builder.add("a", task(0)));
        builder.depend(second, first);
        assert_eq!(lines(&plan_of(builder, &["a"])), ["a < ", "a~2 < a"]);
    }

    #[test]
    fn a_tolerant_join_shelters_whole_branches() {
        let mut builder = BlockBuilder::new();
        let slots: Vec<Slot> =
            (0..4).map(|n| builder.add(["a", "b", "c", "d"][n as usize], task(n))).collect();
        for (node, on) in [(1, 0), (3, 1), (3, 2)] {
            builder.depend(slots[node], slots[on]);
        }
        builder.join(slots[3], JoinPolicy::AllDone);
        let sheltered = builder.finish(true).sheltered;
        assert_eq!(sheltered, [TaskIndex(0), TaskIndex(1), TaskIndex(2)]);
    }

    #[test]
    fn a_plan_survives_its_json_form_and_a_broken_one_is_refused() {
        let mut builder = BlockBuilder::new();
        let (a, b) = (builder.add("a", task(0)), builder.add("b", task(1)));
        builder.depend(b, a);
        let plan = plan_of(builder, &["a", "b"]);
        let text = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
        for (what, with) in [
            ("\"task\":1", "\"task\":9"),
            ("\"after\":[0]", "\"after\":[7]"),
            ("\"name\":\"b\",\"kind\"", "\"name\":\"a\",\"kind\""),
        ] {
            let broken = text.replace(what, with);
            assert_ne!(broken, text);
            assert!(serde_json::from_str::<Plan>(&broken).is_err(), "{what}");
        }
    }
}
