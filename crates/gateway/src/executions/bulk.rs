//! The same command for many executions at once.

use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use pyoco_api::{BulkAction, BulkFailure, BulkReport, BulkRequest, BulkSkip};
use pyoco_core::cursor::Cursor;
use pyoco_core::view::RunStatus;
use pyoco_engine::{Bulk, BulkResult, Bulked};
use pyoco_ports::Filter;

use super::Asking;
use crate::audit::Told;
use crate::docs::{CommandHeaders, Denied, ManyCommanding};
use crate::error::Denial;
use crate::fields::{Fields, REASON, WORD};
use crate::trace::TraceHeader;
use crate::unhurried::to_its_end;
use crate::{App, idempotency};

/// So many are looked at when it is not said, and at most.
const LIMIT: u64 = 100;
const MOST: u64 = 1_000;

const FILTERS: [&str; 8] =
    ["status", "flow", "tag", "label", "createdAfter", "createdBefore", "updatedAfter", "updatedBefore"];

/// Cancels or retries the executions that a filter finds, newest change first, a page at a time. Those to which it does not apply are
/// passed over, so that it may be sent again: nothing is canceled or retried twice.
#[utoipa::path(post, operation_id = "bulkExecutions", tag = "executions", path = "/executions/bulk", params(CommandHeaders, TraceHeader),
    request_body = BulkRequest, responses(
    (status = 200, description = "What became of each. While there is a `nextCursor` there may be more.", body = BulkReport), ManyCommanding, Denied
))]
pub(crate) async fn bulk(
    State(app): State<App>,
    asking: Asking,
    request: Request,
) -> Result<Response, Denial> {
    let mut fields = asking.fields(request).await?;
    let wanted = read(&mut fields);
    fields.finish()?;
    let Asking { caller, key, correlation_id, traceparent, .. } = asking;
    let action = match wanted.action {
        BulkAction::Cancel => pyoco_engine::BulkAction::Cancel { reason: wanted.reason },
        BulkAction::Retry => pyoco_engine::BulkAction::Retry,
    };
    let bulk = Bulk {
        action,
        filter: Filter { tenant: caller.tenant.clone(), ..wanted.filter },
        limit: usize::try_from(wanted.limit).unwrap_or_default(),
        is_dry: wanted.is_dry,
        issuer: caller.issuer(),
        api_key_id: caller.key,
        key,
        correlation_id,
        traceparent,
    };
    let engine = app.engine.clone();
    let bulked = to_its_end(async move { engine.bulk(bulk).await }).await??;
    let echo = HeaderValue::from_str(&bulked.correlation_id);
    let report = report(wanted.action, wanted.is_dry, bulked);
    let mut response = (Extension(told(&report)), Json(report)).into_response();
    if let Ok(echo) = echo {
        response.headers_mut().insert(idempotency::CORRELATION, echo);
    }
    Ok(response)
}

/// What the audit trail is told: how many, and an entry for each that something was done to.
fn told(report: &BulkReport) -> Told {
    let (name, action) = match report.action {
        BulkAction::Cancel => ("cancel", "executions.cancel"),
        BulkAction::Retry => ("retry", "executions.retry"),
    };
    let told =
        Told::default().with("command", name).with("dryRun", report.dry_run).with("matched", report.matched);
    if report.dry_run { told } else { told.each(action, report.done.iter().cloned()) }
}

/// What a body says.
struct Wanted {
    action: BulkAction,
    filter: Filter,
    limit: u64,
    is_dry: bool,
    reason: Option<String>,
}

fn read(fields: &mut Fields) -> Wanted {
    // A filter whose name is misspelt finds more than was meant.
    fields.only(&["action", "filter", "all", "dryRun", "limit", "cursor", "reason"]);
    if !fields.has("action") {
        fields.missing("action");
    }
    let action = fields.read("action", "it must be cancel or retry", action);
    let flaws = fields.flaws();
    let filter = fields.inside("filter", filter).unwrap_or_default();
    // What is wrong with a filter is told; that there is none would not be true.
    let is_narrow = filter != Filter::default() || fields.flaws() > flaws;
    match (fields.flag("all"), is_narrow) {
        (true, true) => fields.unfit("all", "it cannot be said with a filter"),
        (false, false) => {
            fields.unfit("filter", "at least one filter is required; all: true means every execution");
        }
        (true, false) | (false, true) => {}
    }
    let is_dry = fields.flag("dryRun");
    let limit = fields.count("limit", MOST).unwrap_or(LIMIT);
    let rule = "this is not a cursor; use the nextCursor of the answer before, or none";
    let cursor = fields.read("cursor", rule, |text| Cursor::decode(text).ok());
    let reason = fields.text("reason", REASON);
    if reason.is_some() && action == Some(BulkAction::Retry) {
        fields.unfit("reason", "only a cancel has a reason");
    }
    // Without an action nothing is done: it is refused before.
    let action = action.unwrap_or(BulkAction::Cancel);
    Wanted { action, filter: Filter { cursor, ..filter }, limit, is_dry, reason }
}

fn action(text: &str) -> Option<BulkAction> {
    serde_json::from_value(text.into()).ok()
}

fn filter(fields: &mut Fields) -> Filter {
    fields.only(&FILTERS);
    let rule =
        "it must be one of ACTIVE, COMPLETED, FAILED, CANCELED, PENDING, RUNNING, CANCELLING, CANCELLED";
    let statuses: Vec<_> = fields.each("status", rule, statuses).into_iter().flatten().collect();
    Filter {
        tenant: None,
        statuses,
        flow: word(fields, "flow"),
        tag: word(fields, "tag"),
        label: word(fields, "label"),
        workflow_sha256: None,
        created_after: fields.instant("createdAfter"),
        created_before: fields.instant("createdBefore"),
        updated_after: fields.instant("updatedAfter"),
        updated_before: fields.instant("updatedBefore"),
        cursor: None,
    }
}

fn word(fields: &mut Fields, name: &'static str) -> Option<String> {
    let word = fields.text(name, WORD);
    if word.as_deref() == Some("") {
        fields.empty(name);
    }
    word
}

/// The states that a word means, on this surface or on that of runs.
fn statuses(name: &str) -> Option<Vec<RunStatus>> {
    Some(match name {
        "ACTIVE" => vec![RunStatus::Pending, RunStatus::Running, RunStatus::Cancelling],
        "PENDING" => vec![RunStatus::Pending],
        "RUNNING" => vec![RunStatus::Running],
        "CANCELLING" => vec![RunStatus::Cancelling],
        "COMPLETED" => vec![RunStatus::Completed],
        "FAILED" => vec![RunStatus::Failed],
        "CANCELED" | "CANCELLED" => vec![RunStatus::Cancelled],
        _ => return None,
    })
}

fn report(action: BulkAction, dry_run: bool, bulked: Bulked) -> BulkReport {
    let mut report = BulkReport {
        action,
        dry_run,
        matched: bulked.results.len() as u64,
        done: Vec::new(),
        created: Vec::new(),
        skipped: Vec::new(),
        failed: Vec::new(),
        next_cursor: bulked.next.as_ref().map(Cursor::encode),
    };
    for (execution, result) in bulked.results {
        let id = execution.to_string();
        match result {
            BulkResult::Done(new) => {
                report.done.push(id);
                report.created.extend(new.map(|new| new.to_string()));
            }
            BulkResult::Skipped(why) => {
                report.skipped.push(BulkSkip { id, why: why.as_str().to_owned() });
            }
            BulkResult::Failed(error) => {
                let (code, message) = Denial::from(error).said();
                report.failed.push(BulkFailure { id, code, message });
            }
        }
    }
    report
}
