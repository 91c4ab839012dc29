//! Executions: create, drive, look, list, follow, retry; one, or many at once. One file a kind of request.
//!
//! Here is what the commands share: who sends one, under which key, and what an accepted one is answered.

pub(crate) mod bulk;
pub(crate) mod commands;
pub(crate) mod create;
pub(crate) mod events;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod nodes;
pub(crate) mod retry;
pub(crate) mod stream;

use std::time::Duration;

use axum::Json;
use axum::extract::{FromRequestParts, Path, Request};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use pyoco_api::{Accepted, Location};
use pyoco_core::command::Command;
use pyoco_core::ids::{CommandId, ExecutionId, NodeId};
use pyoco_core::notice::Notice;
use pyoco_engine::{Ask, Asked};

use crate::audit::Told;
use crate::caller::{Caller, Viewer};
use crate::error::{Code, Denial, Refusal};
use crate::fields::Fields;
use crate::server::Hosting;
use crate::trace::traceparent;
use crate::unhurried::to_its_end;
use crate::validation::{self, Inputs};
use crate::{App, Shared, idempotency};

/// The execution that a path names. What cannot be an id names none.
pub(crate) struct ExecutionPath(pub(crate) ExecutionId);

/// The node that a path names, and its execution.
pub(crate) struct NodePath(pub(crate) ExecutionId, pub(crate) NodeId);

impl FromRequestParts<App> for ExecutionPath {
    type Rejection = Denial;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Denial> {
        let path = Path::<String>::from_request_parts(parts, app).await;
        Ok(Self(execution_named(&path.map(|path| path.0).unwrap_or_default())?))
    }
}

impl FromRequestParts<App> for NodePath {
    type Rejection = Denial;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Denial> {
        let path = Path::<(String, String)>::from_request_parts(parts, app).await;
        let (execution, node) = path.map(|path| path.0).unwrap_or_default();
        let execution = execution_named(&execution)?;
        let node = NodeId::new(&node).map_err(|_| {
            Refusal::new(StatusCode::NOT_FOUND, "there is no such node")
                .coded(Code::NodeNotFound)
                .noticed(Notice::InvalidRequest)
                .of_run(execution.as_str())
        })?;
        Ok(Self(execution, node))
    }
}

fn execution_named(text: &str) -> Result<ExecutionId, Refusal> {
    ExecutionId::new(text).map_err(|_| Refusal::run_not_found(text))
}

/// Who sends a command, under which key, as part of what.
pub(crate) struct Asking {
    pub(crate) caller: Caller,
    pub(crate) key: Option<CommandId>,
    pub(crate) correlation_id: Option<String>,
    /// The trace that the caller is in.
    pub(crate) traceparent: Option<String>,
    patience: Duration,
}

impl FromRequestParts<App> for Asking {
    type Rejection = Denial;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Denial> {
        Self::of(parts, app, app.settings.idempotency_key_required).await
    }
}

impl Asking {
    /// What a request says; under a key, if it has to be under one.
    pub(crate) async fn of(parts: &mut Parts, app: &App, needs_key: bool) -> Result<Self, Denial> {
        let Viewer(caller) = Viewer::from_request_parts(parts, app).await?;
        let Ok(hosting) = Hosting::from_request_parts(parts, app).await;
        let unprocessable = |detail: String, code| {
            Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, detail).coded(code).noticed(Notice::InvalidRequest)
        };
        let key = idempotency::key(&parts.headers).map_err(|reason| {
            unprocessable(format!("invalid X-Idempotency-Key: {reason}"), Code::InvalidIdempotencyKey)
        })?;
        if key.is_none() && needs_key {
            let detail = "X-Idempotency-Key is required: choose a new one (a UUID) for each command, and the same one to repeat it";
            return Err(unprocessable(detail.to_owned(), Code::IdempotencyKeyRequired).into());
        }
        let correlation_id = match idempotency::correlation(&parts.headers) {
            Ok(correlation_id) => correlation_id,
            Err(reason) => {
                let mut inputs = Inputs::default();
                let place: [Location; 2] = ["header".into(), "X-Correlation-Id".into()];
                inputs.wrong("value_error", place, reason, serde_json::Value::Null, None);
                inputs.finish(Notice::InvalidRequest)?;
                None
            }
        };
        let traceparent = traceparent(&parts.headers);
        Ok(Self { caller, key, correlation_id, traceparent, patience: hosting.limits.body_timeout })
    }

    /// The members of its body, which has to be JSON and to say so.
    pub(crate) async fn json(&self, request: Request) -> Result<Fields, Denial> {
        let members = validation::object(request, self.patience, Notice::InvalidRequest).await?;
        Ok(Fields::of_body(members))
    }

    /// The members of its body.
    async fn fields(&self, request: Request) -> Result<Fields, Denial> {
        let members = validation::members(request, self.patience, Notice::InvalidRequest).await?;
        Ok(Fields::of_body(members))
    }
}

impl Shared {
    /// Asks something of an execution; answers when it is written down, and not before.
    async fn ask(
        &self,
        asking: Asking,
        execution: ExecutionId,
        command: impl Into<Command>,
    ) -> Result<Response, Denial> {
        let command = command.into();
        let name = command.name();
        self.must_be_seen(&asking.caller, &execution).await?;
        let Asking { caller, key, correlation_id, .. } = asking;
        let ask = Ask { command, issuer: caller.issuer(), key, correlation_id };
        let (engine, asked_of) = (self.engine.clone(), execution.clone());
        let asked = to_its_end(async move { engine.ask(&asked_of, ask).await }).await?;
        Ok(accepted(name, asked.map_err(|error| Refusal::from(error).of_run(execution.as_str()))?))
    }
}

/// The common answer: 202 the first time, 200 for a repeat.
fn accepted(command: &'static str, asked: Asked) -> Response {
    let status = if asked.is_repeat { StatusCode::OK } else { StatusCode::ACCEPTED };
    let echo = HeaderValue::from_str(&asked.correlation_id);
    let body = Accepted {
        execution_id: asked.execution.to_string(),
        command: command.to_owned(),
        accepted: true,
        correlation_id: asked.correlation_id,
        idempotency_key: asked.key.as_str().to_owned(),
    };
    let mut response = (status, Json(body)).into_response();
    if let Ok(echo) = echo {
        response.headers_mut().insert(idempotency::CORRELATION, echo);
    }
    response
}

/// The same, with where the new execution is.
fn accepted_at(command: &'static str, asked: Asked) -> Response {
    let place = HeaderValue::from_str(&format!("/executions/{}", asked.execution));
    let told = Told::made(&asked.execution);
    let mut response = accepted(command, asked);
    response.extensions_mut().insert(told);
    if let Ok(place) = place {
        response.headers_mut().insert(header::LOCATION, place);
    }
    response
}
