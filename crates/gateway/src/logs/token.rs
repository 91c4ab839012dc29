//! Places in a log, as tokens. One is good for its own execution alone.

use pyoco_core::ids::ExecutionId;
use serde::{Deserialize, Serialize};

use crate::error::Refusal;
use crate::opaque;

const NAME: &str = "sinceToken";

/// A line that somebody has seen.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Token {
    e: ExecutionId,
    n: u64,
}

impl Token {
    /// The token of a line.
    pub(crate) fn of(execution: &ExecutionId, line: u64) -> String {
        opaque::encode(&Self { e: execution.clone(), n: line })
    }

    /// The line that a token names.
    pub(super) fn line_of(text: &str, execution: &ExecutionId) -> Result<u64, Refusal> {
        match opaque::decode::<Self>(text) {
            Some(token) if token.e == *execution => Ok(token.n),
            Some(_) | None => {
                Err(Refusal::bad_token(NAME, "it is not of this log").of_run(execution.as_str()))
            }
        }
    }
}

/// The refusal of a token whose line is not there.
pub(super) fn beyond_the_end() -> Refusal {
    Refusal::bad_token(NAME, "there is no such line yet")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_for_its_own_log_alone() {
        let (ours, theirs) = (ExecutionId::new("a").unwrap(), ExecutionId::new("b").unwrap());
        assert_eq!(Token::line_of(&Token::of(&ours, 7), &ours).ok(), Some(7));
        for text in [Token::of(&theirs, 7), "x".to_owned(), "7".to_owned()] {
            assert!(Token::line_of(&text, &ours).is_err(), "{text}");
        }
    }
}
