//! Runs: submit, look, list, watch, cancel. One file a request.

pub(crate) mod cancel;
pub(crate) mod get;
mod idempotency;
pub(crate) mod list;
mod snapshot;
pub(crate) mod submit;
pub(crate) mod submit_yaml;
pub(crate) mod tasks;
pub(crate) mod watch;

use std::future::Future;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use pyoco_core::ids::ExecutionId;

use crate::App;
use crate::error::Refusal;

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

/// Does something to its end, also when the caller hangs up meanwhile: a command that was begun is finished, and those who
/// watch hear of it.
async fn to_its_end<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> Result<T, Refusal> {
    tokio::spawn(work).await.map_err(|error| match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        // Only when the process is about to end.
        Err(_) => {
            Refusal::new(axum::http::StatusCode::SERVICE_UNAVAILABLE, "the server is stopping").for_now()
        }
    })
}
