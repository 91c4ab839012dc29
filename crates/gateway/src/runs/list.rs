//! Runs, newest change first, page by page.

use std::collections::HashMap;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use pyoco_api::{ErrorBody, RunList};
use pyoco_core::cursor::Cursor;
use pyoco_core::ids::WorkerId;
use pyoco_core::notice::Notice;
use pyoco_core::time::Timestamp;
use pyoco_core::view::{RunStatus, RunSummary};
use pyoco_ports::{Filter, Page};
use serde::Serialize;
use serde_json::Value;

use super::snapshot::{Form, Room, Shown};
use crate::App;
use crate::caller::Caller;
use crate::docs::{Always, Reading};
use crate::error::Refusal;
use crate::query::Query;
use crate::validation::Inputs;

/// An entry of the list.
#[derive(Serialize)]
#[serde(untagged)]
enum Entry {
    Summary(Box<RunSummary>),
    Full(Form),
}

#[derive(Serialize)]
struct Entries {
    items: Vec<Entry>,
    next_cursor: Option<String>,
}

/// Runs, newest change first. With `cursor`, `updated_after` or `workflow_yaml_sha256` the answer is a page that can be gone
/// on from; without, it is a plain array.
#[utoipa::path(get, operation_id = "listRuns", tag = "runs", path = "/runs", params(
    ("status" = Option<String>, Query), ("flow" = Option<String>, Query), ("tag" = Option<String>, Query),
    ("workflow_yaml_sha256" = Option<String>, Query), ("updated_after" = Option<f64>, Query),
    ("cursor" = Option<String>, Query), ("include" = Option<Vec<String>>, Query, description = "`full` or `all`: whole snapshots"),
    ("limit" = Option<u32>, Query, minimum = 1, maximum = 200)
), responses(
    (status = 200, description = "The runs: summaries, or whole snapshots with `include`.", body = RunList),
    (status = 422, description = "The query cannot be read.", body = ErrorBody), Reading, Always
))]
pub(crate) async fn list(State(app): State<App>, caller: Caller, query: Query) -> Result<Response, Refusal> {
    let mut inputs = Inputs::default();
    let limit = query.integer(&mut inputs, "limit", 1..=200, 50);
    let updated_after = query.number(&mut inputs, "updated_after");
    inputs.finish(Notice::InvalidListQuery)?;
    let given = |name| query.get(name).is_some();
    // An empty fingerprint is none; an empty cursor asks for the first page.
    let is_page = given("updated_after") || given("cursor") || query.filled("workflow_yaml_sha256").is_some();
    let page = match filter(&caller, &query, updated_after)? {
        Some(filter) => app.engine.store().list(&filter, limit as usize).await?,
        None => Page { rows: Vec::new(), next: None },
    };
    let next_cursor = page.next.as_ref().map(Cursor::encode);
    let (mut heard, mut room) = (Heard::default(), Room::new(&app));
    let mut items = Vec::with_capacity(page.rows.len());
    let is_full = query.includes(&["full", "all"]);
    for row in page.rows {
        if is_full {
            let Some(shown) = app.engine.look(&row.execution, |state| Shown::of(state, true)).await? else {
                continue;
            };
            let shown = app.with_foreign(&row.execution, shown).await?;
            items.push(Entry::Full(shown.form(&mut room)));
        } else {
            items.push(Entry::Summary(Box::new(heard.with_heartbeat(&app, row.summary).await)));
        }
    }
    Ok(if is_page {
        Json(Entries { items, next_cursor }).into_response()
    } else {
        Json(items).into_response()
    })
}

/// When the workers of a page were last heard; each is asked for once.
#[derive(Default)]
struct Heard(HashMap<WorkerId, Option<f64>>);

impl Heard {
    /// A run that is under way is heard through its worker.
    async fn with_heartbeat(&mut self, app: &App, mut summary: RunSummary) -> RunSummary {
        let is_under_way = matches!(summary.status, RunStatus::Running | RunStatus::Cancelling);
        let Some(worker) = summary.worker_id.clone().filter(|_| is_under_way) else { return summary };
        let seen_at = match self.0.get(&worker) {
            Some(known) => *known,
            None => {
                // The registry is advisory: when it cannot be asked, nothing is said.
                let record = app.engine.store().worker(&worker).await.ok().flatten();
                let seen_at = record.map(|record| record.seen_at.as_unix_seconds());
                self.0.insert(worker, seen_at);
                seen_at
            }
        };
        if let (Some(seen_at), Some(known)) = (seen_at, summary.heartbeat_at) {
            summary.heartbeat_at = Some(known.max(seen_at));
        }
        summary
    }
}

/// What the query asks for; `None` if nothing can be like that.
fn filter(caller: &Caller, query: &Query, updated_after: Option<f64>) -> Result<Option<Filter>, Refusal> {
    let cursor = match query.filled("cursor").map(Cursor::decode) {
        None => None,
        Some(Ok(cursor)) => Some(cursor),
        Some(Err(_)) => {
            let refusal = Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid list query");
            return Err(refusal.noticed(Notice::InvalidListQuery).because("the cursor is none"));
        }
    };
    let statuses = match query.filled("status").map(status_named) {
        None => Vec::new(),
        Some(Some(status)) => vec![status],
        // No run has a status that does not exist.
        Some(None) => return Ok(None),
    };
    let updated_after = match updated_after.map(|after| (after, Timestamp::from_unix_seconds(after))) {
        None => None,
        Some((_, Some(after))) => Some(after),
        // Beyond all calendars: everything is after it, or nothing is.
        Some((after, None)) if after < 0.0 => None,
        Some((_, None)) => return Ok(None),
    };
    Ok(Some(Filter {
        tenant: caller.tenant.clone(),
        statuses,
        flow: query.filled("flow").map(str::to_owned),
        tag: query.filled("tag").map(str::to_owned),
        workflow_sha256: query.filled("workflow_yaml_sha256").map(str::to_owned),
        updated_after,
        cursor,
        ..Filter::default()
    }))
}

/// Exact, with its case.
fn status_named(name: &str) -> Option<RunStatus> {
    serde_json::from_value(Value::String(name.to_owned())).ok()
}
