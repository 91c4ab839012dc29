//! The graph of one run.

use axum::Json;
use axum::extract::State;
use pyoco_api::{ErrorBody, RunPlan};
use pyoco_core::view::GraphView;
use serde::Serialize;

use super::RunId;
use crate::App;
use crate::caller::Caller;
use crate::docs::{Always, Reading};
use crate::error::Refusal;

/// What is answered, in the words of [`RunPlan`].
#[derive(Serialize)]
pub(crate) struct Shown {
    run_id: String,
    flow_name: String,
    version: u64,
    #[serde(flatten)]
    graph: GraphView,
}

/// The graph of a run: its nodes with their states, and what comes before what. There are none before a worker has taken it, because
/// only then it is fixed what is run.
#[utoipa::path(get, operation_id = "getRunPlan", tag = "runs", path = "/runs/{run_id}/plan", params(("run_id" = String, Path)), responses(
    (status = 200, description = "The graph.", body = RunPlan), (status = 404, description = "There is no such run.", body = ErrorBody), Reading, Always
))]
pub(crate) async fn plan(
    State(app): State<App>,
    caller: Caller,
    RunId(run): RunId,
) -> Result<Json<Shown>, Refusal> {
    let seen = app.engine.look(&run, |state| {
        let origin = state.origin.as_ref()?;
        caller.may_see(origin.tenant.as_ref()).then(|| Shown {
            run_id: state.id.to_string(),
            flow_name: origin.flow.clone(),
            version: state.version.0,
            graph: GraphView::of(state).unwrap_or_default(),
        })
    });
    let shown = seen.await?.flatten().ok_or_else(|| Refusal::run_not_found(run.as_str()))?;
    Ok(Json(shown))
}
