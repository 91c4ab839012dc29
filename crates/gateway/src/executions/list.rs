//! Executions, newest change first, page by page.

use axum::Json;
use axum::extract::State;
use pyoco_api::{ExecutionPage, ExecutionSummary, Extra, Location, Status};
use pyoco_core::cursor::Cursor;
use pyoco_core::notice::Notice;
use pyoco_core::view::RunStatus;
use pyoco_ports::{Filter, IndexRow};
use serde_json::json;

use crate::App;
use crate::caller::Viewer;
use crate::docs::{Denied, Listed};
use crate::error::Denial;
use crate::query::Query;
use crate::validation::Inputs;

/// Executions, newest change first. Times are RFC 3339.
#[utoipa::path(get, operation_id = "listExecutions", tag = "executions", path = "/executions", params(
    ("status" = Option<String>, Query, description = "`ACTIVE`, `COMPLETED`, `FAILED` or `CANCELED`"),
    ("graphId" = Option<String>, Query), ("tag" = Option<String>, Query, description = "one of its labels"),
    ("createdAfter" = Option<String>, Query), ("createdBefore" = Option<String>, Query),
    ("updatedAfter" = Option<String>, Query), ("updatedBefore" = Option<String>, Query),
    ("limit" = Option<u32>, Query, minimum = 1, maximum = 200), ("cursor" = Option<String>, Query)
), responses((status = 200, description = "The executions.", body = ExecutionPage), Listed, Denied))]
pub(crate) async fn list(
    State(app): State<App>,
    Viewer(caller): Viewer,
    query: Query,
) -> Result<Json<ExecutionPage>, Denial> {
    let mut inputs = Inputs::default();
    let limit = query.integer(&mut inputs, "limit", 1..=200, 50);
    let filter = Filter {
        tenant: caller.tenant,
        statuses: statuses(&mut inputs, &query),
        flow: query.filled("graphId").map(str::to_owned),
        tag: None,
        label: query.filled("tag").map(str::to_owned),
        workflow_sha256: None,
        updated_after: query.instant(&mut inputs, "updatedAfter"),
        updated_before: query.instant(&mut inputs, "updatedBefore"),
        created_after: query.instant(&mut inputs, "createdAfter"),
        created_before: query.instant(&mut inputs, "createdBefore"),
        cursor: query.cursor(&mut inputs, |text| Cursor::decode(text).ok()),
    };
    inputs.finish(Notice::InvalidListQuery)?;
    let page = app.engine.store().list(&filter, limit as usize).await?;
    let next_cursor = page.next.as_ref().map(Cursor::encode);
    Ok(Json(ExecutionPage { items: page.rows.into_iter().map(summary).collect(), next_cursor }))
}

/// The states of a row that a status of this surface means; all when there is none.
fn statuses(inputs: &mut Inputs, query: &Query) -> Vec<RunStatus> {
    let Some(name) = query.filled("status") else { return Vec::new() };
    match name {
        "ACTIVE" => vec![RunStatus::Pending, RunStatus::Running, RunStatus::Cancelling],
        "COMPLETED" => vec![RunStatus::Completed],
        "FAILED" => vec![RunStatus::Failed],
        "CANCELED" => vec![RunStatus::Cancelled],
        _ => {
            let place: [Location; 2] = ["query".into(), "status".into()];
            let rule = "it must be one of ACTIVE, COMPLETED, FAILED, CANCELED";
            inputs.wrong("value_error", place, rule, json!(name), None);
            Vec::new()
        }
    }
}

fn summary(row: IndexRow) -> ExecutionSummary {
    let (status, cancel_requested) = match row.summary.status {
        RunStatus::Pending | RunStatus::Running => (Status::Active, false),
        RunStatus::Cancelling => (Status::Active, true),
        RunStatus::Completed => (Status::Completed, false),
        RunStatus::Failed => (Status::Failed, false),
        RunStatus::Cancelled => (Status::Canceled, true),
    };
    ExecutionSummary {
        execution_id: row.execution.to_string(),
        graph_id: row.summary.flow_name,
        status,
        cancel_requested,
        created_at: row.created_at,
        updated_at: row.updated_at,
        tags: row.summary.tags,
        worker_id: row.summary.worker_id.map(|worker| worker.as_str().to_owned()),
        error: row.summary.error,
        extra: Extra::new(),
    }
}
