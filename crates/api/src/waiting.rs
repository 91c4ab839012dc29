//! Why a run stands still, in the words of a snapshot's `waiting`.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// One thing that a run waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Waiting {
    /// A worker that takes it.
    NoWorker(NoWorker),
    /// Somebody's answer.
    Node(WaitingNode),
}

/// No worker that is there takes runs of this tag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NoWorker {
    /// `no_worker`.
    pub reason: NoWorkerReason,
    /// The tag of the run.
    #[schema(example = "gpu")]
    pub tag: String,
    /// What to do about it, for a person.
    pub message: String,
}

/// The name of that reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoWorkerReason {
    /// The only one.
    NoWorker,
}

/// A node that goes on when it is answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WaitingNode {
    /// Which node.
    pub node_id: String,
    /// What the answer must name.
    #[serde(default)]
    pub wait_key: Option<String>,
    /// A hint for the person.
    #[serde(default)]
    pub prompt: Value,
    /// Since when, in unix seconds.
    pub since: f64,
}

impl NoWorker {
    /// Says it of a tag.
    pub fn of(tag: &str) -> Self {
        Self {
            reason: NoWorkerReason::NoWorker,
            tag: tag.to_owned(),
            message: format!("no live worker takes runs with tag '{tag}'; start one with --tags {tag}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_kinds_are_told_apart() {
        let tag = json!({
            "reason": "no_worker", "tag": "gpu",
            "message": "no live worker takes runs with tag 'gpu'; start one with --tags gpu",
        });
        assert_eq!(serde_json::to_value(Waiting::NoWorker(NoWorker::of("gpu"))).unwrap(), tag);
        assert_eq!(serde_json::from_value::<Waiting>(tag).unwrap(), Waiting::NoWorker(NoWorker::of("gpu")));
        let node = json!({"node_id": "ask", "wait_key": "k", "prompt": null, "since": 1.5});
        let Waiting::Node(read) = serde_json::from_value(node).unwrap() else { panic!("another kind") };
        assert_eq!((read.node_id.as_str(), read.wait_key.as_deref()), ("ask", Some("k")));
    }
}
