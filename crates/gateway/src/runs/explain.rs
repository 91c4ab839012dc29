//! Why one run is where it is: what its log says, and whether there is a worker for it.

use axum::Json;
use axum::extract::State;
use pyoco_api::{ErrorBody, Explanation};
use pyoco_core::ids::WorkerId;
use pyoco_core::state::State as Folded;
use pyoco_core::view::{Cause, CauseCode, RunStatus, causes};
use pyoco_ports::StoreError;
use serde::Serialize;
use serde_json::Value;

use super::RunId;
use crate::caller::Caller;
use crate::docs::{Always, Reading};
use crate::error::Refusal;
use crate::workers::WorkerView;
use crate::{App, Shared};

/// What is answered, in the words of [`Explanation`].
#[derive(Serialize)]
pub(crate) struct Shown {
    run_id: String,
    status: RunStatus,
    summary: String,
    reasons: Vec<Cause>,
    hint: Option<String>,
}

/// What the log says.
struct Told {
    status: RunStatus,
    causes: Vec<Cause>,
    /// Where it is routed.
    tag: String,
    /// Who holds it.
    owner: Option<WorkerId>,
}

impl Told {
    fn by(state: &Folded) -> Self {
        let tag = state.origin.as_ref().and_then(|origin| origin.tag.as_ref());
        Self {
            status: RunStatus::of(state),
            causes: causes(state),
            tag: tag.map(ToString::to_string).unwrap_or_default(),
            owner: state
                .claim
                .as_ref()
                .filter(|_| !state.phase.is_terminal())
                .map(|claim| claim.worker.clone()),
        }
    }
}

/// Why a run is where it is: what it waits for, what runs, what failed, and what to do about it.
#[utoipa::path(get, operation_id = "explainRun", tag = "runs", path = "/runs/{run_id}/explain", params(("run_id" = String, Path)), responses(
    (status = 200, description = "The reasons.", body = Explanation), (status = 404, description = "There is no such run.", body = ErrorBody), Reading, Always
))]
pub(crate) async fn explain(
    State(app): State<App>,
    caller: Caller,
    RunId(run): RunId,
) -> Result<Json<Shown>, Refusal> {
    let seen = app.engine.look(&run, |state| {
        let tenant = state.origin.as_ref().and_then(|origin| origin.tenant.as_ref());
        caller.may_see(tenant).then(|| Told::by(state))
    });
    let mut told = seen.await?.flatten().ok_or_else(|| Refusal::run_not_found(run.as_str()))?;
    if let Err(error) = app.look_for_workers(&mut told).await {
        // The registry is advisory: when it cannot be asked, nothing is said of workers.
        tracing::warn!(run_id = %run, reason = %error, "the registry of workers cannot be asked");
    }
    let summary = told.causes.first().map(|cause| cause.message.clone()).unwrap_or_default();
    let hint = told.causes.iter().find_map(|cause| hint(cause, run.as_str(), &told.tag));
    Ok(Json(Shown { run_id: run.to_string(), status: told.status, summary, reasons: told.causes, hint }))
}

impl Shared {
    /// Says which workers a run in the queue waits for, and whether the one that holds it is still there.
    async fn look_for_workers(&self, told: &mut Told) -> Result<(), StoreError> {
        let is_queued = |cause: &&mut Cause| cause.code == CauseCode::Queued;
        if let Some(queued) = told.causes.iter_mut().find(is_queued) {
            let workers = self.worker_views().await?;
            let takers: Vec<&WorkerView> = workers.iter().filter(|worker| worker.takes(&told.tag)).collect();
            if takers.is_empty() {
                queued.code = CauseCode::NoWorker;
                queued.message = format!("no live worker takes runs with tag '{}'", told.tag);
            } else if takers.iter().all(|worker| is_busy(worker)) {
                queued.code = CauseCode::WorkersBusy;
                queued.message = match takers.len() {
                    1 => format!("the only worker for tag '{}' is busy", told.tag),
                    count => format!("all {count} workers for tag '{}' are busy", told.tag),
                };
            }
        }
        if let Some(owner) = &told.owner {
            let (now, timeout) = (self.clock.now(), self.settings.worker_disconnect_timeout);
            let record = self.engine.store().worker(owner).await?;
            let seen_at = record.as_ref().map(|record| record.seen_at);
            let view = record.and_then(|record| WorkerView::of(&record, now, timeout));
            if !view.is_some_and(|view| view.state.is_alive()) {
                let message = format!(
                    "its worker {owner} has not been heard of late; another one takes over when its lease is over"
                );
                told.causes.insert(0, Cause::new(CauseCode::Stale, message).since(seen_at));
            }
        }
        Ok(())
    }
}

/// Whether it has as many runs in hand as it takes. One that does not say how many takes one.
fn is_busy(worker: &WorkerView) -> bool {
    let in_hand = match worker.members.get("current_run_ids").and_then(Value::as_array) {
        Some(runs) => runs.len() as u64,
        None => u64::from(worker.members.get("current_run_id").is_some_and(Value::is_string)),
    };
    let most = worker.members.get("concurrency").and_then(Value::as_u64).unwrap_or(1);
    in_hand >= most
}

/// What to do about a reason, if anything has to be done.
fn hint(cause: &Cause, run: &str, tag: &str) -> Option<String> {
    match cause.code {
        CauseCode::NoWorker => Some(format!("start a worker with --tags {tag}")),
        CauseCode::WorkersBusy => Some(format!("start another worker with --tags {tag}, or wait")),
        CauseCode::NotStarted => Some(format!("POST /executions/{run}/start")),
        CauseCode::WaitingForPerson => {
            let node = cause.node_id.as_ref()?;
            Some(format!("answer it: pyoco-client node resume {run} {node}"))
        }
        CauseCode::Failed => {
            Some(format!("see its log and its tasks; POST /executions/{run}/retry runs it again"))
        }
        CauseCode::Stale => Some("look after that worker, or start another one".to_owned()),
        CauseCode::Queued | CauseCode::Running | CauseCode::RetryPause | CauseCode::Parked => None,
        CauseCode::Failing | CauseCode::Cancelling | CauseCode::Completed | CauseCode::Cancelled => None,
    }
}
