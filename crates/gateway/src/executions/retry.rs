//! Repeating an execution that has ended.

use axum::extract::{Request, State};
use axum::response::Response;
use pyoco_api::{Accepted, RetryExecution};
use pyoco_core::ids::NodeId;
use pyoco_engine::Retry;

use super::{Asking, ExecutionPath, accepted_at};
use crate::App;
use crate::docs::{CommandHeaders, Commanding, Denied};
use crate::error::{Denial, Refusal};
use crate::trace::TraceHeader;
use crate::unhurried::to_its_end;

/// Repeats an execution that has ended: a new one keeps what succeeded and runs what failed or did not run.
#[utoipa::path(post, operation_id = "retryExecution", tag = "executions", path = "/executions/{executionId}/retry", params(("executionId" = String, Path), CommandHeaders, TraceHeader),
    request_body = Option<RetryExecution>, responses(
    (status = 202, description = "The new execution runs.", body = Accepted, headers(("Location" = String))), Commanding, Denied
))]
pub(crate) async fn retry(
    State(app): State<App>,
    asking: Asking,
    ExecutionPath(execution): ExecutionPath,
    request: Request,
) -> Result<Response, Denial> {
    let mut fields = asking.fields(request).await?;
    let input = fields.object("input");
    let from = fields.id("fromNode", NodeId::new);
    fields.finish()?;
    app.must_be_seen(&asking.caller, &execution).await?;
    let Asking { caller, key, correlation_id, traceparent, .. } = asking;
    let (issuer, api_key_id) = (caller.issuer(), caller.key);
    let retry = Retry { input, from, issuer, api_key_id, key, correlation_id, traceparent };
    let (engine, repeated) = (app.engine.clone(), execution.clone());
    let asked = to_its_end(async move { engine.retry(&repeated, retry).await }).await?;
    let asked = asked.map_err(|error| Refusal::from(error).of_run(execution.as_str()))?;
    Ok(accepted_at("RetryExecution", asked))
}
