//! What cancel races with.

use pyoco_testing_executions::Site;
use serde_json::{Value, json};

/// A command that a cancel may come before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rival {
    /// A node succeeds, and another is left.
    Success,
    /// The only node fails, and so does the execution.
    Fail,
    /// A person answers, and a node is left.
    Resume,
    /// The only node succeeds: the execution is complete.
    Complete,
}

impl Rival {
    /// The graph of its races, without its first line.
    pub(crate) fn graph(self) -> &'static str {
        match self {
            Self::Success => "flow: {graph: 'a >> b'}\ntasks: {a: {}, b: {}}\n",
            Self::Resume => "flow: {graph: 'a >> b'}\ntasks: {a: {wait: {key: ok}}, b: {}}\n",
            Self::Fail | Self::Complete => "flow: {graph: a}\ntasks: {a: {}}\n",
        }
    }

    /// Brings a started execution to where the command is possible.
    pub(crate) async fn prepare(self, site: &Site, execution: &str) {
        match self {
            Self::Resume => {}
            Self::Success | Self::Fail | Self::Complete => {
                site.node(execution, "a", "start", json!({})).await;
            }
        }
    }

    /// Where it is sent, under its execution.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Success | Self::Complete => "/nodes/a/success",
            Self::Fail => "/nodes/a/fail",
            Self::Resume => "/nodes/a/resume",
        }
    }

    /// What is sent.
    pub(crate) fn body(self) -> Value {
        match self {
            Self::Success | Self::Complete => json!({"output": {"n": 1}}),
            Self::Fail => json!({"error": {"code": "E", "message": "broken"}}),
            Self::Resume => json!({"resumeKey": "ok"}),
        }
    }

    /// Its name in a refusal.
    pub(crate) fn command(self) -> &'static str {
        match self {
            Self::Success | Self::Complete => "SucceedNode",
            Self::Fail => "FailNode",
            Self::Resume => "ResumeNode",
        }
    }

    /// An event that is there if and only if the command was accepted.
    pub(crate) fn mark(self) -> &'static str {
        match self {
            Self::Success | Self::Complete => "NODE_SUCCEEDED",
            Self::Fail => "NODE_FAILED",
            Self::Resume => "NODE_RESUMED",
        }
    }

    /// How the execution has ended if the command came first; `None` if it does not end it.
    pub(crate) fn end(self) -> Option<&'static str> {
        match self {
            Self::Success | Self::Resume => None,
            Self::Fail => Some("FAILED"),
            Self::Complete => Some("COMPLETED"),
        }
    }
}
