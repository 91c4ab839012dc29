//! What is answered when something is wrong: status, `detail` as the contract words it, and the numbers of the notice.
//!
//! What went wrong becomes a status here and nowhere else. `Refusal` tells it as `/runs`, `/workers` and `/wheels` do; `Denial` tells the
//! same in the words of `/executions`, `/graphs`, `/waits`, `/jobs`, `/tags` and `/audit`.

mod denial;

use axum::Json;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use pyoco_api::{Detail, ErrorBody, InputProblem, WorkflowProblem};
use pyoco_core::notice::Notice;
use pyoco_core::outcome::{Reason, Rejection, RejectionKind};
use pyoco_engine::EngineError;
use pyoco_flow::FlowError;
use pyoco_ports::{ErrorKind, StoreError};

pub(crate) use denial::{Code, Denial};

/// Whether a path belongs to a surface that tells what is wrong with codes.
pub(crate) fn has_codes(path: &str) -> bool {
    matches!(path.split('/').nth(1), Some("audit" | "executions" | "graphs" | "jobs" | "tags" | "waits"))
}

/// An answer from 400 up.
#[derive(Debug)]
pub(crate) struct Refusal(Box<Content>);

#[derive(Debug)]
struct Content {
    status: StatusCode,
    detail: Detail,
    errors: Vec<WorkflowProblem>,
    headers: HeaderMap,
    note: Note,
    /// What a denial says instead of what its status says.
    code: Option<Code>,
    /// What a denial says instead of the detail.
    sentence: Option<String>,
}

/// What the operator is told about it. Never what a run was given.
#[derive(Debug, Clone, Default)]
pub(crate) struct Note {
    pub(crate) notice: Option<Notice>,
    pub(crate) reason: String,
    pub(crate) run_id: Option<String>,
    pub(crate) flow_name: Option<String>,
    pub(crate) tag: Option<String>,
    pub(crate) wheel_name: Option<String>,
}

impl Refusal {
    /// An answer with a text.
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        let note = Note { reason: detail.clone(), ..Note::default() };
        Self::with(status, Detail::Text(detail), note)
    }

    fn with(status: StatusCode, detail: Detail, note: Note) -> Self {
        let errors = Vec::new();
        Self(Box::new(Content {
            status,
            detail,
            errors,
            headers: HeaderMap::new(),
            note,
            code: None,
            sentence: None,
        }))
    }

    /// 422 with the list of what is wrong.
    pub(crate) fn inputs(problems: Vec<InputProblem>, notice: Notice) -> Self {
        // The log says which input and which rule, never the value.
        let reasons: Vec<String> = problems
            .iter()
            .map(|problem| {
                let way: Vec<String> = problem.loc.iter().map(ToString::to_string).collect();
                format!("{} {}", way.join("."), problem.kind)
            })
            .collect();
        let note = Note { reason: reasons.join(", "), ..Note::default() };
        Self::with(StatusCode::UNPROCESSABLE_ENTITY, Detail::Inputs(problems), note).noticed(notice)
    }

    pub(crate) fn path_not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "Not Found")
    }

    pub(crate) fn method_not_allowed() -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed")
    }

    pub(crate) fn run_not_found(run: &str) -> Self {
        let refusal = Self::new(StatusCode::NOT_FOUND, "run not found").coded(Code::ExecutionNotFound);
        refusal.in_words("there is no such execution").noticed(Notice::RunNotFound).of_run(run)
    }

    /// 404 for a job that is not there, not the caller's, or deleted.
    pub(crate) fn job_not_found(job: &str) -> Self {
        let refusal = Self::new(StatusCode::NOT_FOUND, "there is no such job").coded(Code::JobNotFound);
        refusal.noticed(Notice::RunNotFound).of_run(job)
    }

    /// 400 for a token that nobody gave, or that belongs elsewhere.
    pub(crate) fn bad_token(name: &str, reason: &str) -> Self {
        let detail = format!("invalid {name}: {reason}");
        Self::new(StatusCode::BAD_REQUEST, detail).coded(Code::BadToken).noticed(Notice::InvalidRequest)
    }

    /// 503 when everybody who may watch does.
    pub(crate) fn too_many_watches(run: &str) -> Self {
        let refusal = Self::new(StatusCode::SERVICE_UNAVAILABLE, "too many watches are open");
        refusal.of_run(run).for_now()
    }

    /// What will be answered.
    pub(crate) fn status(&self) -> StatusCode {
        self.0.status
    }

    /// In the words of the surface that a path belongs to.
    pub(crate) fn at(self, path: &str) -> Response {
        if has_codes(path) { Denial::from(self).into_response() } else { self.into_response() }
    }

    /// With the contract's numbers.
    #[must_use]
    pub(crate) fn noticed(mut self, notice: Notice) -> Self {
        self.0.note.notice = Some(notice);
        self
    }

    /// Which run it is about.
    #[must_use]
    pub(crate) fn of_run(mut self, run: &str) -> Self {
        // What is no id may be anything; a log line is no place for it.
        self.0.note.run_id = Some(run.chars().take(64).collect());
        self
    }

    /// Which flow and tag it is about.
    #[must_use]
    pub(crate) fn of_flow(mut self, flow_name: &str, tag: &str) -> Self {
        self.0.note.flow_name = Some(flow_name.chars().take(256).collect());
        self.0.note.tag = Some(tag.to_owned());
        self
    }

    /// Which wheel it is about.
    #[must_use]
    pub(crate) fn of_wheel(mut self, name: &str) -> Self {
        self.0.note.wheel_name = Some(name.chars().take(256).collect());
        self
    }

    /// What the log says instead of the detail.
    #[must_use]
    pub(crate) fn because(mut self, reason: impl Into<String>) -> Self {
        self.0.note.reason = reason.into();
        self
    }

    /// Where a flow is wrong.
    #[must_use]
    pub(crate) fn flawed(mut self, error: &FlowError) -> Self {
        let problems = error.diagnostics().map(|problem| WorkflowProblem {
            line: problem.line(),
            column: problem.column(),
            reason: problem.reason().to_owned(),
            message: Some(problem.message().to_owned()),
            help: problem.help().map(str::to_owned),
        });
        self.0.errors = problems.collect();
        self.because(error.reason())
    }

    /// Its code, where the status alone does not say it.
    #[must_use]
    pub(crate) fn coded(mut self, code: Code) -> Self {
        self.0.code = Some(code);
        self
    }

    /// What a denial says instead of the detail.
    #[must_use]
    pub(crate) fn in_words(mut self, sentence: impl Into<String>) -> Self {
        self.0.sentence = Some(sentence.into());
        self
    }

    /// The same request may succeed in a moment.
    #[must_use]
    pub(crate) fn for_now(mut self) -> Self {
        self.0.headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        self
    }

    /// With a header that says more.
    #[must_use]
    pub(crate) fn with_header(mut self, name: HeaderName, value: impl Into<HeaderValue>) -> Self {
        self.0.headers.insert(name, value.into());
        self
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let Content { status, detail, errors, headers, note, .. } = *self.0;
        let body = ErrorBody {
            detail,
            err_id: note.notice.map(Notice::err_id),
            msg_id: note.notice.map(Notice::msg_id),
            errors,
            extra: Default::default(),
        };
        answer(status, body, headers, note)
    }
}

fn answer(status: StatusCode, body: impl serde::Serialize, headers: HeaderMap, note: Note) -> Response {
    let mut response = (status, headers, Json(body)).into_response();
    response.extensions_mut().insert(note);
    response
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        let status = match error.kind {
            ErrorKind::Full => StatusCode::INSUFFICIENT_STORAGE,
            ErrorKind::Unavailable
            | ErrorKind::Timeout
            | ErrorKind::Closed
            | ErrorKind::Corrupt
            | ErrorKind::TooLarge
            | ErrorKind::Internal => StatusCode::SERVICE_UNAVAILABLE,
        };
        // Clients of the original look for this beginning.
        let refusal = Self::new(status, format!("nats unavailable: {:?}", error.kind))
            .noticed(Notice::StoreUnavailable)
            .in_words(match error.kind {
                ErrorKind::Full => "the store is full; nothing was changed",
                ErrorKind::Unavailable
                | ErrorKind::Timeout
                | ErrorKind::Closed
                | ErrorKind::Corrupt
                | ErrorKind::TooLarge
                | ErrorKind::Internal => "the store cannot be used now",
            })
            .because(error.to_string());
        if error.kind.is_retryable() { refusal.for_now() } else { refusal }
    }
}

impl From<EngineError> for Refusal {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Store(error) | EngineError::Unfollowed(error) => error.into(),
            EngineError::Rejected(rejection) => rejection.into(),
            EngineError::Busy(ref execution) => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "nats unavailable: Busy")
                    .noticed(Notice::StoreUnavailable)
                    .in_words(error.to_string())
                    .because(error.to_string())
                    .of_run(execution.as_str())
                    .for_now()
            }
            EngineError::UnknownGraph(_) => Self::new(StatusCode::NOT_FOUND, error.to_string())
                .coded(Code::GraphNotFound)
                .noticed(Notice::InvalidRequest),
            EngineError::UnusableGraph { error: ref flaw, .. } => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string())
                    .coded(Code::InvalidGraph)
                    .noticed(Notice::InvalidRequest)
                    .flawed(flaw)
            }
            EngineError::Log { ref execution, .. } => {
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "what is stored of this run cannot be read")
                    .because(error.to_string())
                    .of_run(execution.as_str())
            }
        }
    }
}

impl From<Rejection> for Refusal {
    fn from(rejection: Rejection) -> Self {
        if let Reason::UnknownExecution(execution) = &rejection.reason {
            return Self::run_not_found(execution.as_str()).in_words(rejection.to_string());
        }
        let status = match rejection.reason.kind() {
            _ if rejection.reason == Reason::ValueTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            RejectionKind::NotFound => StatusCode::NOT_FOUND,
            RejectionKind::Conflict => StatusCode::CONFLICT,
            RejectionKind::Invalid => StatusCode::UNPROCESSABLE_ENTITY,
            RejectionKind::SealFirst => StatusCode::SERVICE_UNAVAILABLE,
        };
        let refusal = Self::new(status, rejection.reason.to_string()).noticed(Notice::InvalidRequest);
        let refusal = refusal.in_words(rejection.to_string());
        match Code::of(&rejection.reason) {
            Some(code) => refusal.coded(code),
            None => refusal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_store_is_told_from_one_that_is_away() {
        let status = |kind| Refusal::from(StoreError::plain(kind, "append")).into_response();
        let full = status(ErrorKind::Full);
        assert_eq!((full.status().as_u16(), full.headers().contains_key(header::RETRY_AFTER)), (507, true));
        for kind in [ErrorKind::Unavailable, ErrorKind::Timeout, ErrorKind::Closed, ErrorKind::Corrupt] {
            assert_eq!(status(kind).status(), StatusCode::SERVICE_UNAVAILABLE);
        }
    }

    #[test]
    fn what_an_input_was_is_not_for_the_log() {
        let problem = InputProblem {
            kind: "dict_type".to_owned(),
            loc: vec!["body".into(), "params".into()],
            msg: "m".to_owned(),
            input: serde_json::json!("secret"),
            ctx: None,
        };
        let response = Refusal::inputs(vec![problem], Notice::InvalidRequest).into_response();
        assert_eq!(response.extensions().get::<Note>().unwrap().reason, "body.params dict_type");
    }
}
