//! Runs: submit, look, list, watch, cancel. One file a request.

pub(crate) mod cancel;
pub(crate) mod changes;
pub(crate) mod checked;
pub(crate) mod explain;
pub(crate) mod get;
pub(crate) mod latest;
pub(crate) mod list;
pub(crate) mod logs;
pub(crate) mod plan;
mod snapshot;
pub(crate) mod submit;
pub(crate) mod submit_yaml;
pub(crate) mod tasks;
pub(crate) mod watch;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use pyoco_core::ids::{CommandId, ExecutionId};
use pyoco_core::notice::Notice;

use crate::error::Refusal;
use crate::{App, idempotency};

/// The run that a path names. What cannot be an id names no run.
pub(crate) struct RunId(pub(crate) ExecutionId);

impl FromRequestParts<App> for RunId {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Refusal> {
        let path = Path::<String>::from_request_parts(parts, app).await;
        let text = path.map(|path| path.0).unwrap_or_default();
        ExecutionId::new(&text).map(Self).map_err(|_| Refusal::run_not_found(&text))
    }
}

/// The key under which a submission may be repeated.
fn key(headers: &HeaderMap) -> Result<Option<CommandId>, Refusal> {
    idempotency::key(headers).map_err(|reason| {
        let detail = format!("invalid X-Idempotency-Key: {reason}");
        Refusal::new(StatusCode::BAD_REQUEST, detail).noticed(Notice::InvalidRequest)
    })
}
