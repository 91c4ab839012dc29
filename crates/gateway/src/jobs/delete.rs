//! Deleting a job: one that goes on is cancelled, one that has ended is hidden. Whoever wants both asks twice.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use pyoco_core::command::{AnnotateExecution, CancelExecution, Command};
use pyoco_core::ids::ExecutionId;
use pyoco_core::outcome::{Reason, Rejection};
use pyoco_engine::EngineError;

use crate::App;
use crate::caller::Viewer;
use crate::docs::{Denied, Removed};
use crate::error::{Denial, Refusal};

/// Cancels a job that goes on, or takes one that has ended out of every list. Whether there was such a job makes no difference.
#[utoipa::path(delete, operation_id = "deleteJob", tag = "jobs", path = "/jobs/{id}", params(("id" = String, Path)), responses(
    (status = 204, description = "It is asked to stop, or hidden, or was not there."), Removed, Denied
))]
pub(crate) async fn delete(
    State(app): State<App>,
    Viewer(caller): Viewer,
    path: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, Denial> {
    let named = path.ok().and_then(|Path(text)| ExecutionId::new(&text).ok());
    let Some(job) = named else { return Ok(StatusCode::NO_CONTENT) };
    let has_ended = app.found_job(&caller, &job, |state| state.phase.is_terminal()).await?;
    let Some(has_ended) = has_ended else { return Ok(StatusCode::NO_CONTENT) };
    let command = if has_ended {
        let none = Vec::new();
        let hide = AnnotateExecution {
            add_labels: none.clone(),
            remove_labels: none,
            hidden: Some(true),
            retried_by: None,
        };
        Command::from(hide)
    } else {
        CancelExecution { reason: Some("job deleted".to_owned()) }.into()
    };
    match app.tell(&caller, &job, command).await? {
        // It has ended meanwhile: there is nothing left to stop.
        Ok(()) | Err(EngineError::Rejected(Rejection { reason: Reason::Ended(_), .. })) => {
            Ok(StatusCode::NO_CONTENT)
        }
        Err(error) => Err(Refusal::from(error).of_run(job.as_str()).into()),
    }
}
