//! The tasks of one run.

use axum::Json;
use axum::extract::State;
use pyoco_api::{ErrorBody, RunTasks};
use serde_json::{Value, json};

use super::RunId;
use super::snapshot::Room;
use crate::App;
use crate::caller::Caller;
use crate::docs::{Always, Reading};
use crate::error::Refusal;

/// The state and the record of each task of a run.
#[utoipa::path(get, path = "/runs/{run_id}/tasks", params(("run_id" = String, Path)), responses(
    (status = 200, description = "The tasks.", body = RunTasks), (status = 404, description = "There is no such run.", body = ErrorBody), Reading, Always
))]
pub(crate) async fn tasks(
    State(app): State<App>,
    caller: Caller,
    RunId(run): RunId,
) -> Result<Json<Value>, Refusal> {
    let mut snapshot = app.shown(&caller, &run).await?.snapshot;
    Room::new(&app).fit(&mut snapshot);
    Ok(Json(json!({
        "run_id": snapshot.run_id,
        "flow_name": snapshot.flow_name,
        "status": snapshot.status,
        "tasks": snapshot.tasks,
        "task_records": snapshot.task_records,
        "task_records_truncated": snapshot.task_records_truncated,
    })))
}
