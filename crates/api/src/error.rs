//! What an answer says when something is wrong.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::Extra;

/// The body of every answer from 400 up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// What is wrong: a text, or a list of inputs that are wrong.
    pub detail: Detail,
    /// `ERR-PYOCO-…`, where the contract numbers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "ERR-PYOCO-0002")]
    pub err_id: Option<String>,
    /// `MSG-PYOCO-…`, where the contract numbers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "MSG-PYOCO-0002")]
    pub msg_id: Option<String>,
    /// Where a submitted flow.yaml is wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<WorkflowProblem>,
    /// What else the server says.
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Extra,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Detail {
    /// In words.
    Text(String),
    /// Input by input.
    Inputs(Vec<InputProblem>),
}

/// One input that is wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct InputProblem {
    /// Which rule it breaks, e.g. `missing`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The way to it: `body` or `query`, then names and positions.
    pub loc: Vec<Location>,
    /// The rule in words.
    pub msg: String,
    /// What was given; cut when it is long.
    #[serde(default)]
    pub input: Value,
    /// The figures of the rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ctx: Option<Value>,
}

/// One step of the way to an input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Location {
    /// A member.
    Name(String),
    /// An item, or a character of a body that is not JSON.
    Position(u64),
}

/// One problem of a flow.yaml. Lines and columns count from one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkflowProblem {
    /// The line, when it is known.
    #[serde(default)]
    pub line: Option<u32>,
    /// The column in characters, when it is known.
    #[serde(default)]
    pub column: Option<u32>,
    /// The stable machine text.
    pub reason: String,
    /// The explanation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What to write instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

impl From<&str> for Location {
    fn from(name: &str) -> Self {
        Self::Name(name.to_owned())
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Position(position) => write!(f, "{position}"),
        }
    }
}

impl fmt::Display for Detail {
    /// One line for a person: `body.flow_name: Field required`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Inputs(problems) => {
                let lines: Vec<String> = problems
                    .iter()
                    .map(|problem| {
                        let way: Vec<String> = problem.loc.iter().map(ToString::to_string).collect();
                        format!("{}: {}", way.join("."), problem.msg)
                    })
                    .collect();
                f.write_str(&lines.join("; "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_detail_are_read() {
        let text: ErrorBody = serde_json::from_str(r#"{"detail":"run not found"}"#).unwrap();
        assert_eq!(text.detail, Detail::Text("run not found".to_owned()));
        let list =
            r#"{"detail":[{"type":"missing","loc":["body","tags",0],"msg":"Field required","input":null}]}"#;
        let list: ErrorBody = serde_json::from_str(list).unwrap();
        assert_eq!(list.detail.to_string(), "body.tags.0: Field required");
    }
}
