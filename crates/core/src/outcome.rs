//! What a command answers: what came of it, or the rule that it broke.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::command::DeadLetter;
use crate::decide::Facts;
use crate::event::Event;
use crate::ids::{Attempt, Epoch, ExecutionId, NodeId, Tag, Version, WorkerId};
use crate::state::{NodeStatus, Status};
use crate::time::Timestamp;

/// What a command led to.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// What its issuer learns.
    pub outcome: Outcome,
    /// What happened because of it, in order.
    pub events: Vec<Event>,
    /// What must be done outside, once the record is appended.
    pub effects: Vec<Effect>,
    /// What the record says beside its events.
    pub facts: Facts,
}

/// What the issuer of a command learns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was done.
    Accepted,
    /// It was done before under the same key, in that record; nothing happened now.
    Repeated(Version),
    /// A cancel is under way already.
    AlreadyCanceling,
    /// It is canceled already.
    AlreadyCanceled,
    /// It is put away already.
    AlreadyArchived,
    /// It has ended; a worker only has to acknowledge its message.
    AlreadyEnded(Status),
    /// The worker holds it, with this epoch.
    Claimed(Epoch),
    /// There was nothing to do.
    Unchanged,
}

/// Something to do outside, named here and performed by the engine after the append. Each may be performed
/// twice or derived again from the state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Put a job for it into the queue of this tag.
    EnqueueJob(Option<Tag>),
    /// Take its job out of the queue.
    DropJob,
    /// Tell its worker at once that it is to stop.
    InterruptWorker(WorkerId),
    /// Write a dead letter.
    PublishDeadLetter {
        /// Which kind.
        reason: DeadLetter,
        /// What it says.
        error: String,
    },
    /// Send `AdvanceExecution`: one record had no room for everything.
    Advance,
}

/// The rule that a command broke. Nothing was changed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{command} rejected because {reason}")]
pub struct Rejection {
    /// The contract's name of the command.
    pub command: &'static str,
    /// The rule.
    pub reason: Reason,
}

/// What kind of refusal it is, for the edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RejectionKind {
    /// It speaks of something that is not there.
    NotFound,
    /// The state does not allow it.
    Conflict,
    /// Its input cannot be right.
    Invalid,
    /// Nobody outside sees it: the batch has to be sealed, and the command decided again.
    SealFirst,
}

/// Why a command was refused.
#[derive(Debug, Clone, PartialEq)]
pub enum Reason {
    /// There is no such execution.
    UnknownExecution(ExecutionId),
    /// There is one already.
    ExecutionExists,
    /// Everything of it has succeeded, and no node to begin with is named.
    NothingToRetry,
    /// The key was used with another input.
    KeyReused,
    /// It was not started yet.
    NotStarted,
    /// It was started already.
    AlreadyStarted,
    /// It is going to be canceled.
    CancelRequested,
    /// It is going to fail.
    FailRequested,
    /// It has ended.
    Ended(Status),
    /// It has not ended.
    StillActive,
    /// The plan has no such node.
    UnknownNode(NodeId),
    /// The node was not reached yet.
    NodeNotReached(NodeId),
    /// The node is in another state than the command needs.
    NodeIs {
        /// Which.
        node: NodeId,
        /// What it is.
        status: NodeStatus,
    },
    /// The attempt is another one.
    WrongAttempt {
        /// The one it could be.
        expected: Attempt,
        /// The one that was named.
        given: Attempt,
    },
    /// The pause before the retry is not over.
    RetryNotDue(Timestamp),
    /// The key is not the one that the wait asked for.
    WrongResumeKey,
    /// The node is a worker's, not a caller's.
    BelongsToWorker(NodeId),
    /// The node is a caller's, not a worker's.
    BelongsToCaller(NodeId),
    /// A worker's task cannot wait for a person.
    CannotWait(NodeId),
    /// Only a worker may say this.
    OnlyAWorker,
    /// Somebody else holds the claim now.
    Fenced {
        /// The epoch that the worker has.
        held: Epoch,
        /// The one in force.
        current: Epoch,
    },
    /// Somebody else holds the claim, and nothing says it is lost.
    ClaimHeld(WorkerId),
    /// The first claim has to bring a plan.
    PlanMissing,
    /// A claim was let go while a task of it runs.
    TasksRunning,
    /// The answer does not fit the question.
    WrongChoice(NodeId),
    /// Progress is a percentage.
    ProgressOutOfRange,
    /// An execution has no more labels than this.
    TooManyLabels(usize),
    /// A value is larger, or nested deeper, than a record may hold.
    ValueTooLarge,
    /// The record that is being put together has no room for it: seal that one and decide again on the next.
    SealFirst,
    /// A worker of ours has taken it, so foreign snapshots no longer count.
    OwnedHere,
}

impl Reason {
    /// What kind of refusal it is.
    pub const fn kind(&self) -> RejectionKind {
        match self {
            Self::UnknownExecution(_) | Self::UnknownNode(_) => RejectionKind::NotFound,
            Self::SealFirst => RejectionKind::SealFirst,
            Self::ProgressOutOfRange
            | Self::TooManyLabels(_)
            | Self::ValueTooLarge
            | Self::OnlyAWorker
            | Self::PlanMissing
            | Self::WrongChoice(_) => RejectionKind::Invalid,
            Self::ExecutionExists
            | Self::NothingToRetry
            | Self::KeyReused
            | Self::NotStarted
            | Self::AlreadyStarted
            | Self::CancelRequested
            | Self::FailRequested
            | Self::Ended(_)
            | Self::StillActive
            | Self::NodeNotReached(_)
            | Self::NodeIs { .. }
            | Self::WrongAttempt { .. }
            | Self::RetryNotDue(_)
            | Self::WrongResumeKey
            | Self::BelongsToWorker(_)
            | Self::BelongsToCaller(_)
            | Self::CannotWait(_)
            | Self::Fenced { .. }
            | Self::ClaimHeld(_)
            | Self::TasksRunning
            | Self::OwnedHere => RejectionKind::Conflict,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownExecution(id) => write!(f, "there is no execution {id}"),
            Self::ExecutionExists => f.write_str("the execution exists already"),
            Self::NothingToRetry => f.write_str("execution is COMPLETED; name the node to run again from (fromNode)"),
            Self::KeyReused => f.write_str("its idempotency key was used with another input"),
            Self::NotStarted => f.write_str("execution is not started"),
            Self::AlreadyStarted => f.write_str("execution is already started"),
            Self::CancelRequested => f.write_str("execution is cancel-requested"),
            Self::FailRequested => f.write_str("execution is fail-requested"),
            Self::Ended(status) => write!(f, "execution is {status}"),
            Self::StillActive => f.write_str("execution is still active"),
            Self::UnknownNode(node) => write!(f, "there is no node {node:?}"),
            Self::NodeNotReached(node) => write!(f, "what node {node:?} depends on has not ended"),
            Self::NodeIs { node, status } => write!(f, "node {node:?} is {status}"),
            Self::WrongAttempt { expected, given } => write!(f, "the attempt is {expected}, not {given}"),
            Self::RetryNotDue(at) => write!(f, "the next attempt may start at {at}"),
            Self::WrongResumeKey => f.write_str("resumeKey is not the waitKey of the node"),
            Self::BelongsToWorker(node) => write!(f, "node {node:?} is run by a worker"),
            Self::BelongsToCaller(node) => write!(f, "node {node:?} is driven through the API"),
            Self::CannotWait(node) => write!(f, "node {node:?} is run by a worker; a flow waits in a wait node"),
            Self::OnlyAWorker => f.write_str("only a worker may say this"),
            Self::Fenced { held, current } => write!(f, "the claim has epoch {current}, not {held}"),
            Self::ClaimHeld(worker) => write!(f, "worker {worker:?} holds the execution"),
            Self::PlanMissing => f.write_str("the first claim has to bring the plan"),
            Self::TasksRunning => f.write_str("tasks of the claim are still running"),
            Self::WrongChoice(node) => write!(f, "node {node:?} does not ask for this"),
            Self::ProgressOutOfRange => f.write_str("progress is a number from 0 to 100"),
            Self::TooManyLabels(most) => write!(f, "it has {most} tags at most; remove one first"),
            Self::ValueTooLarge => f.write_str("a value is over 1 MiB or nested deeper than 64 levels; store it elsewhere and pass a reference"),
            Self::SealFirst => f.write_str("the record under construction has to be sealed first"),
            Self::OwnedHere => f.write_str("a worker of ours has taken the execution"),
        }
    }
}
