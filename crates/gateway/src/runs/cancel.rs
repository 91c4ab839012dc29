//! Asking a run to stop.

use axum::extract::{Request, State};
use axum::{Extension, Json};
use pyoco_api::{ErrorBody, RunSnapshot, Why};
use pyoco_core::command::CancelExecution;
use pyoco_core::json::{self, Limits, Object};
use pyoco_core::outcome::{Reason, Rejection};
use pyoco_engine::EngineError;

use super::RunId;
use super::snapshot::{Form, Room};
use crate::audit::Told;
use crate::caller::Caller;
use crate::docs::{Always, Bodied, Writing};
use crate::error::Refusal;
use crate::fields::REASON;
use crate::server::Hosting;
use crate::{App, body};

/// Asks a run to stop. One that no worker has taken is cancelled at once; one that has ended stays as it is.
#[utoipa::path(post, operation_id = "cancelRun", tag = "runs", path = "/runs/{run_id}/cancel", params(("run_id" = String, Path)), request_body = Option<Why>, responses(
    (status = 200, description = "The run, asked to stop.", body = RunSnapshot), (status = 404, description = "There is no such run.", body = ErrorBody), Bodied, Writing, Always
))]
pub(crate) async fn cancel(
    State(app): State<App>,
    caller: Caller,
    RunId(run): RunId,
    hosting: Hosting,
    request: Request,
) -> Result<(Extension<Told>, Json<Form>), Refusal> {
    let (parts, body) = request.into_parts();
    let bytes = body::read(&parts.headers, body, body::JSON_BYTES, hosting.limits.body_timeout).await?;
    let reason = reason(&bytes);
    let told = Extension(Told::because(reason.clone()));
    // Somebody else's run is not there.
    app.run_seen(&caller, &run, |_| ()).await?;
    match app.tell(&caller, &run, CancelExecution { reason }).await? {
        // It has ended: that is what is shown.
        Ok(()) | Err(EngineError::Rejected(Rejection { reason: Reason::Ended(_), .. })) => {}
        Err(error) => return Err(Refusal::from(error).of_run(run.as_str())),
    }
    let shown = app.shown(&caller, &run, false).await?;
    Ok((told, Json(shown.form(&mut Room::new(&app)))))
}

/// Why, if the body says it. Whatever else a body says is ignored, as the original does, but it has to arrive.
fn reason(body: &[u8]) -> Option<String> {
    let Ok(Object(members)) = json::decode(body, Limits::BODY) else { return None };
    members.get("reason")?.as_str().map(|text| text.chars().take(REASON).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_text_says_why() {
        assert_eq!(reason(br#"{"reason": "enough", "x": 1}"#).as_deref(), Some("enough"));
        for body in ["", "{", "[]", "5", r#"{"reason": 5}"#, r#"{"reason": null}"#, "reason=enough"] {
            assert_eq!(reason(body.as_bytes()), None, "{body}");
        }
        let long = format!(r#"{{"reason": "{}"}}"#, "x".repeat(REASON + 1));
        assert_eq!(reason(long.as_bytes()).unwrap().len(), REASON);
    }
}
