//! Commands to an execution as a whole: start, cancel, archive.

use axum::extract::{Request, State};
use axum::response::Response;
use pyoco_api::{Accepted, Why};
use pyoco_core::command::{ArchiveExecution, CancelExecution, StartExecution};

use super::{Asking, ExecutionPath};
use crate::App;
use crate::audit::Told;
use crate::docs::{CommandHeaders, Commanding, Denied};
use crate::error::Denial;
use crate::fields::REASON;

/// Lets an execution run.
#[utoipa::path(post, operation_id = "startExecution", tag = "executions", path = "/executions/{executionId}/start", params(("executionId" = String, Path), CommandHeaders), responses(
    (status = 202, description = "It may run.", body = Accepted), Commanding, Denied
))]
pub(crate) async fn start(
    State(app): State<App>,
    asking: Asking,
    ExecutionPath(execution): ExecutionPath,
    request: Request,
) -> Result<Response, Denial> {
    // Whatever the body says, there is nothing to say.
    asking.fields(request).await?.finish()?;
    app.ask(asking, execution, StartExecution {}).await
}

/// Cancels an execution: always taken while it has not ended, and it wins over everything that would end it otherwise.
#[utoipa::path(post, operation_id = "cancelExecution", tag = "executions", path = "/executions/{executionId}/cancel", params(("executionId" = String, Path), CommandHeaders),
    request_body = Option<Why>, responses(
    (status = 202, description = "It is canceled, or will be as soon as what runs has stopped.", body = Accepted), Commanding, Denied
))]
pub(crate) async fn cancel(
    State(app): State<App>,
    asking: Asking,
    ExecutionPath(execution): ExecutionPath,
    request: Request,
) -> Result<Response, Denial> {
    let mut fields = asking.fields(request).await?;
    let command = CancelExecution { reason: fields.text("reason", REASON) };
    fields.finish()?;
    let told = Told::because(command.reason.clone());
    let mut response = app.ask(asking, execution, command).await?;
    response.extensions_mut().insert(told);
    Ok(response)
}

/// Puts an execution away that has ended.
#[utoipa::path(post, operation_id = "archiveExecution", tag = "executions", path = "/executions/{executionId}/archive", params(("executionId" = String, Path), CommandHeaders),
    request_body = Option<Why>, responses(
    (status = 202, description = "It is put away.", body = Accepted), Commanding, Denied
))]
pub(crate) async fn archive(
    State(app): State<App>,
    asking: Asking,
    ExecutionPath(execution): ExecutionPath,
    request: Request,
) -> Result<Response, Denial> {
    let mut fields = asking.fields(request).await?;
    let command = ArchiveExecution { reason: fields.text("reason", REASON) };
    fields.finish()?;
    app.ask(asking, execution, command).await
}
