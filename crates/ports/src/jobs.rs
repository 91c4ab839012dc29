//! What job lists ask of the index: by labels and time of creation, newest first.

use pyoco_core::ids::{ExecutionId, TenantId};
use pyoco_core::time::Timestamp;
use pyoco_core::view::RunStatus;
use serde::{Deserialize, Serialize};

use crate::IndexRow;

/// Which jobs a list shows. Nothing set shows all that are not hidden.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// Whose.
    pub tenant: Option<TenantId>,
    /// With each of these labels. A store MAY look at the first 64 labels of a job alone, here and in `any_labels`.
    pub all_labels: Vec<String>,
    /// With at least one of these, if there are any.
    pub any_labels: Vec<String>,
    /// In one of these states; in any if there is none.
    pub statuses: Vec<RunStatus>,
    /// Of which flow.
    pub flow: Option<String>,
    /// Created after this instant.
    pub created_after: Option<Timestamp>,
    /// Created before this instant.
    pub created_before: Option<Timestamp>,
    /// Behind this one.
    pub cursor: Option<JobPlace>,
}

/// Where a job stands in the list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct JobPlace {
    /// When it was created.
    pub created_at: Timestamp,
    /// Which one it is.
    pub execution: ExecutionId,
}

/// A page of jobs.
#[derive(Debug, Clone, PartialEq)]
pub struct JobPage {
    /// The jobs.
    pub rows: Vec<IndexRow>,
    /// Where to go on, if there may be more.
    pub next: Option<JobPlace>,
}

/// Which labels a list shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelFilter {
    /// Of whose jobs; of everybody's if there is none.
    pub tenant: Option<TenantId>,
    /// Labels that begin with this text.
    pub prefix: Option<String>,
    /// Behind this one.
    pub after: Option<String>,
}

/// A page of labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelPage {
    /// The labels, each with how many jobs have it.
    pub labels: Vec<(String, u64)>,
    /// Where to go on, if there are more.
    pub next: Option<String>,
}
