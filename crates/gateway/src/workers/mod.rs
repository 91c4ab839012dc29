//! Workers: who is there, and hiding one from view.

mod view;

use axum::Json;
use axum::extract::{self, FromRequestParts as _, Path, Request};
use axum::http::StatusCode;
use pyoco_api::{ErrorBody, WorkerPatch, WorkerPatched, WorkerRecord};
use pyoco_core::ids::WorkerId;
use pyoco_core::notice::Notice;
use pyoco_ports::StoreError;
use serde_json::{Map, Value};

use crate::App;
use crate::caller::Caller;
use crate::docs::{Always, Bodied, Reading, Writing};
use crate::error::Refusal;
use crate::query::Query;
use crate::server::Hosting;
use crate::validation::{self, Inputs};

pub(crate) use view::{State, WorkerView};

/// Workers, the one seen last first. `scope=all` shows those that are gone too.
#[utoipa::path(get, operation_id = "listWorkers", tag = "workers", path = "/workers", params(
    ("scope" = Option<String>, Query, description = "`active` (default) or `all`"),
    ("state" = Option<String>, Query), ("include_hidden" = Option<bool>, Query),
    ("limit" = Option<u32>, Query, minimum = 1, maximum = 500)
), responses(
    (status = 200, description = "The workers.", body = [WorkerRecord]),
    (status = 422, description = "The query cannot be read.", body = ErrorBody), Reading, Always
))]
pub(crate) async fn list(
    extract::State(app): extract::State<App>,
    _caller: Caller,
    query: Query,
) -> Result<Json<Vec<Map<String, Value>>>, Refusal> {
    let mut inputs = Inputs::default();
    let include_hidden = query.flag(&mut inputs, "include_hidden");
    let limit = query.integer(&mut inputs, "limit", 1..=500, 100);
    inputs.finish(Notice::InvalidWorkersRequest)?;
    let only_active = match word(&query, "scope").as_deref() {
        None | Some("ACTIVE") => true,
        Some("ALL") => false,
        Some(_) => return Err(refused("scope")),
    };
    let wanted = match word(&query, "state") {
        None => None,
        Some(name) => Some(State::named(&name).ok_or_else(|| refused("state"))?),
    };
    let mut views = app.worker_views().await?;
    views.retain(|view| {
        (include_hidden || !view.hidden)
            && (!only_active || view.state.is_alive())
            && wanted.is_none_or(|wanted| view.state == wanted)
    });
    views.sort_by(|one, other| other.last_seen_at.total_cmp(&one.last_seen_at));
    views.truncate(limit as usize);
    Ok(Json(views.into_iter().map(|view| view.members).collect()))
}

/// A word of the query, trimmed, in capitals; an empty one counts as none.
fn word(query: &Query, name: &str) -> Option<String> {
    query.get(name).map(|word| word.trim().to_ascii_uppercase()).filter(|word| !word.is_empty())
}

fn refused(input: &str) -> Refusal {
    Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid workers request")
        .noticed(Notice::InvalidWorkersRequest)
        .because(format!("unknown {input}"))
}

/// Hides a worker from lists, or shows it again.
#[utoipa::path(patch, operation_id = "hideWorker", tag = "workers", path = "/workers/{worker_id}", params(("worker_id" = String, Path)), request_body = WorkerPatch, responses(
    (status = 200, description = "It is so now.", body = WorkerPatched),
    (status = 404, description = "There is no such worker.", body = ErrorBody),
    (status = 422, description = "The body is no JSON, or does not say what to do.", body = ErrorBody), Bodied, Writing, Always
))]
pub(crate) async fn hide(
    extract::State(app): extract::State<App>,
    _caller: Caller,
    hosting: Hosting,
    request: Request,
) -> Result<Json<WorkerPatched>, Refusal> {
    let (mut parts, body) = request.into_parts();
    let worker = Path::<String>::from_request_parts(&mut parts, &app).await.map(|path| path.0);
    let notice = Notice::InvalidWorkersRequest;
    let request = Request::from_parts(parts, body);
    let members = validation::object(request, hosting.limits.body_timeout, notice).await?;
    let mut inputs = Inputs::default();
    let place = || ["body".into(), "hidden".into()];
    let hidden = match members.get("hidden") {
        Some(value) => inputs.flag(place(), value),
        None => {
            inputs.missing(place(), Value::Object(members.clone()));
            None
        }
    };
    inputs.finish(notice)?;
    let not_found =
        || Refusal::new(StatusCode::NOT_FOUND, "worker not found").noticed(Notice::WorkerNotFound);
    let worker = WorkerId::new(&worker.unwrap_or_default()).map_err(|_| not_found())?;
    let record = app.engine.store().hide(&worker, hidden.unwrap_or_default()).await?.ok_or_else(not_found)?;
    Ok(Json(WorkerPatched {
        worker_id: record.worker.as_str().to_owned(),
        hidden: record.hidden,
        updated_at: app.clock.now().as_unix_seconds(),
    }))
}

impl crate::Shared {
    /// Every worker whose record can be read.
    pub(crate) async fn worker_views(&self) -> Result<Vec<WorkerView>, StoreError> {
        let (now, timeout) = (self.clock.now(), self.settings.worker_disconnect_timeout);
        let records = self.engine.store().workers().await?;
        Ok(records.iter().filter_map(|record| WorkerView::of(record, now, timeout)).collect())
    }
}
