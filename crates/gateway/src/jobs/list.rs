//! Jobs, newest first, page by page.

use axum::Json;
use axum::extract::State;
use pyoco_api::{Extra, Job, JobPage, JobStatus};
use pyoco_core::notice::Notice;
use pyoco_core::view::RunStatus;
use pyoco_ports::{IndexRow, JobFilter, JobPlace};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::caller::Viewer;
use crate::docs::{Denied, Listed, Tokened};
use crate::error::{Denial, Refusal};
use crate::fields::WORD;
use crate::query::{Query, place};
use crate::validation::Inputs;
use crate::{App, opaque, tags};

/// So many tags may be asked for at once.
const TAGS: usize = 16;

/// Where the list goes on, and of what it is.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Token {
    p: JobPlace,
    m: String,
}

/// Jobs, newest first. A page may be short, or empty, and still have a `nextToken`: only so many jobs are looked at.
#[utoipa::path(get, operation_id = "listJobs", tag = "jobs", path = "/jobs", params(
    ("tag" = Option<Vec<String>>, Query, description = "jobs with each of these tags; 16 in all"),
    ("tagAny" = Option<Vec<String>>, Query, description = "jobs with at least one of these"),
    ("status" = Option<Vec<String>>, Query, description = "`pending`, `running`, `completed`, `failed` or `canceled`: one of these"),
    ("flow" = Option<String>, Query, max_length = 256),
    ("createdAfter" = Option<String>, Query), ("createdBefore" = Option<String>, Query),
    ("limit" = Option<u32>, Query, minimum = 1, maximum = 200), ("nextToken" = Option<String>, Query)
), responses((status = 200, description = "The jobs.", body = JobPage), Tokened, Listed, Denied))]
pub(crate) async fn list(
    State(app): State<App>,
    Viewer(caller): Viewer,
    query: Query,
) -> Result<Json<JobPage>, Denial> {
    let mut inputs = Inputs::default();
    let limit = query.integer(&mut inputs, "limit", 1..=200, 50);
    if query.every("tag").chain(query.every("tagAny")).nth(TAGS).is_some() {
        let rule = format!("at most {TAGS} tags may be asked for");
        inputs.wrong("too_long", place("tag"), rule, serde_json::Value::Null, None);
        return Err(inputs.refusal(Notice::InvalidListQuery).into());
    }
    let mut filter = JobFilter {
        tenant: caller.tenant,
        all_labels: labels(&mut inputs, &query, "tag"),
        any_labels: labels(&mut inputs, &query, "tagAny"),
        statuses: statuses(&mut inputs, &query),
        flow: query.text(&mut inputs, "flow", WORD),
        created_after: query.instant(&mut inputs, "createdAfter"),
        created_before: query.instant(&mut inputs, "createdBefore"),
        cursor: None,
    };
    inputs.finish(Notice::InvalidListQuery)?;
    let mark = mark(&filter);
    if let Some(text) = query.filled("nextToken") {
        let token = opaque::decode::<Token>(text).filter(|token| token.m == mark);
        let token = token.ok_or_else(|| Refusal::bad_token("nextToken", "it is not of this list"))?;
        filter.cursor = Some(token.p);
    }
    let page = app.engine.store().jobs(&filter, limit as usize).await?;
    let next_token = page.next.map(|next| opaque::encode(&Token { p: next, m: mark }));
    Ok(Json(JobPage { jobs: page.rows.into_iter().map(listed).collect(), next_token }))
}

fn labels(inputs: &mut Inputs, query: &Query, name: &'static str) -> Vec<String> {
    let given = query.every(name);
    let mut labels: Vec<String> = given.filter_map(|text| tags::read(inputs, place(name), text)).collect();
    labels.sort_unstable();
    labels.dedup();
    labels
}

/// The states of a row that the statuses of this surface mean; all when there is none.
fn statuses(inputs: &mut Inputs, query: &Query) -> Vec<RunStatus> {
    let mut statuses = Vec::new();
    for name in query.every("status") {
        match name {
            "pending" => statuses.push(RunStatus::Pending),
            // A job that is asked to stop still runs.
            "running" => statuses.extend([RunStatus::Running, RunStatus::Cancelling]),
            "completed" => statuses.push(RunStatus::Completed),
            "failed" => statuses.push(RunStatus::Failed),
            "canceled" => statuses.push(RunStatus::Cancelled),
            _ => {
                let rule = "it must be one of pending, running, completed, failed, canceled";
                inputs.wrong("value_error", place("status"), rule, json!(name), None);
            }
        }
    }
    statuses.sort_unstable();
    statuses.dedup();
    statuses
}

/// By what tokens of this list are known. The order in which things were asked for is none of it.
fn mark(filter: &JobFilter) -> String {
    let JobFilter { tenant, all_labels, any_labels, statuses, flow, created_after, created_before, .. } =
        filter;
    opaque::mark(&("jobs", tenant, all_labels, any_labels, statuses, flow, created_after, created_before))
}

fn listed(row: IndexRow) -> Job {
    let status = match row.summary.status {
        RunStatus::Pending => JobStatus::Pending,
        RunStatus::Running | RunStatus::Cancelling => JobStatus::Running,
        RunStatus::Completed => JobStatus::Completed,
        RunStatus::Failed => JobStatus::Failed,
        RunStatus::Cancelled => JobStatus::Canceled,
    };
    Job {
        id: row.execution.to_string(),
        status,
        created_at: row.created_at,
        started_at: row.started_at,
        completed_at: row.ended_at,
        tags: row.summary.tags,
        flow: Some(row.summary.flow_name),
        parameters: None,
        cancel_requested_at: row.cancel_requested_at,
        error: row.summary.error,
        extra: Extra::new(),
    }
}
