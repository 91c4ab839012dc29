//! The tasks of one run.

use axum::Json;
use axum::extract::State;
use pyoco_api::{ErrorBody, RunTasks};
use serde_json::{Map, Value, json};

use super::RunId;
use super::snapshot::Room;
use crate::App;
use crate::caller::Caller;
use crate::docs::{Always, Reading};
use crate::error::Refusal;

/// The state and the record of each task of a run.
#[utoipa::path(get, operation_id = "getRunTasks", tag = "runs", path = "/runs/{run_id}/tasks", params(("run_id" = String, Path)), responses(
    (status = 200, description = "The tasks.", body = RunTasks), (status = 404, description = "There is no such run.", body = ErrorBody), Reading, Always
))]
pub(crate) async fn tasks(
    State(app): State<App>,
    caller: Caller,
    RunId(run): RunId,
) -> Result<Json<Value>, Refusal> {
    let mut members = app.shown(&caller, &run, true).await?.form(&mut Room::new(&app)).into_members();
    let mut shown = Map::new();
    for name in ["run_id", "flow_name", "status", "tasks", "task_records"] {
        shown.insert(name.to_owned(), members.shift_remove(name).unwrap_or_default());
    }
    let truncated = members.shift_remove("task_records_truncated").unwrap_or(json!(false));
    shown.insert("task_records_truncated".to_owned(), truncated);
    Ok(Json(Value::Object(shown)))
}
