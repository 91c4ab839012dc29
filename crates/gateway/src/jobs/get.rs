//! One job, as the log has it now.

use axum::Json;
use axum::extract::State;
use pyoco_api::Job;

use super::{JobPath, whole_job};
use crate::App;
use crate::caller::Viewer;
use crate::docs::{Denied, JobFound};
use crate::error::Denial;

/// A job, with its parameters.
#[utoipa::path(get, operation_id = "getJob", tag = "jobs", path = "/jobs/{id}", params(("id" = String, Path)), responses(
    (status = 200, description = "The job.", body = Job), JobFound, Denied
))]
pub(crate) async fn get(
    State(app): State<App>,
    Viewer(caller): Viewer,
    JobPath(job): JobPath,
) -> Result<Json<Job>, Denial> {
    Ok(Json(app.job(&caller, &job, whole_job).await?))
}
