//! What each event says. Optional fields of the contract are optional here; fields beyond the contract are
//! marked as ours and optional too; whatever else stands in a payload is kept in `extra`.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Actor;
use crate::digest::Digest;
use crate::ids::{Attempt, ExecutionId, NodeId, Tag, TenantId, WorkerId};
use crate::json::{Json, Object};
use crate::time::Timestamp;

macro_rules! payload {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident : $type:ty),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)*
            /// Fields that this version does not know.
            #[serde(flatten)]
            pub extra: Object,
        }
    };
}

/// Something that failed, as the contract describes it. A Python traceback stands in `detail.traceback`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ErrorInfo {
    /// A stable word for the kind of failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// What happened, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Whatever else is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Object>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Object,
}

impl ErrorInfo {
    /// An error with a code and a message.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: Some(code.to_owned()), message: Some(message.into()), ..Self::default() }
    }

    /// The message, or the code where there is none.
    pub fn text(&self) -> &str {
        self.message.as_deref().or(self.code.as_deref()).unwrap_or("unknown error")
    }

    /// The traceback, if there is one.
    pub fn traceback(&self) -> Option<&str> {
        self.detail.as_ref()?.0.get("traceback")?.as_str()
    }
}

/// Who asked for something. Unlike an actor's, its kind is any word.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Party {
    /// What kind of party.
    pub kind: String,
    /// Which one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Object,
}

impl From<Actor> for Party {
    fn from(actor: Actor) -> Self {
        Self { kind: actor.kind.as_str().to_owned(), id: actor.id, extra: Object::default() }
    }
}

/// Bytes that are too large or too opaque for the log, named by their fingerprint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobRef {
    /// What the bytes hash to.
    pub digest: Digest,
    /// How many there are.
    pub size: u64,
    /// What they are.
    pub encoding: Encoding,
}

/// How the bytes of a blob are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    /// A JSON document.
    Json,
    /// A Python pickle: only task processes may open it.
    Pickle,
}

/// What an attempt changed in the shared context, by top-level key.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Changes {
    /// Changed keys of `params`.
    #[serde(skip_serializing_if = "Object::is_empty")]
    pub params: Object,
    /// Changed keys of `results`.
    #[serde(skip_serializing_if = "Object::is_empty")]
    pub results: Object,
    /// Changed keys of `scratch`.
    #[serde(skip_serializing_if = "Object::is_empty")]
    pub scratch: Object,
    /// Changed keys of `artifacts`.
    #[serde(skip_serializing_if = "Object::is_empty")]
    pub artifacts: Object,
    /// Removed keys, as `root` and `key`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<(String, String)>,
    /// Values that stand outside the log, as `root.key`.
    #[serde(skip_serializing_if = "indexmap::IndexMap::is_empty")]
    pub refs: indexmap::IndexMap<String, BlobRef>,
}

/// What a loop or switch decided to do, so that a replay never evaluates an expression.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// A repeat runs so many rounds.
    Rounds(u64),
    /// A for-each runs once for each of these.
    Items(Arc<Vec<Json>>),
    /// The condition of an until, after a round.
    Holds(bool),
    /// The case of a switch; `None` is its default.
    Case(Option<u32>),
    /// The expression could not be answered; the text says why.
    Unanswerable(String),
}

/// The text of a submitted flow, by fingerprint; the text itself stands in the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowRef {
    /// SHA-256 of the raw bytes.
    pub sha256: String,
    /// How many bytes.
    pub bytes: u64,
}

payload!(
    /// An execution exists.
    ExecutionCreated {
        /// Which graph (flow) it runs.
        graph_id: String,
        /// Its parameters.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Object>,
        /// Ours: which workers may run it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tag: Option<Tag>,
        /// Ours: free labels.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        labels: Vec<String>,
        /// Ours: whose it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tenant_id: Option<TenantId>,
        /// Ours: the key it was submitted with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        api_key_id: Option<String>,
        /// Ours: the submitted text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workflow: Option<WorkflowRef>,
        /// Ours: the pinned version of a registered graph.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        graph_version: Option<u64>,
        /// Ours: the execution this one repeats.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_of: Option<ExecutionId>,
    }
);
payload!(
    /// It may run.
    ExecutionStarted {
        /// Who started it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        started_by: Option<Party>,
    }
);
payload!(
    /// It reached its end.
    ExecutionCompleted {
        /// What it produced.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Json>,
    }
);
payload!(
    /// It was put away.
    ExecutionArchived {
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    }
);
payload!(
    /// Somebody wants it to stop: from here on only CANCELED can end it.
    ExecutionCancelRequested {
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Who.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        requested_by: Option<Party>,
    }
);
payload!(
    /// It was canceled, for ever.
    ExecutionCanceled {
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// When.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        canceled_at: Option<Timestamp>,
    }
);
payload!(
    /// It is going to fail; what already runs may finish.
    ExecutionFailRequested {
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Who.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        requested_by: Option<Party>,
        /// Ours: the node whose failure it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failed_node_id: Option<NodeId>,
        /// Ours: what failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ErrorInfo>,
    }
);
payload!(
    /// It failed, for ever.
    ExecutionFailed {
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The node whose failure it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failed_node_id: Option<NodeId>,
        /// What failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ErrorInfo>,
    }
);
payload!(
    /// A node was reached for the first time.
    NodeCreated {
        /// Which.
        node_id: NodeId,
        /// Its kind: Task, Wait, Fork, Join, Start, Success, Failed, Canceled, Repeat, ForEach, Until, Switch.
        node_type: String,
        /// Where it comes from: its task, and the round of the loop it stands in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        meta: Option<Object>,
    }
);
payload!(
    /// A node may start.
    NodeReady {
        /// Which.
        node_id: NodeId,
    }
);
payload!(
    /// An attempt began.
    NodeStarted {
        /// Which.
        node_id: NodeId,
        /// Which attempt, from 1.
        attempt: Attempt,
        /// Who runs it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        worker_id: Option<WorkerId>,
        /// Ours: what a loop or switch decided.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        choice: Option<Choice>,
    }
);
payload!(
    /// An attempt says how far it is.
    NodeProgressReported {
        /// Which.
        node_id: NodeId,
        /// In percent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        progress: Option<f64>,
        /// For people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// For machines.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metrics: Option<Object>,
        /// Ours: what an until decided after a round.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        choice: Option<Choice>,
    }
);
payload!(
    /// A node waits for somebody.
    NodeWaiting {
        /// Which.
        node_id: NodeId,
        /// What a resume must name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wait_key: Option<String>,
        /// A hint for the person; not interpreted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prompt: Option<Json>,
    }
);
payload!(
    /// Somebody answered.
    NodeResumeRequested {
        /// Which.
        node_id: NodeId,
        /// What was named.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resume_key: Option<String>,
        /// Who.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        requested_by: Option<Party>,
    }
);
payload!(
    /// The wait is over.
    NodeResumed {
        /// Which.
        node_id: NodeId,
    }
);
payload!(
    /// A node ended well.
    NodeSucceeded {
        /// Which.
        node_id: NodeId,
        /// What it produced; for a pickled value its `repr`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<Arc<Json>>,
        /// Ours: the value itself where it stands outside the log. Only a worker sets it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output_ref: Option<BlobRef>,
        /// Ours: the arguments of the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        inputs: Option<Arc<Object>>,
        /// Ours: what it changed in the context.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        changes: Option<Box<Changes>>,
    }
);
payload!(
    /// An attempt failed; whether the node did is said by NODE_FAILED.
    NodeFailReported {
        /// Which.
        node_id: NodeId,
        /// What failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ErrorInfo>,
        /// Ours: the arguments of the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        inputs: Option<Arc<Object>>,
        /// Ours: what it changed in the context.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        changes: Option<Box<Changes>>,
        /// Ours: when the next attempt may start; absent when there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_at: Option<Timestamp>,
    }
);
payload!(
    /// A node failed for good.
    NodeFailed {
        /// Which (the seed's payload forgot it).
        node_id: NodeId,
        /// What failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ErrorInfo>,
        /// Ours: it never ran, a node before it failed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        inherited: bool,
    }
);
payload!(
    /// Somebody wants one node to stop.
    NodeCancelRequested {
        /// Which.
        node_id: NodeId,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    }
);
payload!(
    /// A node was canceled for good.
    NodeCanceled {
        /// Which.
        node_id: NodeId,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    }
);
payload!(
    /// A running attempt was asked to stop; the asking is the fact, whether or not it helps.
    NodeInterruptRequested {
        /// Which.
        node_id: NodeId,
        /// Who runs it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        worker_id: Option<WorkerId>,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    }
);
payload!(
    /// Branches became active.
    ForkOpened {
        /// The fork.
        node_id: NodeId,
        /// The first node of each branch.
        branch_ids: Vec<NodeId>,
    }
);
payload!(
    /// How a join stands.
    JoinGateUpdated {
        /// The join.
        node_id: NodeId,
        /// What it waits for.
        expected_branches: Vec<NodeId>,
        /// What succeeded.
        completed_branches: Vec<NodeId>,
        /// What failed.
        failed_branches: Vec<NodeId>,
        /// What was canceled.
        canceled_branches: Vec<NodeId>,
        /// By which rule it passes.
        policy: String,
        /// Whether it passes now.
        is_passable: bool,
    }
);
payload!(
    /// A join let go on what stands behind it.
    JoinPassed {
        /// The join.
        node_id: NodeId,
    }
);
