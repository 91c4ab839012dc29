//! Jobs: how one is submitted and shown, alone and in a list. Times are RFC 3339.

use pyoco_core::time::Timestamp;
pub use pyoco_core::view::JobStatus;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Extra;

/// The body of `POST /jobs`. Members that are not named here are refused.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"parameters": {"input": "data.csv", "mode": "fast"}, "tags": ["urgent", "test"]}))]
pub struct SubmitJob {
    /// What it works on.
    #[schema(value_type = std::collections::HashMap<String, serde_json::Value>)]
    pub parameters: Extra,
    /// Its labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Option<Vec<String>>, max_items = 64)]
    pub tags: Vec<String>,
    /// Which flow it runs; the gateway's own choice when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 256)]
    pub flow: Option<String>,
    /// Which workers may run it; the gateway's default when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[A-Za-z0-9_-]{1,128}$")]
    pub tag: Option<String>,
}

/// A job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    /// Its id. It is an execution and a run of the same id, too.
    pub id: String,
    /// Where it stands. One that is asked to stop still runs.
    #[schema(value_type = JobState)]
    pub status: JobStatus,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When it began to run.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub completed_at: Option<Timestamp>,
    /// Its labels.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Which flow it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// What it works on. Lists and streams do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>)]
    pub parameters: Option<Extra>,
    /// When somebody wanted it to stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub cancel_requested_at: Option<Timestamp>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What else the server says.
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

/// The words for `JobStatus`.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
#[allow(dead_code, reason = "describes the status for OpenAPI; it is the core's")]
enum JobState {
    Pending,
    Running,
    Completed,
    Failed,
    Canceled,
}

/// A page of jobs, newest first. It may be short, or empty, and still go on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobPage {
    /// The jobs.
    pub jobs: Vec<Job>,
    /// What to send as `nextToken` for the next page; a page without it is the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_token: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_job_says_only_what_is_known_of_it() {
        let shown = json!({
            "id": "j", "status": "canceled", "createdAt": "2026-02-18T12:00:00.000000Z",
            "startedAt": null, "completedAt": null, "tags": ["urgent"]
        });
        let job: Job = serde_json::from_value(shown.clone()).unwrap();
        assert_eq!(job.status, JobStatus::Canceled);
        assert_eq!(serde_json::to_value(&job).unwrap(), shown);
    }

    #[test]
    fn a_submission_needs_parameters_and_takes_nothing_it_does_not_know() {
        let least: SubmitJob = serde_json::from_value(json!({"parameters": {}})).unwrap();
        assert_eq!(serde_json::to_value(&least).unwrap(), json!({"parameters": {}}));
        assert!(serde_json::from_value::<SubmitJob>(json!({})).is_err());
        assert!(serde_json::from_value::<SubmitJob>(json!({"parameters": {}, "x": 1})).is_err());
    }
}
