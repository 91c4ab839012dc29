//! The same refusals as `{"error": {code, message, details}}`, for the surfaces whose contract words them so.

use std::fmt;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use pyoco_api::{DenialBody, Detail, Extra, FieldProblem, InputProblem};
use pyoco_core::outcome::{Reason, Rejection};
use pyoco_engine::EngineError;
use pyoco_ports::StoreError;
use serde_json::{Value, json};

use super::{Content, Refusal, answer};

/// A refusal on a surface with codes.
#[derive(Debug)]
pub(crate) struct Denial(Refusal);

/// What went wrong, as a stable word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    BadRequest,
    BadToken,
    CommandRejected,
    ExecutionNotFound,
    Forbidden,
    GraphNotFound,
    IdempotencyKeyRequired,
    IdempotencyKeyReused,
    Internal,
    InvalidGraph,
    InvalidIdempotencyKey,
    InvalidInput,
    JobNotFound,
    NodeNotFound,
    NotAcceptable,
    NotFound,
    PayloadTooLarge,
    PreconditionFailed,
    RangeNotSatisfiable,
    StorageFull,
    Timeout,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
    UnsupportedMediaType,
    UpgradeRequired,
}

impl Code {
    /// What a status says by itself.
    fn of_status(status: StatusCode) -> Self {
        match status {
            StatusCode::UNAUTHORIZED => Self::Unauthenticated,
            StatusCode::FORBIDDEN => Self::Forbidden,
            StatusCode::NOT_FOUND => Self::NotFound,
            StatusCode::NOT_ACCEPTABLE => Self::NotAcceptable,
            StatusCode::UPGRADE_REQUIRED => Self::UpgradeRequired,
            StatusCode::REQUEST_TIMEOUT => Self::Timeout,
            StatusCode::CONFLICT => Self::CommandRejected,
            StatusCode::PRECONDITION_FAILED => Self::PreconditionFailed,
            StatusCode::PAYLOAD_TOO_LARGE => Self::PayloadTooLarge,
            StatusCode::UNSUPPORTED_MEDIA_TYPE => Self::UnsupportedMediaType,
            StatusCode::RANGE_NOT_SATISFIABLE => Self::RangeNotSatisfiable,
            StatusCode::UNPROCESSABLE_ENTITY => Self::InvalidInput,
            StatusCode::TOO_MANY_REQUESTS => Self::TooManyRequests,
            StatusCode::SERVICE_UNAVAILABLE => Self::Unavailable,
            StatusCode::INSUFFICIENT_STORAGE => Self::StorageFull,
            status if status.is_server_error() => Self::Internal,
            _ => Self::BadRequest,
        }
    }

    /// What a rule says beyond its status.
    pub(super) fn of(reason: &Reason) -> Option<Self> {
        if *reason == Reason::KeyReused {
            return Some(Self::IdempotencyKeyReused);
        }
        matches!(reason, Reason::UnknownNode(_)).then_some(Self::NodeNotFound)
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::BadRequest => "BAD_REQUEST",
            Self::BadToken => "BAD_TOKEN",
            Self::CommandRejected => "COMMAND_REJECTED",
            Self::ExecutionNotFound => "EXECUTION_NOT_FOUND",
            Self::Forbidden => "FORBIDDEN",
            Self::GraphNotFound => "GRAPH_NOT_FOUND",
            Self::IdempotencyKeyRequired => "IDEMPOTENCY_KEY_REQUIRED",
            Self::IdempotencyKeyReused => "IDEMPOTENCY_KEY_REUSED",
            Self::Internal => "INTERNAL",
            Self::InvalidGraph => "INVALID_GRAPH",
            Self::InvalidIdempotencyKey => "INVALID_IDEMPOTENCY_KEY",
            Self::InvalidInput => "INVALID_INPUT",
            Self::JobNotFound => "JOB_NOT_FOUND",
            Self::NodeNotFound => "NODE_NOT_FOUND",
            Self::NotAcceptable => "NOT_ACCEPTABLE",
            Self::UpgradeRequired => "UPGRADE_REQUIRED",
            Self::NotFound => "NOT_FOUND",
            Self::PayloadTooLarge => "PAYLOAD_TOO_LARGE",
            Self::PreconditionFailed => "PRECONDITION_FAILED",
            Self::RangeNotSatisfiable => "RANGE_NOT_SATISFIABLE",
            Self::StorageFull => "STORAGE_FULL",
            Self::Timeout => "TIMEOUT",
            Self::TooManyRequests => "TOO_MANY_REQUESTS",
            Self::Unauthenticated => "UNAUTHENTICATED",
            Self::Unavailable => "UNAVAILABLE",
            Self::UnsupportedMediaType => "UNSUPPORTED_MEDIA_TYPE",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Denial {
    /// Its code and what it says, where there is no status to say it with.
    pub(crate) fn said(&self) -> (String, String) {
        let Content { status, detail, code, sentence, .. } = &*self.0.0;
        let code = code.unwrap_or_else(|| Code::of_status(*status)).to_string();
        let said = match detail {
            Detail::Text(text) => text.clone(),
            Detail::Inputs(_) => "the input is not as it has to be".to_owned(),
        };
        (code, sentence.clone().unwrap_or(said))
    }
}

impl From<Refusal> for Denial {
    fn from(refusal: Refusal) -> Self {
        Self(refusal)
    }
}

impl From<EngineError> for Denial {
    fn from(error: EngineError) -> Self {
        Self(error.into())
    }
}

impl From<StoreError> for Denial {
    fn from(error: StoreError) -> Self {
        Self(error.into())
    }
}

impl From<Rejection> for Denial {
    fn from(rejection: Rejection) -> Self {
        Self(rejection.into())
    }
}

impl IntoResponse for Denial {
    fn into_response(self) -> Response {
        let Content { status, detail, errors, headers, note, code, sentence } = *self.0.0;
        let (said, mut problems) = match detail {
            Detail::Text(text) => (text, Vec::new()),
            Detail::Inputs(problems) => {
                let problems: Vec<FieldProblem> = problems.iter().map(field_problem).collect();
                let said = problems.iter().map(|problem| format!("{}: {}", problem.path, problem.message));
                (said.collect::<Vec<_>>().join("; "), problems.iter().map(|problem| json!(problem)).collect())
            }
        };
        problems.extend(errors.iter().map(|error| json!(error)));
        let mut details = Extra::new();
        if !problems.is_empty() {
            details.insert("errors".to_owned(), Value::Array(problems));
        }
        let code = code.unwrap_or_else(|| Code::of_status(status)).to_string();
        let message = sentence.unwrap_or(said);
        answer(status, DenialBody { error: pyoco_api::Denial { code, message, details } }, headers, note)
    }
}

/// `body.error.code` is the caller's `error.code`.
fn field_problem(problem: &InputProblem) -> FieldProblem {
    let way: Vec<String> = problem.loc.iter().skip(1).map(ToString::to_string).collect();
    let is_text = problem.kind == "json_invalid";
    // Where a text is no JSON, the way leads to a character.
    let path = if way.is_empty() || is_text { "body".to_owned() } else { way.join(".") };
    let more = problem.ctx.as_ref().and_then(|ctx| ctx["error"].as_str());
    let message = match more {
        Some(more) => format!("{}: {more}", problem.msg),
        None => problem.msg.clone(),
    };
    FieldProblem { path, message }
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use axum::http::header;
    use pyoco_core::ids::NodeId;
    use pyoco_core::notice::Notice;
    use pyoco_ports::ErrorKind;

    use super::*;
    use crate::body::Trouble;

    async fn shown(denial: impl Into<Denial>) -> (u16, Value) {
        let response = denial.into().into_response();
        let status = response.status().as_u16();
        let bytes = to_bytes(response.into_body(), 1 << 20).await.unwrap();
        (status, serde_json::from_slice(&bytes).unwrap())
    }

    #[tokio::test]
    async fn a_caller_who_is_not_let_in_is_told_so_in_the_words_of_the_surface() {
        for (status, code) in
            [(StatusCode::UNAUTHORIZED, "UNAUTHENTICATED"), (StatusCode::FORBIDDEN, "FORBIDDEN")]
        {
            let (number, body) = shown(Refusal::new(status, "no")).await;
            assert_eq!(number, status.as_u16());
            assert_eq!(body, json!({"error": {"code": code, "message": "no", "details": {}}}));
        }
    }

    #[tokio::test]
    async fn a_broken_rule_is_named_with_its_command() {
        let rejection = |reason| Rejection { command: "ResumeNode", reason };
        let node = NodeId::new("a").unwrap();
        for (reason, status, code) in [
            (Reason::CancelRequested, 409, "COMMAND_REJECTED"),
            (Reason::KeyReused, 409, "IDEMPOTENCY_KEY_REUSED"),
            (Reason::UnknownNode(node), 404, "NODE_NOT_FOUND"),
            (Reason::ProgressOutOfRange, 422, "INVALID_INPUT"),
            (Reason::ValueTooLarge, 413, "PAYLOAD_TOO_LARGE"),
        ] {
            let message = rejection(reason.clone()).to_string();
            let (number, body) = shown(rejection(reason)).await;
            assert_eq!(number, status);
            assert_eq!(body, json!({"error": {"code": code, "message": message, "details": {}}}));
        }
    }

    #[tokio::test]
    async fn what_went_wrong_before_or_behind_the_rules_has_a_code_too() {
        let store = |kind| Denial::from(StoreError::plain(kind, "append"));
        let body = |trouble: Trouble| Denial::from(trouble.refusal());
        for (denial, status, code, is_for_now) in [
            (body(Trouble::TooLarge), 413, "PAYLOAD_TOO_LARGE", false),
            (body(Trouble::TooSlow), 408, "TIMEOUT", false),
            (body(Trouble::Broken), 400, "BAD_REQUEST", false),
            (store(ErrorKind::Full), 507, "STORAGE_FULL", true),
            (store(ErrorKind::Unavailable), 503, "UNAVAILABLE", true),
            (store(ErrorKind::Corrupt), 503, "UNAVAILABLE", false),
            (EngineError::UnknownGraph("g".to_owned()).into(), 404, "GRAPH_NOT_FOUND", false),
        ] {
            let response = denial.into_response();
            assert_eq!(response.status().as_u16(), status, "{code}");
            assert_eq!(response.headers().contains_key(header::RETRY_AFTER), is_for_now, "{code}");
            let bytes = to_bytes(response.into_body(), 1 << 20);
            let body: Value = serde_json::from_slice(&bytes.await.unwrap()).unwrap();
            assert_eq!(
                (&body["error"]["code"], &body["error"]["details"]),
                (&json!(code), &json!({})),
                "{status}"
            );
            // How the store is called inside is nobody's business here.
            assert!(!body.to_string().contains("nats"), "{body}");
        }
    }

    #[tokio::test]
    async fn every_wrong_input_is_listed_with_its_way() {
        let problem = |kind: &str, loc: &[&str], msg: &str, ctx: Option<Value>| InputProblem {
            kind: kind.to_owned(),
            loc: loc.iter().map(|step| (*step).into()).collect(),
            msg: msg.to_owned(),
            input: Value::Null,
            ctx,
        };
        let problems = vec![
            problem("string_type", &["body", "error", "code"], "must be a text", None),
            problem("json_invalid", &["body", "7"], "JSON decode error", Some(json!({"error": "eof"}))),
        ];
        let (status, body) = shown(Refusal::inputs(problems, Notice::InvalidRequest)).await;
        assert_eq!(status, 422);
        let wanted = json!([
            {"path": "error.code", "message": "must be a text"},
            {"path": "body", "message": "JSON decode error: eof"},
        ]);
        assert_eq!(body["error"]["details"]["errors"], wanted);
        assert_eq!(body["error"]["message"], "error.code: must be a text; body: JSON decode error: eof");
    }
}
