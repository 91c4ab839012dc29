//! What an answer of `/executions`, `/graphs`, `/waits`, `/jobs` and `/tags` says when something is wrong.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Extra;

/// The body of every answer from 400 up on these surfaces.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DenialBody {
    /// What is wrong.
    pub error: Denial,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Denial {
    /// A stable word for it.
    #[schema(example = "COMMAND_REJECTED")]
    pub code: String,
    /// For people.
    #[schema(example = "ResumeNode rejected because execution is cancel-requested")]
    pub message: String,
    /// What else is known: `errors`, where something that was sent is wrong.
    #[serde(default)]
    #[schema(value_type = std::collections::HashMap<String, serde_json::Value>)]
    pub details: Extra,
}

/// One thing that is wrong with what was sent, in `details.errors`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldProblem {
    /// Which member, parameter or header, e.g. `error.code`; `body` for all of it.
    pub path: String,
    /// What is wrong with it.
    pub message: String,
}
