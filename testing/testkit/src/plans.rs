//! Small plans, written in a line or two.

use std::sync::Arc;

use pyoco_core::plan::{BlockBuilder, JoinPolicy, Kind, Plan, Policy, Runner, Slot, TaskIndex, TaskSpec};

/// A graph under construction.
#[derive(Debug, Default)]
pub struct Graph {
    builder: BlockBuilder,
    tasks: Vec<TaskSpec>,
    slots: Vec<(String, Slot)>,
    explicit: bool,
}

/// A task that workers run.
pub fn callable() -> Runner {
    Runner::Callable("m:f".to_owned())
}

/// A task that is driven through the API.
pub fn external() -> Runner {
    Runner::External
}

/// A wait for a person.
pub fn wait(key: &str) -> Runner {
    Runner::Wait { key: key.to_owned(), prompt: None }
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// Tasks in a row.
    pub fn chain(names: &[&str], runner: &Runner) -> Self {
        names.windows(2).fold(
            names.iter().fold(Self::new(), |graph, name| graph.task(name, runner.clone())),
            |graph, pair| graph.edge(pair[0], pair[1]),
        )
    }

    /// One more task.
    #[must_use]
    pub fn task(self, name: &str, runner: Runner) -> Self {
        self.task_with(name, runner, Policy::default())
    }

    /// One more task, with a policy.
    #[must_use]
    pub fn task_with(mut self, name: &str, runner: Runner, policy: Policy) -> Self {
        let index = TaskIndex(u32::try_from(self.tasks.len()).expect("few tasks"));
        self.tasks.push(TaskSpec { policy, ..TaskSpec::new(name, runner) });
        self.node(name, Kind::Task(index))
    }

    /// One more node of any kind.
    #[must_use]
    pub fn node(mut self, name: &str, kind: Kind) -> Self {
        let slot = self.builder.add(name, kind);
        self.slots.push((name.to_owned(), slot));
        self
    }

    fn slot(&self, name: &str) -> Slot {
        self.slots.iter().find(|(known, _)| known == name).expect("a node of that name").1
    }

    /// `to` waits for `from`.
    #[must_use]
    pub fn edge(mut self, from: &str, to: &str) -> Self {
        let (from, to) = (self.slot(from), self.slot(to));
        self.builder.depend(to, from);
        self
    }

    /// How `node` weighs the nodes before it, in the author's own words.
    #[must_use]
    pub fn join(mut self, node: &str, policy: JoinPolicy) -> Self {
        let slot = self.slot(node);
        self.builder.join(slot, policy);
        self.explicit = true;
        self
    }

    /// The block alone, to put into a loop. Tasks are numbered from 0 in the plan that uses it.
    pub fn block(self) -> pyoco_core::plan::Block {
        self.builder.finish(self.explicit).block
    }

    /// The plan.
    pub fn plan(self) -> Arc<Plan> {
        let explicit = self.explicit;
        let built = self.builder.finish(explicit);
        let mut tasks = self.tasks;
        for task in built.sheltered {
            tasks[task.0 as usize].policy.fail = pyoco_core::plan::FailPolicy::Isolate;
        }
        Arc::new(Plan::new("main".to_owned(), tasks, built.block).expect("a sound plan"))
    }
}
