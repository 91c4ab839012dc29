//! What can go wrong between a caller and the gateway, told apart so that a program can act on it.

use std::fmt;
use std::time::Duration;

use pyoco_api::{Detail, ErrorBody, WorkflowProblem};
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
    /// The same, when it has the contract's form.
    pub explanation: Option<ErrorBody>,
}

impl StatusError {
    pub(crate) fn new(status: u16, call: Call, body: String) -> Self {
        let explanation = serde_json::from_str(&body).ok();
        Self { status, call, body, explanation }
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

    /// What is wrong with a flow.yaml that was sent, and where.
    pub fn workflow_problems(&self) -> &[WorkflowProblem] {
        self.explanation.as_ref().map_or(&[], |body| &body.errors)
    }
}

impl fmt::Display for StatusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HTTP {} {}", self.status, self.call)?;
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
            Self::BadAnswer { .. } | Self::WaitTimeout { .. } => None,
        }
    }

    /// Whether the same call may succeed a little later.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Connection { .. } | Self::Timeout { .. } => true,
            Self::Status(error) => matches!(error.status, 408 | 429 | 500 | 502..=504),
            Self::InvalidArgument { .. } | Self::BadAnswer { .. } | Self::WaitTimeout { .. } => false,
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
