//! What can be asked of an execution: the ten commands of the contract, and the ones that workers and the
//! sweeper use among themselves.
//!
//! Here is only their shape. Whether a command is allowed, and what follows from it, is in
//! `decide/<command>.rs`, one file each.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::event::{Actor, ActorKind, BlobRef, Changes, Choice, ErrorInfo, WorkflowRef};
use crate::ids::{Attempt, CommandId, Epoch, ExecutionId, JobId, NodeId, Tag, TenantId, WorkerId};
use crate::json::{Json, Object, Weight};
use crate::kept::Kept;
use crate::plan::Plan;
use crate::time::Timestamp;
use crate::wheels::UsedWheel;

/// A command with everything that is known about its asking.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The key under which a repeat is recognised; without one every asking is new.
    pub id: Option<CommandId>,
    /// The fingerprint of the input, to tell a repeat from a reused key.
    pub digest: Digest,
    /// Who asks.
    pub issuer: Issuer,
    /// When.
    pub at: Timestamp,
    /// The caller's thread through several commands.
    pub correlation_id: Option<String>,
    /// What is asked.
    pub command: Command,
}

impl Request {
    /// A request that cannot be told from its repeat.
    pub fn new(issuer: Issuer, at: Timestamp, command: impl Into<Command>) -> Self {
        let command = command.into();
        Self { id: None, digest: Digest::default(), issuer, at, correlation_id: None, command }
    }

    /// Whether what it brings can be written into a record that can be read again. A plan and the text of a flow
    /// have bounds of their own.
    pub fn fits(&self) -> bool {
        let correlation = self.correlation_id.as_ref().map_or(0, String::len);
        correlation <= 256 && self.command.weight().fits()
    }

    /// The same request, repeatable under `id` by whoever sends what has this fingerprint.
    #[must_use]
    pub fn known_by(mut self, id: CommandId, digest: Digest) -> Self {
        self.id = Some(id);
        self.digest = digest;
        self
    }

    /// The same request, repeatable under `id`.
    #[must_use]
    pub fn with_id(mut self, id: CommandId) -> Self {
        self.digest = self.command.digest();
        self.id = Some(id);
        self
    }
}

/// Who asks. It decides what is allowed and who is written down as the actor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Issuer {
    /// Somebody at an API.
    Caller(Actor),
    /// A worker, with the claim it believes to hold.
    Worker {
        /// Which.
        id: WorkerId,
        /// The epoch of its claim.
        epoch: Epoch,
    },
    /// The sweeper.
    Scheduler,
    /// Another implementation, through a snapshot.
    Foreign {
        /// What it calls itself.
        id: Option<String>,
    },
}

impl Issuer {
    /// The actor that its events name.
    pub fn actor(&self) -> Actor {
        match self {
            Self::Caller(actor) => actor.clone(),
            Self::Worker { id, .. } => Actor::named(ActorKind::System, id.as_str()),
            Self::Scheduler => Actor::SCHEDULER,
            Self::Foreign { id } => Actor { kind: ActorKind::External, id: id.clone() },
        }
    }
}

macro_rules! commands {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident : $type:ty),* $(,)? })+) => {
        $($(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        pub struct $name { $($(#[$field_doc])* pub $field: $type,)* }

        impl From<$name> for Command {
            fn from(command: $name) -> Self {
                Self::$name(command)
            }
        })+

        /// Everything that can be asked.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "command", content = "body")]
        pub enum Command { $($(#[$doc])* $name($name)),+ }

        impl Command {
            /// The names of all commands.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),+];

            /// The contract's name.
            pub const fn name(&self) -> &'static str {
                match self { $(Self::$name(_) => stringify!($name)),+ }
            }
        }
    };
}

commands! {
    /// Makes an execution exist.
    CreateExecution {
        /// Which graph (flow).
        graph_id: String,
        /// Its parameters.
        #[serde(default)]
        input: Object,
        /// Which workers may run it.
        #[serde(default)]
        tag: Option<Tag>,
        /// Free labels.
        #[serde(default)]
        labels: Vec<String>,
        /// Whose it is.
        #[serde(default)]
        tenant_id: Option<TenantId>,
        /// The key it is submitted with.
        #[serde(default)]
        api_key_id: Option<String>,
        /// The text of the flow, when it came with the submission.
        #[serde(default)]
        workflow: Option<Workflow>,
        /// The pinned version of a registered graph.
        #[serde(default)]
        graph_version: Option<u64>,
        /// The plan, when it is known already (registered graphs).
        #[serde(default)]
        plan: Option<Arc<Plan>>,
        /// The execution this one repeats.
        #[serde(default)]
        retry_of: Option<ExecutionId>,
        /// What it keeps of that one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        keep: Option<Arc<Kept>>,
        /// The trace that its caller is in, as a `traceparent` of the W3C.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        traceparent: Option<String>,
        /// Start it in the same record.
        #[serde(default)]
        start: bool,
    }
    /// Lets it run.
    StartExecution {}
    /// Stops it. Cancel wins.
    CancelExecution {
        /// Why.
        #[serde(default)]
        reason: Option<String>,
    }
    /// Puts a finished one away.
    ArchiveExecution {
        /// Why.
        #[serde(default)]
        reason: Option<String>,
    }
    /// Begins an attempt of a node.
    StartNode {
        /// Which.
        node_id: NodeId,
        /// Which attempt; the next one when not said.
        #[serde(default)]
        attempt: Option<Attempt>,
        /// Who runs it.
        #[serde(default)]
        worker_id: Option<WorkerId>,
    }
    /// Says how far an attempt is.
    ReportNodeProgress {
        /// Which.
        node_id: NodeId,
        /// In percent.
        #[serde(default)]
        progress: Option<f64>,
        /// For people.
        #[serde(default)]
        message: Option<String>,
        /// For machines.
        #[serde(default)]
        metrics: Option<Object>,
    }
    /// Lets a running node wait for somebody.
    PutNodeWaiting {
        /// Which.
        node_id: NodeId,
        /// What a resume must name.
        #[serde(default)]
        wait_key: Option<String>,
        /// A hint for the person.
        #[serde(default)]
        prompt: Option<Json>,
    }
    /// Ends a wait.
    ResumeNode {
        /// Which.
        node_id: NodeId,
        /// What the wait asked for.
        #[serde(default)]
        resume_key: Option<String>,
        /// What the person answered; the output of a wait node.
        #[serde(default)]
        output: Option<Arc<Json>>,
    }
    /// A node ended well.
    SucceedNode {
        /// Which.
        node_id: NodeId,
        /// Which attempt; the running one when not said.
        #[serde(default)]
        attempt: Option<Attempt>,
        /// What it produced.
        #[serde(default)]
        output: Option<Arc<Json>>,
        /// The value where it stands outside the log. Only a worker may name one.
        #[serde(default)]
        output_ref: Option<BlobRef>,
        /// The arguments of the call.
        #[serde(default)]
        inputs: Option<Arc<Object>>,
        /// What it changed in the context.
        #[serde(default)]
        changes: Option<Box<Changes>>,
    }
    /// An attempt failed.
    FailNode {
        /// Which.
        node_id: NodeId,
        /// Which attempt; the running one when not said.
        #[serde(default)]
        attempt: Option<Attempt>,
        /// What failed.
        #[serde(default)]
        error: Option<ErrorInfo>,
        /// The arguments of the call.
        #[serde(default)]
        inputs: Option<Arc<Object>>,
        /// What it changed in the context.
        #[serde(default)]
        changes: Option<Box<Changes>>,
    }
    /// Takes an execution for a worker, with a new epoch.
    ClaimExecution {
        /// The message that led to it.
        job: JobId,
        /// Who takes it.
        worker_id: WorkerId,
        /// The owner's registry record has expired, so its claim may be taken over.
        #[serde(default)]
        owner_expired: bool,
        /// The plan; the first claim fixes it.
        #[serde(default)]
        plan: Option<Arc<Plan>>,
        /// The wheels it would run with here; the first claim fixes them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wheels: Option<Arc<[UsedWheel]>>,
    }
    /// Lets go of a claim: nothing to do for a worker, or the worker stops.
    ReleaseExecution {
        /// Whether everything that is open waits for somebody else (else the worker stops).
        parked: bool,
    }
    /// Fails an execution that cannot be run.
    FailExecution {
        /// What failed.
        error: ErrorInfo,
        /// What the dead-letter message says, if one is wanted.
        #[serde(default)]
        dead_letter: Option<DeadLetter>,
    }
    /// Answers what a loop or switch asks.
    ChooseNode {
        /// Which.
        node_id: NodeId,
        /// The answer.
        choice: Choice,
    }
    /// Cancels one node.
    CancelNode {
        /// Which.
        node_id: NodeId,
        /// Why.
        #[serde(default)]
        reason: Option<String>,
    }
    /// The worker ended an attempt that was asked to stop.
    ConfirmNodeStopped {
        /// Which.
        node_id: NodeId,
    }
    /// Ends a cancel (or failure) that a worker did not end within the grace period.
    ForceEnd {}
    /// Retries that are due, and deadlines of nodes that no worker watches.
    FireTimers {}
    /// Goes on where one record had no room for everything that became ready.
    AdvanceExecution {}
    /// Labels, hiding, the link to a repeat: said about an execution, not part of what happened.
    AnnotateExecution {
        /// Labels to add.
        #[serde(default)]
        add_labels: Vec<String>,
        /// Labels to remove.
        #[serde(default)]
        remove_labels: Vec<String>,
        /// Hide it from lists, or show it again.
        #[serde(default)]
        hidden: Option<bool>,
        /// The execution that repeats this one.
        #[serde(default)]
        retried_by: Option<ExecutionId>,
    }
    /// Takes over what another implementation wrote about an execution.
    ImportSnapshot {
        /// What it says.
        status: ForeignStatus,
        /// The parameters it had.
        #[serde(default)]
        input: Object,
        /// Who runs it there.
        #[serde(default)]
        worker: Option<String>,
        /// The error it shows.
        #[serde(default)]
        error: Option<String>,
        /// Its flow.
        graph_id: String,
        /// Its tag.
        #[serde(default)]
        tag: Option<Tag>,
        /// Its labels.
        #[serde(default)]
        labels: Vec<String>,
        /// Whose it is.
        #[serde(default)]
        tenant_id: Option<TenantId>,
        /// The key it was submitted with.
        #[serde(default)]
        api_key_id: Option<String>,
        /// The text of the flow, when it came with the submission.
        #[serde(default)]
        workflow: Option<Workflow>,
    }
}

impl Command {
    /// What it takes to write it down, without a plan and what a repeat keeps, which have bounds of their own.
    pub fn weight(&self) -> Weight {
        match self {
            Self::CreateExecution(command) if command.plan.is_some() || command.keep.is_some() => {
                Weight::of(&CreateExecution { plan: None, keep: None, ..command.clone() })
            }
            Self::ClaimExecution(command) if command.plan.is_some() => {
                Weight::of(&ClaimExecution { plan: None, ..command.clone() })
            }
            Self::CreateExecution(_) | Self::ClaimExecution(_) => Weight::of(self),
            Self::StartExecution(_) | Self::CancelExecution(_) | Self::ArchiveExecution(_) => {
                Weight::of(self)
            }
            Self::StartNode(_) | Self::ReportNodeProgress(_) | Self::PutNodeWaiting(_) => Weight::of(self),
            Self::ResumeNode(_) | Self::SucceedNode(_) | Self::FailNode(_) => Weight::of(self),
            Self::ReleaseExecution(_) | Self::FailExecution(_) | Self::ChooseNode(_) => Weight::of(self),
            Self::CancelNode(_) | Self::ConfirmNodeStopped(_) | Self::ForceEnd(_) => Weight::of(self),
            Self::FireTimers(_) | Self::AdvanceExecution(_) => Weight::of(self),
            Self::AnnotateExecution(_) | Self::ImportSnapshot(_) => Weight::of(self),
        }
    }

    /// The fingerprint of what is asked.
    pub fn digest(&self) -> Digest {
        // Every command is made of strings, numbers and lists, so it has a JSON form.
        serde_json::to_value(self).map(|value| Digest::of_json(&value)).unwrap_or_default()
    }
}

/// The text of a submitted flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workflow {
    /// As it was sent.
    pub text: Arc<str>,
    /// SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
}

impl Workflow {
    /// What an event says of it.
    pub(crate) fn reference(&self) -> WorkflowRef {
        WorkflowRef { sha256: self.sha256.clone(), bytes: self.text.len() as u64 }
    }
}

/// Why a job goes to the dead letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeadLetter {
    /// The message itself cannot be read.
    InvalidJob,
    /// No worker knows the flow.
    FlowNotFound,
    /// Running it failed.
    ExecutionError,
}

/// The states that another implementation's snapshot can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ForeignStatus {
    /// Queued.
    Pending,
    /// Taken by a foreign worker.
    Running,
    /// Asked to stop.
    Cancelling,
    /// Ended well.
    Completed,
    /// Ended badly.
    Failed,
    /// Stopped.
    Cancelled,
}
