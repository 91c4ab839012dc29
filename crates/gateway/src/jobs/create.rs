//! Submitting a job: it is created and started in one step.

use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use pyoco_api::{Job, SubmitJob};
use pyoco_core::command::CreateExecution;
use pyoco_core::ids::Tag;
use pyoco_engine::{Flow, Submission};

use super::{JobAsking, whole_job};
use crate::App;
use crate::audit::Told;
use crate::docs::{Denied, JobHeaders, Submitting};
use crate::error::{Denial, Refusal};
use crate::executions::Asking;
use crate::fields::{Fields, WORD};
use crate::trace::TraceHeader;
use crate::unhurried::to_its_end;

/// Submits a job. Under a key there is one job, however often it is sent.
#[utoipa::path(post, operation_id = "submitJob", tag = "jobs", path = "/jobs", params(JobHeaders, TraceHeader), request_body = SubmitJob, responses(
    (status = 201, description = "It is kept, and will be run; `Location` says where it is.", body = Job, headers(("Location" = String))),
    Submitting, Denied
))]
pub(crate) async fn create(
    State(app): State<App>,
    JobAsking(asking): JobAsking,
    request: Request,
) -> Result<Response, Denial> {
    let mut fields = asking.json(request).await?;
    fields.only(&["parameters", "tags", "flow", "tag"]);
    if !fields.has("parameters") {
        fields.missing("parameters");
    }
    let input = fields.object("parameters").unwrap_or_default();
    let labels = fields.job_tags("tags");
    let flow = flow(&mut fields).unwrap_or_else(|| app.settings.jobs_flow.clone());
    let tag = fields.id("tag", Tag::new).unwrap_or_else(|| app.settings.default_tag.clone());
    fields.finish()?;
    let Asking { caller, key, correlation_id, traceparent, .. } = asking;
    let command = CreateExecution {
        graph_id: flow.clone(),
        input,
        tag: Some(tag.clone()),
        labels,
        tenant_id: caller.tenant.clone(),
        api_key_id: caller.key.clone(),
        workflow: None,
        graph_version: None,
        plan: None,
        retry_of: None,
        keep: None,
        traceparent,
        start: true,
    };
    let submission = Submission {
        command,
        flow: Flow::Named,
        issuer: caller.issuer(),
        endpoint: "POST /jobs".into(),
        key,
        digest: None,
        is_key_made_up: false,
        correlation_id,
    };
    let engine = app.engine.clone();
    let submitted = to_its_end(async move { engine.submit(submission).await }).await?;
    let submitted = submitted.map_err(|error| Refusal::from(error).of_flow(&flow, tag.as_str()))?;
    let job = submitted.execution;
    // Also if it was deleted since: whoever repeats is told what came of it.
    let shown = app.found(&caller, &job, |state| Some(whole_job(state))).await?;
    // Of one that was kept for long enough only its key is known any more.
    let shown = shown.ok_or_else(|| Refusal::job_not_found(job.as_str()))?;
    let status = if submitted.is_repeat { StatusCode::OK } else { StatusCode::CREATED };
    let mut response = (status, Extension(Told::made(&job)), Json(shown)).into_response();
    if let Ok(place) = HeaderValue::from_str(&format!("/jobs/{job}")) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    Ok(response)
}

/// The flow that a job names.
fn flow(fields: &mut Fields) -> Option<String> {
    let flow = fields.text("flow", WORD)?;
    if flow.trim().is_empty() {
        fields.empty("flow");
        return None;
    }
    Some(flow)
}
