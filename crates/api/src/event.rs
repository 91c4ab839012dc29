//! What happened to an execution, event by event.

use pyoco_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Extra;

/// One event: the envelope of the contract, with its number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionEvent {
    /// Its number in its execution, from 1 without a gap.
    pub seq: u64,
    /// Its own id.
    pub event_id: String,
    /// Whose event.
    pub execution_id: String,
    /// One of the 24 types.
    #[serde(rename = "type")]
    #[schema(example = "NODE_STARTED")]
    pub kind: String,
    /// When.
    #[schema(value_type = String, format = DateTime)]
    pub occurred_at: Timestamp,
    /// By whom.
    pub actor: Actor,
    /// The caller's thread through several commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// The event before it that led to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub causation_id: Option<String>,
    /// The version of the envelope: 1.
    pub schema_version: u64,
    /// What it says; each type has its own.
    #[schema(value_type = std::collections::HashMap<String, serde_json::Value>)]
    pub payload: Extra,
}

/// Who caused an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Actor {
    /// `system`, `user`, `scheduler` or `external`.
    #[schema(example = "user")]
    pub kind: String,
    /// Which one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// A page of the events of an execution, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventPage {
    /// Whose.
    pub execution_id: String,
    /// The events.
    pub events: Vec<ExecutionEvent>,
    /// The number of the last event there is.
    pub last_seq: u64,
    /// What to send as `after` for the next page; null when there is none.
    #[serde(default)]
    pub next: Option<u64>,
}

#[cfg(test)]
mod tests {
    use pyoco_testkit::{Execution, Graph, caller, external, start_node, succeed};
    use serde_json::json;

    use super::*;

    #[test]
    fn an_envelope_is_read_back_as_it_was() {
        let plan = Graph::new().task("a", external()).plan();
        let driven = Execution::started(&plan)
            .given(&caller(), start_node("a"))
            .given(&caller(), succeed("a", json!([1])));
        let records = driven.records();
        for (seq, event) in (1_u64..).zip(records.iter().flat_map(|record| &record.events)) {
            let mut shown = serde_json::to_value(event).unwrap();
            shown["seq"] = json!(seq);
            let read: ExecutionEvent = serde_json::from_value(shown.clone()).unwrap();
            assert_eq!(serde_json::to_value(&read).unwrap(), shown);
        }
    }
}
