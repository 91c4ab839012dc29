//! What can go wrong between a caller and the gateway, told apart so that a program can act on it.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use pyoco_api::{Denial, DenialBody, Detail, ErrorBody, FieldProblem, WorkflowProblem};
use serde::Deserialize as _;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// Why a call gave no answer.
#[derive(Debug, Error)]
pub enum Error {
    /// What the caller asked for cannot be sent at all. Nothing was sent.
    #[error("{what} {problem}")]
    InvalidArgument {
        /// Which argument.
        what: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// A file of the caller could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The gateway could not be reached, or the connection broke. What was sent may have been carried out.
    #[error("{call}: {problem}")]
    Connection {
        /// Which call.
        call: Call,
        /// What the system says.
        problem: String,
    },
    /// The gateway did not answer in time. What was sent may have been carried out.
    #[error("{call}: timed out after {} s", limit.as_secs_f64())]
    Timeout {
        /// Which call.
        call: Call,
        /// How long it was waited for.
        limit: Duration,
    },
    /// The gateway answered with something other than success.
    #[error(transparent)]
    Status(Box<StatusError>),
    /// The answer makes no sense, or is larger than the caller allows.
    #[error("{call}: {problem}")]
    BadAnswer {
        /// Which call.
        call: Call,
        /// What is wrong with the answer.
        problem: String,
    },
    /// A run was waited for and did not end in time. It goes on.
    #[error("wait timeout for run_id={run_id}")]
    WaitTimeout {
        /// The run.
        run_id: String,
        /// How long it was waited for.
        limit: Duration,
    },
}

/// The method and path of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// `GET`, `POST` and so on.
    pub method: String,
    /// The path, as it was sent.
    pub path: String,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

/// An answer that is no success.
#[derive(Debug, Clone, PartialEq)]
pub struct StatusError {
    /// The HTTP status.
    pub status: u16,
    /// Which call.
    pub call: Call,
    /// The body as text, cut when it is very long.
    pub body: String,
    /// The same, when it has the form of `/runs`, `/workers` and the rest.
    pub explanation: Option<ErrorBody>,
    /// The same, when it has the form of `/executions`, `/graphs` and `/waits`.
    pub denial: Option<Denial>,
    flaws: Vec<WorkflowProblem>,
    wrong_fields: Vec<FieldProblem>,
}

impl StatusError {
    pub(crate) fn new(status: u16, call: Call, body: String) -> Self {
        let explanation: Option<ErrorBody> = serde_json::from_str(&body).ok();
        let denial = serde_json::from_str::<DenialBody>(&body).ok().map(|body| body.error);
        let flaws = explanation.as_ref().map(|body| body.errors.clone());
        let flaws = flaws.or_else(|| listed(denial.as_ref()?)).unwrap_or_default();
        let wrong_fields = denial.as_ref().and_then(listed).unwrap_or_default();
        Self { status, call, body, explanation, denial, flaws, wrong_fields }
    }

    /// The stable word for what is wrong, e.g. `COMMAND_REJECTED`, where the surface has such words.
    pub fn code(&self) -> Option<&str> {
        self.denial.as_ref().map(|denial| denial.code.as_str())
    }

    /// What is wrong, for people.
    pub fn message(&self) -> Option<String> {
        let said = self.denial.as_ref().map(|denial| denial.message.clone());
        said.or_else(|| self.detail().map(ToString::to_string))
    }

    /// Which fields of what was sent are wrong, where the surface says so field by field.
    pub fn field_problems(&self) -> &[FieldProblem] {
        &self.wrong_fields
    }

    /// The contract's `detail`: a text, or a list of what is wrong with each input.
    pub fn detail(&self) -> Option<&Detail> {
        self.explanation.as_ref().map(|body| &body.detail)
    }

    /// The contract's error number, e.g. `ERR-PYOCO-0005`.
    pub fn err_id(&self) -> Option<&str> {
        self.explanation.as_ref()?.err_id.as_deref()
    }

    /// The contract's message number, e.g. `MSG-PYOCO-0005`.
    pub fn msg_id(&self) -> Option<&str> {
        self.explanation.as_ref()?.msg_id.as_deref()
    }

    /// What is wrong with a flow.yaml or a graph that was sent, and where.
    pub fn workflow_problems(&self) -> &[WorkflowProblem] {
        &self.flaws
    }
}

/// What a denial lists, if it lists things of this kind.
fn listed<T: DeserializeOwned>(denial: &Denial) -> Option<Vec<T>> {
    Vec::deserialize(denial.details.get("errors")?).ok()
}

impl fmt::Display for StatusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HTTP {} {}", self.status, self.call)?;
        if let Some(denial) = &self.denial {
            return write!(f, ": {}: {}", denial.code, denial.message);
        }
        match self.body.trim() {
            "" => Ok(()),
            body => write!(f, ": {body}"),
        }
    }
}

impl std::error::Error for StatusError {}

impl Error {
    /// The status of the answer, when there was one that is no success.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Status(error) => Some(error.status),
            Self::InvalidArgument { .. } | Self::Connection { .. } | Self::Timeout { .. } => None,
            Self::File { .. } | Self::BadAnswer { .. } | Self::WaitTimeout { .. } => None,
        }
    }

    /// Whether the same call may succeed a little later.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Connection { .. } | Self::Timeout { .. } => true,
            Self::Status(error) => matches!(error.status, 408 | 429 | 500 | 502..=504),
            Self::InvalidArgument { .. } | Self::File { .. } => false,
            Self::BadAnswer { .. } | Self::WaitTimeout { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, body: &str) -> StatusError {
        let call = Call { method: "GET".to_owned(), path: "/runs/x".to_owned() };
        StatusError::new(status, call, body.to_owned())
    }

    #[test]
    fn a_body_of_the_contract_is_taken_apart() {
        let error = refused(
            404,
            r#"{"detail":"run not found","err_id":"ERR-PYOCO-0005","msg_id":"MSG-PYOCO-0005","errors":[{"line":1,"reason":"r"}]}"#,
        );
        assert_eq!(error.detail(), Some(&Detail::Text("run not found".to_owned())));
        assert_eq!(error.err_id(), Some("ERR-PYOCO-0005"));
        assert_eq!(error.msg_id(), Some("MSG-PYOCO-0005"));
        assert_eq!(
            error.workflow_problems().iter().map(|problem| problem.line).collect::<Vec<_>>(),
            [Some(1)]
        );
    }

    #[test]
    fn a_body_with_a_code_is_taken_apart() {
        let error = refused(
            422,
            r#"{"error":{"code":"INVALID_INPUT","message":"a: no; b: no","details":{"errors":[{"path":"a","message":"no"},{"path":"b","message":"no"}]}}}"#,
        );
        assert_eq!((error.code(), error.message().as_deref()), (Some("INVALID_INPUT"), Some("a: no; b: no")));
        let paths: Vec<&str> = error.field_problems().iter().map(|problem| problem.path.as_str()).collect();
        assert_eq!((paths, error.workflow_problems().len()), (vec!["a", "b"], 0));
        assert_eq!(error.to_string(), "HTTP 422 GET /runs/x: INVALID_INPUT: a: no; b: no");
    }

    #[test]
    fn the_flaws_of_a_graph_have_their_places() {
        let error = refused(
            422,
            r#"{"error":{"code":"INVALID_GRAPH","message":"m","details":{"errors":[{"line":3,"column":7,"reason":"r","message":"no task"}]}}}"#,
        );
        let places: Vec<_> =
            error.workflow_problems().iter().map(|problem| (problem.line, problem.column)).collect();
        assert_eq!((places, error.field_problems().len()), (vec![(Some(3), Some(7))], 0));
    }

    #[test]
    fn any_other_body_is_only_text() {
        let error = refused(502, "  <html>Bad gateway</html>\n");
        assert_eq!((error.detail(), error.err_id(), error.workflow_problems().len()), (None, None, 0));
        assert_eq!(error.to_string(), "HTTP 502 GET /runs/x: <html>Bad gateway</html>");
        assert_eq!(refused(500, "").to_string(), "HTTP 500 GET /runs/x");
    }

    #[test]
    fn only_trouble_of_the_server_passes() {
        let is_passing = |status| Error::Status(Box::new(refused(status, ""))).is_passing();
        assert!(is_passing(503) && is_passing(429) && is_passing(500));
        assert!(!is_passing(404) && !is_passing(401) && !is_passing(422) && !is_passing(501));
    }
}
