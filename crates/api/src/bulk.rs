//! The same command for many executions: what is asked, and what became of each.

use pyoco_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The body of `POST /executions/bulk`. It has a filter, or says `all`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(example = json!({"action": "cancel", "filter": {"status": ["RUNNING"], "flow": "report"}, "dryRun": true}))]
pub struct BulkRequest {
    /// What to do.
    pub action: BulkAction,
    /// With which executions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<BulkFilter>,
    /// With every one to which it may apply; instead of a filter.
    #[serde(default, skip_serializing_if = "is_no")]
    pub all: bool,
    /// Only say what would be done.
    #[serde(default, skip_serializing_if = "is_no")]
    pub dry_run: bool,
    /// At most so many are looked at; 100 when it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1_000)]
    pub limit: Option<u32>,
    /// The `nextCursor` of the answer before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Why; of a cancel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 2_000)]
    pub reason: Option<String>,
}

/// What can be done with many executions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum BulkAction {
    /// End them.
    Cancel,
    /// Repeat those that failed or were canceled.
    Retry,
}

/// Which executions. All that is said has to hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BulkFilter {
    /// In one of these states: `ACTIVE`, `COMPLETED`, `FAILED`, `CANCELED`, or as `/runs` has them: `PENDING`, `RUNNING`,
    /// `CANCELLING`, `CANCELLED`. Without one: in a state to which the action may apply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Option<Vec<String>>, max_items = 64, example = json!(["RUNNING"]))]
    pub status: Vec<String>,
    /// Of this graph (flow).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 256)]
    pub flow: Option<String>,
    /// For workers of this tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 256)]
    pub tag: Option<String>,
    /// With this label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 256)]
    pub label: Option<String>,
    /// Created after this moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub created_after: Option<Timestamp>,
    /// Created before this moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub created_before: Option<Timestamp>,
    /// Changed after this moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub updated_after: Option<Timestamp>,
    /// Changed before this moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub updated_before: Option<Timestamp>,
}

/// What became of a page of executions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BulkReport {
    /// What was asked.
    pub action: BulkAction,
    /// Nothing was done; `done` says with which it would be.
    pub dry_run: bool,
    /// How many were looked at: the length of the three lists together.
    pub matched: u64,
    /// With which it was done.
    pub done: Vec<String>,
    /// The new executions of a retry, in the order of `done`.
    pub created: Vec<String>,
    /// To which it does not apply.
    pub skipped: Vec<BulkSkip>,
    /// With which it could not be done.
    pub failed: Vec<BulkFailure>,
    /// What to send as `cursor` to go on; null when all are done.
    pub next_cursor: Option<String>,
}

/// An execution that was passed over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BulkSkip {
    /// Which.
    pub id: String,
    /// `ALREADY_ENDED`, `ALREADY_CANCELING`, `ALREADY_RETRIED`, `STILL_ACTIVE`, `COMPLETED`, `ARCHIVED`, `DELETED` or `NOT_FOUND`.
    #[schema(example = "ALREADY_ENDED")]
    pub why: String,
}

/// An execution with which it could not be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BulkFailure {
    /// Which.
    pub id: String,
    /// A stable word, as in a denial.
    #[schema(example = "UNAVAILABLE")]
    pub code: String,
    /// For people.
    pub message: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out a reference")]
const fn is_no(flag: &bool) -> bool {
    !*flag
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_said_is_not_sent() {
        let request = BulkRequest {
            action: BulkAction::Cancel,
            filter: Some(BulkFilter { status: vec!["RUNNING".to_owned()], ..BulkFilter::default() }),
            all: false,
            dry_run: true,
            limit: None,
            cursor: None,
            reason: None,
        };
        let sent = serde_json::to_value(&request).unwrap();
        assert_eq!(sent, json!({"action": "cancel", "filter": {"status": ["RUNNING"]}, "dryRun": true}));
        assert_eq!(serde_json::from_value::<BulkRequest>(sent).unwrap(), request);
    }
}
