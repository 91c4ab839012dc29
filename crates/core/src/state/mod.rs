//! What an execution is at a moment: the fold of its records, and questions one can ask of it.
//!
//! Fields are read anywhere and written in `apply` alone. Everything is kept in an order that the log fixes
//! (no hash order), so two machines that fold the same log have equal states.

mod context;
mod frame;
mod mapping;
mod node;
mod scope;
mod shared;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::event::{BlobRef, ErrorInfo, Party, WorkflowRef};
use crate::ids::{CommandId, Epoch, EventSeq, ExecutionId, JobId, NodeId, Tag, TenantId, Version, WorkerId};
use crate::json::{Json, Object};
use crate::kept::Kept;
use crate::plan::{Block, Kind, Node, Plan, Runner, TaskSpec};
use crate::time::Timestamp;
use crate::wheels::UsedWheel;

pub use context::{Context, Root};
pub use frame::{BlockPath, Frame, FrameIndex, Gate, Place, Settled, Verdict};
pub use node::{AttemptEnd, AttemptRecord, NodeNumber, NodeState, NodeStatus, TaskRecord, Waiting};
pub use scope::{LoopFrame, NodeScope, Question};
pub use shared::SharedMap;

/// An execution, folded from its log.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// Whose state.
    pub id: ExecutionId,
    /// Records folded so far.
    pub version: Version,
    /// Events folded so far.
    pub events: EventSeq,
    /// The fingerprint of the last record.
    pub last_hash: Digest,
    /// Where it stands.
    pub phase: Phase,
    /// What it was created with.
    pub origin: Option<Arc<Origin>>,
    /// When it was allowed to run.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// When its last record was written.
    pub updated_at: Option<Timestamp>,
    /// The first cancel request; never taken back.
    pub cancel: Option<CancelRequest>,
    /// The failure that ends it.
    pub failure: Option<Failure>,
    /// The newest failure of a task, also of one that does not end it.
    pub last_error: Option<String>,
    /// When it was put away.
    pub archived_at: Option<Timestamp>,
    /// Left out of lists.
    pub hidden: bool,
    /// Free labels.
    pub labels: Vec<String>,
    /// The execution that repeats this one.
    pub retried_by: Option<ExecutionId>,
    /// Rises with every claim.
    pub epoch: Epoch,
    /// Who holds it.
    pub claim: Option<Claim>,
    /// Who held it last.
    pub last_worker: Option<WorkerId>,
    /// When a worker took it first, or a node started.
    pub active_since: Option<Timestamp>,
    /// A node of it waits for somebody, or has waited.
    pub has_waited: bool,
    /// Claims in a row that were lost without any progress.
    pub lost_claims: u32,
    /// What it runs, fixed by the first claim (or at its creation).
    pub plan: Option<Arc<Plan>>,
    /// The text of the flow, when it came with the submission.
    pub workflow: Option<Arc<str>>,
    /// What it keeps of the execution that it repeats.
    pub kept: Option<Arc<Kept>>,
    /// The wheels that it runs with, fixed by the first claim; `None` if that worker has none to give.
    pub wheels: Option<Arc<[UsedWheel]>>,
    /// Nodes reached so far, in the order in which they were.
    pub nodes: IndexMap<NodeId, NodeState>,
    /// One record a task, as the `/runs` surface shows it; same order as the plan's tasks.
    pub tasks: Vec<TaskRecord>,
    /// Blocks that were opened.
    pub frames: Vec<Frame>,
    /// Which of them the ids of its nodes lead to.
    pub(crate) frame_by_prefix: HashMap<String, FrameIndex>,
    /// What tasks and expressions see.
    pub context: Context,
    /// What has to be recorded next because of what was recorded.
    pub agenda: VecDeque<Todo>,
    /// Nodes by what they wait for.
    pub open: OpenNodes,
    /// How many events there were after every so manieth record, so that a part of a long history is found without the rest.
    pub landmarks: Vec<(EventSeq, Version)>,
    /// Keys of callers' commands, for as long as the execution is kept.
    pub commands: IndexMap<CommandId, Remembered>,
    /// Keys of the worker's last record, to recognise an append that was applied but timed out.
    pub worker_commands: Vec<(CommandId, Remembered)>,
}

/// Where an execution stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Nothing is recorded.
    Absent,
    /// Created, not started.
    Created,
    /// It may run.
    Started,
    /// A failure is certain; what runs may finish.
    Failing,
    /// A cancel was requested; only CANCELED can end it.
    Canceling,
    /// Ended well.
    Completed,
    /// Ended badly.
    Failed,
    /// Canceled.
    Canceled,
}

impl Phase {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Absent,
        Self::Created,
        Self::Started,
        Self::Failing,
        Self::Canceling,
        Self::Completed,
        Self::Failed,
        Self::Canceled,
    ];

    /// Whether nothing can change the status any more.
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Absent | Self::Created | Self::Started | Self::Failing | Self::Canceling => false,
            Self::Completed | Self::Failed | Self::Canceled => true,
        }
    }

    /// The status of the contract.
    pub const fn status(self) -> Status {
        match self {
            Self::Absent | Self::Created | Self::Started | Self::Failing | Self::Canceling => Status::Active,
            Self::Completed => Status::Completed,
            Self::Failed => Status::Failed,
            Self::Canceled => Status::Canceled,
        }
    }
}

/// The status of the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Status {
    /// Not ended.
    Active,
    /// Ended well.
    Completed,
    /// Ended badly.
    Failed,
    /// Canceled.
    Canceled,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Active => "ACTIVE",
            Self::Completed => "COMPLETED",
            Self::Failed => "FAILED",
            Self::Canceled => "CANCELED",
        })
    }
}

/// What an execution was created with.
#[derive(Debug, Clone, PartialEq)]
pub struct Origin {
    /// When.
    pub at: Timestamp,
    /// Which graph (flow).
    pub flow: String,
    /// The parameters.
    pub input: Object,
    /// Which workers may run it.
    pub tag: Option<Tag>,
    /// Whose it is.
    pub tenant: Option<TenantId>,
    /// The key it was submitted with.
    pub api_key_id: Option<String>,
    /// The submitted text.
    pub workflow: Option<WorkflowRef>,
    /// The pinned version of a registered graph.
    pub graph_version: Option<u64>,
    /// The execution this one repeats.
    pub retry_of: Option<ExecutionId>,
    /// The trace that its caller is in, as it was given.
    pub traceparent: Option<String>,
}

/// The request that decides how an execution ends.
#[derive(Debug, Clone, PartialEq)]
pub struct CancelRequest {
    /// When.
    pub at: Timestamp,
    /// Why.
    pub reason: Option<String>,
    /// Who.
    pub by: Option<Party>,
}

/// What ends an execution badly.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// Since when.
    pub at: Timestamp,
    /// The node whose failure it is.
    pub node: Option<NodeId>,
    /// What failed.
    pub error: ErrorInfo,
}

/// Who holds an execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The worker.
    pub worker: WorkerId,
    /// The message that led to it; a redelivery of it may take over. A foreign worker has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    /// The number that fences older holders.
    pub epoch: Epoch,
    /// Since when.
    pub at: Timestamp,
}

impl Claim {
    /// Whether a worker of another implementation holds it.
    pub const fn is_foreign(&self) -> bool {
        self.job.is_none()
    }
}

/// What is kept of a command, so that its repeat is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remembered {
    /// The fingerprint of its input.
    pub digest: Digest,
    /// The record that holds its result.
    pub record: Version,
}

/// Something that must be recorded because of what was recorded. Worked off by `decide::advance`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Todo {
    /// A node was reached.
    Reach(Place),
    /// A node before this one failed or was canceled, so it never runs.
    Inherit(Place),
    /// A branch of a join ended.
    Gate(Place),
    /// The last block of a loop or switch settled.
    Finish(NodeNumber),
}

/// Nodes that are neither settled nor merely planned, by what they wait for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenNodes {
    /// Tasks that may start.
    pub ready: BTreeSet<NodeNumber>,
    /// Those of them that a worker runs, without a pause before a retry.
    pub for_workers: BTreeSet<NodeNumber>,
    /// Those of them that rest before a retry, by the end of the pause.
    pub resting: BTreeSet<(Timestamp, NodeNumber)>,
    /// Tasks that run.
    pub running: BTreeSet<NodeNumber>,
    /// Those of them that a worker runs.
    pub in_workers: BTreeSet<NodeNumber>,
    /// Running and waiting nodes that no worker watches, by the time at which they are to be ended.
    pub deadlines: BTreeSet<(Timestamp, NodeNumber)>,
    /// Nodes that wait for somebody.
    pub waiting: BTreeSet<NodeNumber>,
    /// The same, by the time since which they wait.
    pub waiting_since: BTreeSet<(Timestamp, NodeNumber)>,
    /// Loops and switches that ask a question.
    pub asking: BTreeSet<NodeNumber>,
}

impl OpenNodes {
    /// Whether nothing is under way.
    pub fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.running.is_empty() && self.waiting.is_empty() && self.asking.is_empty()
    }
}

/// A result as a node, a task record and the context share it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Output {
    /// The value, or what is shown of it.
    pub value: Option<Arc<Json>>,
    /// The bytes, where the value stands outside the log.
    pub reference: Option<BlobRef>,
}

impl State {
    pub(crate) const LANDMARK_EVERY: u64 = 64;

    /// An execution of which nothing is recorded.
    pub fn absent(id: ExecutionId) -> Self {
        Self {
            id,
            version: Version(0),
            events: EventSeq(0),
            last_hash: Digest::default(),
            phase: Phase::Absent,
            origin: None,
            started_at: None,
            ended_at: None,
            updated_at: None,
            cancel: None,
            failure: None,
            last_error: None,
            archived_at: None,
            hidden: false,
            labels: Vec::new(),
            retried_by: None,
            epoch: Epoch(0),
            claim: None,
            last_worker: None,
            active_since: None,
            has_waited: false,
            lost_claims: 0,
            plan: None,
            workflow: None,
            kept: None,
            wheels: None,
            nodes: IndexMap::new(),
            tasks: Vec::new(),
            frames: Vec::new(),
            frame_by_prefix: HashMap::new(),
            context: Context::default(),
            agenda: VecDeque::new(),
            open: OpenNodes::default(),
            landmarks: Vec::new(),
            commands: IndexMap::new(),
            worker_commands: Vec::new(),
        }
    }

    /// The last event that is recorded. What another implementation says of an execution without a log is no event.
    pub fn last_event(&self) -> EventSeq {
        if self.version == Version(0) { EventSeq(0) } else { self.events }
    }

    /// A version after which every event behind this one was written, as near to it as is known.
    pub fn version_before(&self, event: EventSeq) -> Version {
        let before = self.landmarks.partition_point(|(events, _)| *events <= event);
        let landmark = before.checked_sub(1).and_then(|at| self.landmarks.get(at));
        landmark.map_or(Version(0), |(_, version)| *version)
    }

    /// A version at which this event was written, as near to it as is known.
    pub fn version_after(&self, event: EventSeq) -> Version {
        let before = self.landmarks.partition_point(|(events, _)| *events < event);
        self.landmarks.get(before).map_or(self.version, |(_, version)| *version)
    }

    /// The node of that number.
    pub fn node(&self, number: NodeNumber) -> Option<(&NodeId, &NodeState)> {
        self.nodes.get_index(number.0 as usize)
    }

    /// The number of a node that was reached.
    pub fn number_of(&self, id: &NodeId) -> Option<NodeNumber> {
        self.nodes.get_index_of(id).map(NodeNumber::from_index)
    }

    /// The block of a frame.
    pub fn block(&self, frame: FrameIndex) -> Option<&Block> {
        self.plan.as_ref()?.root.at(&self.frames.get(frame.0 as usize)?.path)
    }

    /// The planned node behind a place.
    pub fn planned(&self, place: Place) -> Option<&Node> {
        self.block(place.frame)?.node(place.index)
    }

    /// The id of the node at a place.
    pub fn id_at(&self, place: Place) -> Option<NodeId> {
        let frame = self.frames.get(place.frame.0 as usize)?;
        Some(NodeId::within(&frame.prefix, &self.planned(place)?.name))
    }

    /// Where a node id stands in the plan, also before it was reached.
    pub fn place_of(&self, id: &NodeId) -> Option<Place> {
        if let Some(node) = self.nodes.get(id) {
            return node.place;
        }
        let (prefix, name) = id.as_str().rsplit_once('/').unwrap_or(("", id.as_str()));
        let name = name.replace("%2F", "/").replace("%25", "%");
        let frame = *self.frame_by_prefix.get(prefix)?;
        Some(Place { frame, index: self.block(frame)?.find(&name)? })
    }

    /// The task behind a node.
    pub fn task_of(&self, node: &NodeState) -> Option<&TaskSpec> {
        self.plan.as_ref()?.task(node.task?)
    }

    /// Whether our workers run this node. A loop or switch is theirs too: they answer its questions.
    pub fn is_worker_node(&self, node: &NodeState) -> bool {
        match node.place.and_then(|place| self.planned(place)).map(|planned| &planned.kind) {
            Some(Kind::Task(_)) => self.task_of(node).is_some_and(|task| task.runner.is_worker()),
            Some(Kind::Repeat { .. } | Kind::ForEach { .. } | Kind::Until { .. } | Kind::Switch { .. }) => {
                true
            }
            Some(Kind::Start | Kind::Success | Kind::Failed | Kind::Canceled) => false,
            Some(Kind::Fork { .. } | Kind::Join { .. }) | None => false,
        }
    }

    /// Whether there is something for a worker to do. Unclaimed, such an execution needs a job.
    pub fn wants_worker(&self) -> bool {
        match self.phase {
            Phase::Started => {
                self.plan.is_none() || !self.open.asking.is_empty() || !self.open.for_workers.is_empty()
            }
            Phase::Absent | Phase::Created | Phase::Failing | Phase::Canceling => false,
            Phase::Completed | Phase::Failed | Phase::Canceled => false,
        }
    }

    /// Whether a record had no room for everything, and `AdvanceExecution` has to be sent.
    pub fn needs_advance(&self) -> bool {
        self.phase == Phase::Started && !self.agenda.is_empty()
    }

    /// Whether a claim may still say which wheels it runs with: nobody of ours has run anything of it.
    pub fn may_fix_wheels(&self) -> bool {
        self.wheels.is_none()
            && (self.last_worker.is_none() || self.claim.as_ref().is_some_and(Claim::is_foreign))
    }

    /// Whether it holds no worker because everything open waits for somebody or something else.
    pub fn is_parked(&self) -> bool {
        self.phase == Phase::Started
            && self.claim.is_none()
            && self.active_since.is_some()
            && !self.wants_worker()
    }

    /// The next instant at which something is due without anybody asking. While a worker holds the execution, it
    /// sees to its own retries.
    pub fn next_timer(&self) -> Option<Timestamp> {
        if self.phase.is_terminal() {
            return None;
        }
        let retry = self.open.resting.first().filter(|_| self.claim.is_none());
        let deadline = self.open.deadlines.first();
        retry.into_iter().chain(deadline).map(|(at, _)| *at).min()
    }

    /// The parameters as the `/runs` surface shows them.
    pub fn params(&self) -> serde_json::Value {
        match &self.origin {
            // Tasks write into the very parameters they were given; into none they cannot.
            Some(origin) if origin.input.is_empty() => {
                let defaults = self.plan.as_ref().map(|plan| plan.defaults.0.clone());
                serde_json::Value::Object(defaults.unwrap_or_default())
            }
            Some(_) | None => self.context.root(Root::Params).clone(),
        }
    }

    /// The kind of a reached node as NODE_CREATED names it.
    pub fn node_type(planned: &Node, plan: &Plan) -> &'static str {
        match &planned.kind {
            Kind::Start => "Start",
            Kind::Success => "Success",
            Kind::Failed => "Failed",
            Kind::Canceled => "Canceled",
            Kind::Task(task) => match plan.task(*task).map(|task| &task.runner) {
                Some(Runner::Wait { .. }) => "Wait",
                Some(Runner::Callable(_) | Runner::Registered(_) | Runner::Command(_) | Runner::External)
                | None => "Task",
            },
            Kind::Fork { .. } => "Fork",
            Kind::Join { .. } => "Join",
            Kind::Repeat { .. } => "Repeat",
            Kind::ForEach { .. } => "ForEach",
            Kind::Until { .. } => "Until",
            Kind::Switch { .. } => "Switch",
        }
    }
}
