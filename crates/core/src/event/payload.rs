//! What each event says. Optional fields of the contract are optional here; fields beyond the contract are
//! marked as ours and optional too; whatever else stands in a payload is kept in `extra`.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Actor;
use crate::digest::Digest;
use crate::ids::{Attempt, ExecutionId, NodeId, Tag, TenantId, WorkerId};
use crate::json::{Json, Object};
use crate::time::Timestamp;

/// Defines a payload: its fields under the contract's names, and room for fields that this version does not
/// know. Written out instead of derived because flattened structs are read through a buffer, and every fold of
/// a log reads thousands of these.
macro_rules! payload {
    ($(#[$doc:meta])* $name:ident {
        $($(#[$field_doc:meta])* $field:ident : $type:ty = $need:ident $wire:literal),* $(,)?
    }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)*
            /// Fields that this version does not know.
            pub extra: Object,
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(None)?;
                $(payload!(@write map, self.$field, $need $wire);)*
                for (key, value) in &self.extra.0 {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Fields;
                impl<'de> Visitor<'de> for Fields {
                    type Value = $name;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str(concat!("the payload of ", stringify!($name)))
                    }

                    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<$name, A::Error> {
                        $(let mut $field: Option<$type> = None;)*
                        let mut extra = Object::default();
                        while let Some(Key(key)) = map.next_key()? {
                            match &*key {
                                $($wire => match $field.replace(map.next_value()?) {
                                    None => {}
                                    Some(_) => return Err(A::Error::duplicate_field($wire)),
                                },)*
                                _ => {
                                    let Json(value) = map.next_value()?;
                                    if extra.0.insert(key.into_owned(), value).is_some() {
                                        return Err(A::Error::custom("duplicate field"));
                                    }
                                }
                            }
                        }
                        Ok($name { $($field: payload!(@read $field, $need $wire),)* extra })
                    }
                }
                deserializer.deserialize_map(Fields)
            }
        }
    };
    (@write $map:ident, $value:expr, required $wire:literal) => { $map.serialize_entry($wire, &$value)? };
    (@write $map:ident, $value:expr, optional $wire:literal) => {
        if !is_absent(&$value) {
            $map.serialize_entry($wire, &$value)?;
        }
    };
    (@read $field:ident, required $wire:literal) => { $field.ok_or_else(|| A::Error::missing_field($wire))? };
    (@read $field:ident, optional $wire:literal) => { $field.unwrap_or_default() };
}

fn is_absent<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A member's name, borrowed from the input where it stands there as it is.
struct Key<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a member's name")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Text)
    }
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
        graph_id: String = required "graphId",
        /// Its parameters.
        input: Option<Object> = optional "input",
        /// Ours: which workers may run it.
        tag: Option<Tag> = optional "tag",
        /// Ours: free labels.
        labels: Vec<String> = optional "labels",
        /// Ours: whose it is.
        tenant_id: Option<TenantId> = optional "tenantId",
        /// Ours: the key it was submitted with.
        api_key_id: Option<String> = optional "apiKeyId",
        /// Ours: the submitted text.
        workflow: Option<WorkflowRef> = optional "workflow",
        /// Ours: the pinned version of a registered graph.
        graph_version: Option<u64> = optional "graphVersion",
        /// Ours: the execution this one repeats.
        retry_of: Option<ExecutionId> = optional "retryOf",
        /// Ours: the trace that its caller is in.
        traceparent: Option<String> = optional "traceparent",
    }
);
payload!(
    /// It may run.
    ExecutionStarted {
        /// Who started it.
        started_by: Option<Party> = optional "startedBy",
    }
);
payload!(
    /// It reached its end.
    ExecutionCompleted {
        /// What it produced.
        result: Option<Json> = optional "result",
    }
);
payload!(
    /// It was put away.
    ExecutionArchived {
        /// Why.
        reason: Option<String> = optional "reason",
    }
);
payload!(
    /// Somebody wants it to stop: from here on only CANCELED can end it.
    ExecutionCancelRequested {
        /// Why.
        reason: Option<String> = optional "reason",
        /// Who.
        requested_by: Option<Party> = optional "requestedBy",
    }
);
payload!(
    /// It was canceled, for ever.
    ExecutionCanceled {
        /// Why.
        reason: Option<String> = optional "reason",
        /// When.
        canceled_at: Option<Timestamp> = optional "canceledAt",
    }
);
payload!(
    /// It is going to fail; what already runs may finish.
    ExecutionFailRequested {
        /// Why.
        reason: Option<String> = optional "reason",
        /// Who.
        requested_by: Option<Party> = optional "requestedBy",
        /// Ours: the node whose failure it is.
        failed_node_id: Option<NodeId> = optional "failedNodeId",
        /// Ours: what failed.
        error: Option<ErrorInfo> = optional "error",
    }
);
payload!(
    /// It failed, for ever.
    ExecutionFailed {
        /// Why.
        reason: Option<String> = optional "reason",
        /// The node whose failure it is.
        failed_node_id: Option<NodeId> = optional "failedNodeId",
        /// What failed.
        error: Option<ErrorInfo> = optional "error",
    }
);
payload!(
    /// A node was reached for the first time.
    NodeCreated {
        /// Which.
        node_id: NodeId = required "nodeId",
        /// Its kind: Task, Wait, Fork, Join, Start, Success, Failed, Canceled, Repeat, ForEach, Until, Switch.
        node_type: String = required "nodeType",
        /// Where it comes from: its task, and the round of the loop it stands in.
        meta: Option<Object> = optional "meta",
    }
);
payload!(
    /// A node may start.
    NodeReady {
        /// Which.
        node_id: NodeId = required "nodeId",
    }
);
payload!(
    /// An attempt began.
    NodeStarted {
        /// Which.
        node_id: NodeId = required "nodeId",
        /// Which attempt, from 1.
        attempt: Attempt = required "attempt",
        /// Who runs it.
        worker_id: Option<WorkerId> = optional "workerId",
        /// Ours: what a loop or switch decided.
        choice: Option<Choice> = optional "choice",
    }
);
payload!(
    /// An attempt says how far it is.
    NodeProgressReported {
        /// Which.
        node_id: NodeId = required "nodeId",
        /// In percent.
        progress: Option<f64> = optional "progress",
        /// For people.
        message: Option<String> = optional "message",
        /// For machines.
        metrics: Option<Object> = optional "metrics",
        /// Ours: what an until decided after a round.
        choice: Option<Choice> = optional "choice",
    }
);
payload!(
    /// A node waits for somebody.
    NodeWaiting {
        /// Which.
        node_id: NodeId = required "nodeId",
        /// What a resume must name.
        wait_key: Option<String> = optional "waitKey",
        /// A hint for the person; not interpreted.
        prompt: Option<Json> = optional "prompt",
    }
);
payload!(
    /// Somebody answered.
    NodeResumeRequested {
        /// Which.
        node_id: NodeId = required "nodeId",
        /// What was named.
        resume_key: Option<String> = optional "resumeKey",
        /// Who.
        requested_by: Option<Party> = optional "requestedBy",
    }
);
payload!(
    /// The wait is over.
    NodeResumed {
        /// Which.
        node_id: NodeId = required "nodeId",
    }
);
payload!(
    /// A node ended well.
    NodeSucceeded {
        /// Which.
        node_id: NodeId = required "nodeId",
        /// What it produced; for a pickled value its `repr`.
        output: Option<Arc<Json>> = optional "output",
        /// Ours: the value itself where it stands outside the log. Only a worker sets it.
        output_ref: Option<BlobRef> = optional "outputRef",
        /// Ours: the arguments of the call.
        inputs: Option<Arc<Object>> = optional "inputs",
        /// Ours: what it changed in the context.
        changes: Option<Box<Changes>> = optional "changes",
    }
);
payload!(
    /// An attempt failed; whether the node did is said by NODE_FAILED.
    NodeFailReported {
        /// Which.
        node_id: NodeId = required "nodeId",
        /// What failed.
        error: Option<ErrorInfo> = optional "error",
        /// Ours: the arguments of the call.
        inputs: Option<Arc<Object>> = optional "inputs",
        /// Ours: what it changed in the context.
        changes: Option<Box<Changes>> = optional "changes",
        /// Ours: when the next attempt may start; absent when there is none.
        retry_at: Option<Timestamp> = optional "retryAt",
    }
);
payload!(
    /// A node failed for good.
    NodeFailed {
        /// Which (the seed's payload forgot it).
        node_id: NodeId = required "nodeId",
        /// What failed.
        error: Option<ErrorInfo> = optional "error",
        /// Ours: it never ran, a node before it failed.
        inherited: bool = optional "inherited",
    }
);
payload!(
    /// Somebody wants one node to stop.
    NodeCancelRequested {
        /// Which.
        node_id: NodeId = required "nodeId",
        /// Why.
        reason: Option<String> = optional "reason",
    }
);
payload!(
    /// A node was canceled for good.
    NodeCanceled {
        /// Which.
        node_id: NodeId = required "nodeId",
        /// Why.
        reason: Option<String> = optional "reason",
    }
);
payload!(
    /// A running attempt was asked to stop; the asking is the fact, whether or not it helps.
    NodeInterruptRequested {
        /// Which.
        node_id: NodeId = required "nodeId",
        /// Who runs it.
        worker_id: Option<WorkerId> = optional "workerId",
        /// Why.
        reason: Option<String> = optional "reason",
    }
);
payload!(
    /// Branches became active.
    ForkOpened {
        /// The fork.
        node_id: NodeId = required "nodeId",
        /// The first node of each branch.
        branch_ids: Vec<NodeId> = required "branchIds",
    }
);
payload!(
    /// How a join stands.
    JoinGateUpdated {
        /// The join.
        node_id: NodeId = required "nodeId",
        /// What it waits for.
        expected_branches: Vec<NodeId> = required "expectedBranches",
        /// What succeeded.
        completed_branches: Vec<NodeId> = required "completedBranches",
        /// What failed.
        failed_branches: Vec<NodeId> = required "failedBranches",
        /// What was canceled.
        canceled_branches: Vec<NodeId> = required "canceledBranches",
        /// By which rule it passes.
        policy: String = required "policy",
        /// Whether it passes now.
        is_passable: bool = required "isPassable",
    }
);
payload!(
    /// A join let go on what stands behind it.
    JoinPassed {
        /// The join.
        node_id: NodeId = required "nodeId",
    }
);
