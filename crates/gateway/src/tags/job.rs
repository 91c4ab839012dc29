//! The tags of one job: see, add, remove. Each change is a command of its own, so that two who change at once lose nothing.

use axum::Json;
use axum::extract::{FromRequestParts, Path, Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use pyoco_api::AddTag;
use pyoco_core::command::AnnotateExecution;
use pyoco_core::ids::ExecutionId;

use super::normal;
use crate::App;
use crate::caller::Viewer;
use crate::docs::{Adding, Denied, JobFound, Removed};
use crate::error::{Denial, Refusal};
use crate::jobs::{JobAsking, JobPath};

/// The tags of a job.
#[utoipa::path(get, operation_id = "listJobTags", tag = "tags", path = "/jobs/{id}/tags", params(("id" = String, Path)), responses(
    (status = 200, description = "The tags.", body = Vec<String>), JobFound, Denied
))]
pub(crate) async fn list(
    State(app): State<App>,
    Viewer(caller): Viewer,
    JobPath(job): JobPath,
) -> Result<Json<Vec<String>>, Denial> {
    Ok(Json(app.job(&caller, &job, |state| state.labels.clone()).await?))
}

/// Gives a job a tag. That it has it already is no error.
#[utoipa::path(post, operation_id = "addJobTag", tag = "tags", path = "/jobs/{id}/tags", params(("id" = String, Path)), request_body = AddTag, responses(
    (status = 200, description = "The tags it has now.", body = Vec<String>), Adding, Denied
))]
pub(crate) async fn add(
    State(app): State<App>,
    JobAsking(asking): JobAsking,
    JobPath(job): JobPath,
    request: Request,
) -> Result<Json<Vec<String>>, Denial> {
    let mut fields = asking.json(request).await?;
    fields.only(&["tag"]);
    if !fields.has("tag") {
        fields.missing("tag");
    }
    let tag = fields.job_tag("tag");
    fields.finish()?;
    app.job(&asking.caller, &job, |_| ()).await?;
    let command = annotation(tag.into_iter().collect(), Vec::new());
    let told = app.tell(&asking.caller, &job, command).await?;
    told.map_err(|error| Refusal::from(error).of_run(job.as_str()))?;
    Ok(Json(app.job(&asking.caller, &job, |state| state.labels.clone()).await?))
}

/// Takes a tag from a job. Whether there was such a job, or it had the tag, makes no difference.
#[utoipa::path(delete, operation_id = "removeJobTag", tag = "tags", path = "/jobs/{id}/tags/{tag}", params(
    ("id" = String, Path), ("tag" = String, Path, description = "percent-encoded, also a slash in it")
), responses((status = 204, description = "It does not have it."), Removed, Denied))]
pub(crate) async fn remove(
    State(app): State<App>,
    Viewer(caller): Viewer,
    TagPath(named): TagPath,
) -> Result<StatusCode, Denial> {
    let Some((job, tag)) = named else { return Ok(StatusCode::NO_CONTENT) };
    let has = app.found_job(&caller, &job, |state| state.labels.contains(&tag)).await?;
    if has == Some(true) {
        let told = app.tell(&caller, &job, annotation(Vec::new(), vec![tag])).await?;
        told.map_err(|error| Refusal::from(error).of_run(job.as_str()))?;
    }
    Ok(StatusCode::NO_CONTENT)
}

fn annotation(add_labels: Vec<String>, remove_labels: Vec<String>) -> AnnotateExecution {
    AnnotateExecution { add_labels, remove_labels, hidden: None, retried_by: None }
}

/// The job and the tag that a path names; nothing if it names none.
pub(crate) struct TagPath(Option<(ExecutionId, String)>);

impl FromRequestParts<App> for TagPath {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Self::Rejection> {
        let path = Path::<(String, String)>::from_request_parts(parts, app).await;
        let named = path.ok().and_then(|Path((job, tag))| {
            let job = ExecutionId::new(&job).ok()?;
            Some((job, normal(&tag).ok()?))
        });
        Ok(Self(named))
    }
}
