//! The 24 events: the only facts an execution's status is folded from.
//!
//! The names and payload fields are the contract's and never change. Any other type is refused when it is
//! decoded; fields that this version does not know survive a round trip. What an event does to the state is
//! in `apply`, who may cause it in `decide`.

mod envelope;
mod payload;

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

use crate::ids::NodeId;

pub use envelope::{Actor, ActorKind, EventEnvelope, SCHEMA_VERSION};
pub use payload::*;

macro_rules! events {
    ($($variant:ident = $name:literal),+ $(,)?) => {
        /// The type of an event, as it is written.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum EventType {
            $(#[doc = $name] #[serde(rename = $name)] $variant),+
        }

        impl EventType {
            /// All of them, in the order of the contract.
            pub const ALL: [Self; 24] = [$(Self::$variant),+];

            /// The contract's name.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }

        /// One event: its type and what it says.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Event {
            $(#[doc = $name] $variant($variant)),+
        }

        impl Event {
            /// Its type.
            pub const fn event_type(&self) -> EventType {
                match self { $(Self::$variant(_) => EventType::$variant),+ }
            }

            fn serialize_payload<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self { $(Self::$variant(payload) => payload.serialize(serializer)),+ }
            }

            fn deserialize_payload<'de, D: serde::Deserializer<'de>>(
                kind: EventType,
                deserializer: D,
            ) -> Result<Self, D::Error> {
                match kind {
                    $(EventType::$variant => $variant::deserialize(deserializer).map(Self::$variant)),+
                }
            }
        }

        $(impl From<$variant> for Event {
            fn from(payload: $variant) -> Self {
                Self::$variant(payload)
            }
        })+
    };
}

events! {
    ExecutionCreated = "EXECUTION_CREATED",
    ExecutionStarted = "EXECUTION_STARTED",
    ExecutionCompleted = "EXECUTION_COMPLETED",
    ExecutionArchived = "EXECUTION_ARCHIVED",
    ExecutionCancelRequested = "EXECUTION_CANCEL_REQUESTED",
    ExecutionCanceled = "EXECUTION_CANCELED",
    ExecutionFailRequested = "EXECUTION_FAIL_REQUESTED",
    ExecutionFailed = "EXECUTION_FAILED",
    NodeCreated = "NODE_CREATED",
    NodeReady = "NODE_READY",
    NodeStarted = "NODE_STARTED",
    NodeProgressReported = "NODE_PROGRESS_REPORTED",
    NodeWaiting = "NODE_WAITING",
    NodeResumeRequested = "NODE_RESUME_REQUESTED",
    NodeResumed = "NODE_RESUMED",
    NodeSucceeded = "NODE_SUCCEEDED",
    NodeFailReported = "NODE_FAIL_REPORTED",
    NodeFailed = "NODE_FAILED",
    NodeCancelRequested = "NODE_CANCEL_REQUESTED",
    NodeCanceled = "NODE_CANCELED",
    NodeInterruptRequested = "NODE_INTERRUPT_REQUESTED",
    ForkOpened = "FORK_OPENED",
    JoinGateUpdated = "JOIN_GATE_UPDATED",
    JoinPassed = "JOIN_PASSED",
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Event {
    /// The node it speaks of, if it speaks of one.
    pub const fn node_id(&self) -> Option<&NodeId> {
        match self {
            Self::ExecutionCreated(_)
            | Self::ExecutionStarted(_)
            | Self::ExecutionCompleted(_)
            | Self::ExecutionArchived(_)
            | Self::ExecutionCancelRequested(_)
            | Self::ExecutionCanceled(_)
            | Self::ExecutionFailRequested(_)
            | Self::ExecutionFailed(_) => None,
            Self::NodeCreated(payload) => Some(&payload.node_id),
            Self::NodeReady(payload) => Some(&payload.node_id),
            Self::NodeStarted(payload) => Some(&payload.node_id),
            Self::NodeProgressReported(payload) => Some(&payload.node_id),
            Self::NodeWaiting(payload) => Some(&payload.node_id),
            Self::NodeResumeRequested(payload) => Some(&payload.node_id),
            Self::NodeResumed(payload) => Some(&payload.node_id),
            Self::NodeSucceeded(payload) => Some(&payload.node_id),
            Self::NodeFailReported(payload) => Some(&payload.node_id),
            Self::NodeFailed(payload) => Some(&payload.node_id),
            Self::NodeCancelRequested(payload) => Some(&payload.node_id),
            Self::NodeCanceled(payload) => Some(&payload.node_id),
            Self::NodeInterruptRequested(payload) => Some(&payload.node_id),
            Self::ForkOpened(payload) => Some(&payload.node_id),
            Self::JoinGateUpdated(payload) => Some(&payload.node_id),
            Self::JoinPassed(payload) => Some(&payload.node_id),
        }
    }
}
