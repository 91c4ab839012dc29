//! Asking a run to stop.

use axum::Json;
use axum::extract::{Request, State};
use pyoco_api::{ErrorBody, RunSnapshot};
use pyoco_core::command::CancelExecution;
use pyoco_core::outcome::{Reason, Rejection};
use pyoco_engine::EngineError;
use serde_json::{Map, Value};

use super::snapshot::Room;
use super::{RunId, to_its_end};
use crate::caller::Caller;
use crate::docs::{Always, Bodied, Writing};
use crate::error::Refusal;
use crate::server::Hosting;
use crate::{App, body};

/// Asks a run to stop. One that no worker has taken is cancelled at once; one that has ended stays as it is.
#[utoipa::path(post, path = "/runs/{run_id}/cancel", params(("run_id" = String, Path)), responses(
    (status = 200, description = "The run, asked to stop.", body = RunSnapshot), (status = 404, description = "There is no such run.", body = ErrorBody), Bodied, Writing, Always
))]
pub(crate) async fn cancel(
    State(app): State<App>,
    caller: Caller,
    RunId(run): RunId,
    hosting: Hosting,
    request: Request,
) -> Result<Json<Map<String, Value>>, Refusal> {
    // Whatever the body says is ignored, but it has to arrive.
    let (parts, body) = request.into_parts();
    body::read(&parts.headers, body, body::JSON_BYTES, hosting.limits.body_timeout).await?;
    // Somebody else's run is not there.
    app.shown(&caller, &run).await?;
    let (engine, clock, issuer, cancelled) =
        (app.engine.clone(), app.clock.clone(), caller.issuer(), run.clone());
    let answer = to_its_end(async move {
        let command = CancelExecution { reason: None };
        let request = pyoco_core::command::Request::new(issuer, clock.now(), command);
        match engine.command(&cancelled, &request).await {
            // Another implementation has accepted it; from now on it has a log.
            Err(EngineError::Rejected(Rejection { reason: Reason::UnknownExecution(_), .. }))
                if engine.adopt(&cancelled).await? =>
            {
                engine.command(&cancelled, &request).await
            }
            answer => answer,
        }
    });
    match answer.await? {
        // It has ended: that is what is shown.
        Ok(_) | Err(EngineError::Rejected(Rejection { reason: Reason::Ended(_), .. })) => {}
        Err(error) => return Err(Refusal::from(error).of_run(run.as_str())),
    }
    let shown = app.shown(&caller, &run).await?;
    Ok(Json(shown.members(false, &mut Room::new(&app))))
}
