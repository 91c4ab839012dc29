//! The `/jobs` view: camelCase, RFC 3339, lower-case states.

use serde::{Deserialize, Serialize};

use crate::state::{Phase, State};
use crate::time::Timestamp;

/// The status of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobStatus {
    /// Created, taken by nobody.
    Pending,
    /// Taken by a worker, or a node was started. A job that is asked to stop still runs.
    Running,
    /// Ended well.
    Completed,
    /// Ended badly.
    Failed,
    /// Stopped.
    Canceled,
}

impl JobStatus {
    /// The status of an execution, in this vocabulary.
    pub const fn of(state: &State) -> Self {
        match state.phase {
            Phase::Absent | Phase::Created => Self::Pending,
            Phase::Started | Phase::Failing if state.active_since.is_none() => Self::Pending,
            Phase::Started | Phase::Failing | Phase::Canceling => Self::Running,
            Phase::Completed => Self::Completed,
            Phase::Failed => Self::Failed,
            Phase::Canceled => Self::Canceled,
        }
    }
}

/// A job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobView {
    /// The execution's id.
    pub id: String,
    /// Where it stands.
    pub status: JobStatus,
    /// When it was created.
    pub created_at: Option<Timestamp>,
    /// When it began to run.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub completed_at: Option<Timestamp>,
    /// Its labels.
    pub tags: Vec<String>,
    /// When a cancel was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel_requested_at: Option<Timestamp>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl JobView {
    /// Whether it is no job any more: it has ended and was deleted.
    pub const fn is_deleted(state: &State) -> bool {
        state.hidden && state.phase.is_terminal()
    }

    /// The job as it is.
    pub fn of(state: &State) -> Self {
        Self {
            id: state.id.to_string(),
            status: JobStatus::of(state),
            created_at: state.origin.as_ref().map(|origin| origin.at),
            started_at: state.active_since,
            completed_at: state.ended_at,
            tags: state.labels.clone(),
            cancel_requested_at: state.cancel.as_ref().map(|cancel| cancel.at),
            error: state.last_error.clone(),
        }
    }
}
