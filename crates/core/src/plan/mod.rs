//! The plan of an execution: what a flow compiles to and what the scheduler walks.
//!
//! A plan is a tree of blocks. A block is a graph of nodes; a loop or a switch is a node with blocks of its
//! own, which unfold into node instances as the execution runs. After `build` every node waits for at most
//! one other node, except a `Join`, which is where waiting for several is decided and recorded.
//!
//! Not here: how a text becomes a plan (`pyoco-flow`), and which node may run now (`decide::advance`).

mod build;
mod check;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::expr::Expression;
use crate::json::{Json, Object};
use crate::time::Millis;

pub use build::{BlockBuilder, Built, Slot};
pub use check::{InvalidPlan, MAX_BYTES, MAX_CUSTOM_BRANCHES, MAX_DEPTH, MAX_NODES};

/// Everything that is fixed about an execution before its first task starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "check::Unchecked", deny_unknown_fields)]
pub struct Plan {
    /// The flow's name, `flow_name` and `graphId` of the surfaces.
    pub flow: String,
    /// Every member task, whether or not the graph reaches it.
    pub tasks: Vec<TaskSpec>,
    /// The outermost block.
    pub root: Block,
    /// Names of the environment that tasks and expressions may see; `None`: all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expose_env: Option<Vec<String>>,
    /// Parameters that a submission may leave out. A text that came with its submission has brought them already.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub defaults: Object,
    /// What the author should know although the flow runs, e.g. a task that could not be imported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Plan {
    /// Puts a plan together and checks it; nothing else makes one.
    pub fn new(flow: String, tasks: Vec<TaskSpec>, root: Block) -> Result<Self, InvalidPlan> {
        let (defaults, warnings) = (Object::default(), Vec::new());
        check::Unchecked { flow, tasks, root, expose_env: None, defaults, warnings }.try_into()
    }

    /// Its fingerprint: two claims that bring the same flow bring the same one.
    pub fn digest(&self) -> Digest {
        // Plans hold strings, numbers and lists only, so they always have a JSON form.
        serde_json::to_value(self).map(|value| Digest::of_json(&value)).unwrap_or_default()
    }

    /// The task of that number. The check of a plan guarantees it for every number in its nodes.
    pub fn task(&self, index: TaskIndex) -> Option<&TaskSpec> {
        self.tasks.get(index.0 as usize)
    }
}

/// The number of a task in `Plan::tasks`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskIndex(pub u32);

/// One task: what runs, with which inputs, and what happens when it fails.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskSpec {
    /// Its name in `tasks`, results and logs.
    pub name: String,
    /// Who runs it.
    pub runner: Runner,
    /// Configured arguments, resolved when an attempt starts.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub inputs: IndexMap<String, Input>,
    /// Where a result is stored besides `results.<name>`, e.g. `scratch.total`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<String>,
    /// Retries, deadline and what a failure means for the rest.
    #[serde(default)]
    pub policy: Policy,
}

impl TaskSpec {
    /// A task with no inputs, no outputs and the default policy.
    pub fn new(name: &str, runner: Runner) -> Self {
        Self {
            name: name.to_owned(),
            runner,
            inputs: IndexMap::new(),
            outputs: Vec::new(),
            policy: Policy::default(),
        }
    }
}

/// Who runs a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Runner {
    /// A Python function `module:attribute`, in a worker's task process.
    Callable(String),
    /// A task that the worker's own process offers under this name (discovered, or of a resolver's flow).
    Registered(String),
    /// An argument vector, run as a process by a worker.
    Command(Vec<String>),
    /// Nobody: the node waits until somebody resumes it.
    Wait {
        /// What a resume must name.
        key: String,
        /// A hint for the person who is asked; not interpreted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prompt: Option<Json>,
    },
    /// A program outside, through the Node API.
    External,
}

impl Runner {
    /// Whether our workers run it.
    pub const fn is_worker(&self) -> bool {
        match self {
            Self::Callable(_) | Self::Registered(_) | Self::Command(_) => true,
            Self::Wait { .. } | Self::External => false,
        }
    }
}

/// One configured argument of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    /// The value itself.
    Lit(Json),
    /// The result of a node, or a field of it.
    Node {
        /// Whose result.
        node: String,
        /// Fields below it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        path: Vec<String>,
    },
    /// A parameter of the execution.
    Param(String),
    /// A variable of the worker's environment.
    Env(String),
    /// A selector that cannot be resolved; the attempt fails with this text.
    Invalid {
        /// The selector as written.
        text: String,
        /// The whole message.
        message: String,
    },
}

/// What happens around a task's attempts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// What a failure means for the rest of the execution.
    #[serde(skip_serializing_if = "is_default")]
    pub fail: FailPolicy,
    /// Attempts after the first.
    #[serde(skip_serializing_if = "is_default")]
    pub retries: u32,
    /// Pause before each of them.
    #[serde(skip_serializing_if = "is_default")]
    pub retry_delay: Millis,
    /// How long one attempt may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Millis>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// What a final failure does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailPolicy {
    /// The execution fails; nothing more is started.
    #[default]
    Stop,
    /// Only what depends on it fails; the rest goes on.
    Isolate,
}

/// A graph of nodes that starts and settles as one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Block {
    nodes: Vec<Node>,
    #[serde(skip)]
    links: check::Links,
}

/// The number of a node in its block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeIndex(pub u32);

impl Block {
    /// Its nodes, in the author's order.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// One node.
    pub fn node(&self, index: NodeIndex) -> Option<&Node> {
        self.nodes.get(index.0 as usize)
    }

    /// The node of that name.
    pub fn find(&self, name: &str) -> Option<NodeIndex> {
        self.links.by_name.get(name).copied()
    }

    /// Nodes that wait for nothing.
    pub fn roots(&self) -> &[NodeIndex] {
        &self.links.roots
    }

    /// Nodes that wait for this one.
    pub fn dependents(&self, index: NodeIndex) -> &[NodeIndex] {
        self.links.dependents.get(index.0 as usize).map_or(&[], Vec::as_slice)
    }
}

/// One node of a block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Unique in its block; the last part of the node's id.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// What must settle before it: at most one node, several only for a `Join`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<NodeIndex>,
    /// It waits for something that is not part of the flow, so it can never become ready.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unreachable: bool,
}

impl Node {
    /// How many branches a join waits for. Something outside the flow is one more, which never ends.
    pub fn expected_branches(&self) -> u32 {
        u32::try_from(self.after.len()).unwrap_or(u32::MAX).saturating_add(u32::from(self.unreachable))
    }
}

/// What a node is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The marked beginning of a drawn graph; passes at once.
    Start,
    /// A marked good end; passes at once.
    Success,
    /// Reaching it fails the execution.
    Failed,
    /// Reaching it cancels the execution.
    Canceled,
    /// A task (or, by its runner, a wait for a person).
    Task(TaskIndex),
    /// Opens several branches at once.
    Fork {
        /// The first node of each branch.
        branches: Vec<NodeIndex>,
    },
    /// Waits for several branches.
    Join {
        /// When it lets go on.
        policy: JoinPolicy,
        /// The author asked for this policy, so a join that cannot pass is a failure of the task behind it;
        /// an implied one only passes the failures on.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        explicit: bool,
    },
    /// Its body, so many times.
    Repeat {
        /// How often.
        count: Count,
        /// What is repeated.
        body: Block,
    },
    /// Its body, once for each item of a list.
    ForEach {
        /// The list.
        over: Expression,
        /// The variable that holds the item.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        item: Option<String>,
        /// The variable that holds the index.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        index: Option<String>,
        /// What is repeated.
        body: Block,
    },
    /// Its body, until the condition holds after a round.
    Until {
        /// Looked at after each round.
        condition: Expression,
        /// More rounds than this are a failure. At or below zero the first round that does not hold fails.
        max_rounds: i64,
        /// What is repeated.
        body: Block,
    },
    /// The first case that equals the value.
    Switch {
        /// The value.
        on: Expression,
        /// In order; the first match wins.
        cases: Vec<Case>,
        /// When none matches; without it no match is a failure.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        default: Option<Block>,
    },
}

/// How often a `Repeat` runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Count {
    /// Known when the flow is written.
    Fixed(u64),
    /// Known when the loop is reached.
    Computed(Expression),
}

/// One case of a switch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The value it stands for.
    pub value: Json,
    /// What runs when it matches.
    pub body: Block,
}

/// When a join lets its successor go on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum JoinPolicy {
    /// Every branch succeeded.
    #[default]
    AllSuccess,
    /// At least one branch succeeded; it does not wait for the others.
    AnySuccess,
    /// Every branch ended, however.
    AllDone,
    /// The expression holds; it sees `$ctx.branches.completed|failed|canceled|expected` as numbers.
    Custom(Expression),
}

impl JoinPolicy {
    /// The contract's name of the policy.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::AllSuccess => "ALL_SUCCESS",
            Self::AnySuccess => "ANY_SUCCESS",
            Self::AllDone => "ALL_DONE",
            Self::Custom(_) => "CUSTOM",
        }
    }

    /// Whether it can pass although a branch failed.
    pub const fn tolerates_failure(&self) -> bool {
        match self {
            Self::AllSuccess => false,
            Self::AnySuccess | Self::AllDone | Self::Custom(_) => true,
        }
    }
}

impl Kind {
    /// The blocks inside a loop or switch.
    pub fn blocks(&self) -> Vec<&Block> {
        match self {
            Self::Start | Self::Success | Self::Failed | Self::Canceled => Vec::new(),
            Self::Task(_) | Self::Fork { .. } | Self::Join { .. } => Vec::new(),
            Self::Repeat { body, .. } | Self::ForEach { body, .. } | Self::Until { body, .. } => vec![body],
            Self::Switch { cases, default, .. } => {
                cases.iter().map(|case| &case.body).chain(default.as_ref()).collect()
            }
        }
    }
}
