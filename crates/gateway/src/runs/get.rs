//! One run, as the log has it now.

use axum::Json;
use axum::extract::State;
use pyoco_api::{ErrorBody, RunSnapshot};
use pyoco_core::ids::ExecutionId;
use serde::Serialize;
use serde_json::{Map, Value};

use super::RunId;
use super::snapshot::{Form, Room, wants_records, with_lack_of_worker, with_worker};
use crate::App;
use crate::caller::Caller;
use crate::docs::{Always, Reading};
use crate::error::Refusal;
use crate::query::Query;

/// What is answered.
#[derive(Serialize)]
pub(crate) struct Answer {
    #[serde(flatten)]
    run: Form,
    /// What the registry says about its worker.
    #[serde(flatten)]
    worker: Map<String, Value>,
}

/// One run. `include=records` (or `full`, `all`) shows the record of each task.
#[utoipa::path(get, operation_id = "getRun", tag = "runs", path = "/runs/{run_id}", params(
    ("run_id" = String, Path),
    ("include" = Option<Vec<String>>, Query, description = "`records`, `full` or `all`: with task records")
), responses(
    (status = 200, description = "The run.", body = RunSnapshot), (status = 404, description = "There is no such run.", body = ErrorBody), Reading, Always
))]
pub(crate) async fn get(
    State(app): State<App>,
    caller: Caller,
    RunId(run): RunId,
    query: Query,
) -> Result<Json<Answer>, Refusal> {
    let mut shown = app.shown(&caller, &run, wants_records(&query)).await?;
    let worker = with_worker(&app, &mut shown).await;
    with_lack_of_worker(&app, &mut shown).await;
    Ok(Json(Answer { run: shown.form(&mut Room::new(&app)), worker }))
}

/// `/runs/yaml` is where flows are posted; to look there is to look for a run of that name.
pub(crate) async fn get_named_yaml(
    state: State<App>,
    caller: Caller,
    query: Query,
) -> Result<Json<Answer>, Refusal> {
    let run = ExecutionId::new("yaml").map_err(|_| Refusal::run_not_found("yaml"))?;
    get(state, caller, RunId(run), query).await
}
