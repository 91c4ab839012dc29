//! The labels of jobs: of one, and of all.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The body of `POST /jobs/{id}/tags`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddTag {
    /// Any text of 1 to 128 characters without control characters. It is kept in normal form C, without space around it.
    #[schema(min_length = 1, max_length = 128, example = "analysis")]
    pub tag: String,
}

/// A label that is in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TagCount {
    /// The label.
    pub tag: String,
    /// How many jobs have it.
    pub count: u64,
}

/// A page of labels, in the order of their bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TagPage {
    /// The labels.
    pub tags: Vec<TagCount>,
    /// What to send as `nextToken` for the next page; a page without it is the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_token: Option<String>,
}
