//! Commands to one node: start, progress, wait, resume, success, fail, cancel.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use pyoco_api::Accepted;
use pyoco_core::command::{
    CancelNode, FailNode, PutNodeWaiting, ReportNodeProgress, ResumeNode, StartNode, SucceedNode,
};
use pyoco_core::event::ErrorInfo;
use pyoco_core::ids::WorkerId;
use pyoco_core::json::{Json, Object};

use super::{Asking, NodePath};
use crate::App;
use crate::docs::{CommandHeaders, Commanding, Denied};
use crate::error::Denial;
use crate::fields::{MESSAGE, REASON, WORD};

/// Begins an attempt of a node.
#[utoipa::path(post, operation_id = "startNode", tag = "nodes", path = "/executions/{executionId}/nodes/{nodeId}/start",
    params(("executionId" = String, Path), ("nodeId" = String, Path), CommandHeaders), request_body = Option<pyoco_api::StartNode>, responses(
    (status = 202, description = "The attempt runs.", body = Accepted), Commanding, Denied
))]
pub(crate) async fn start(
    State(app): State<App>,
    asking: Asking,
    NodePath(execution, node): NodePath,
    request: Request,
) -> Result<Response, Denial> {
    let mut fields = asking.fields(request).await?;
    let attempt = fields.attempt();
    let worker_id = fields.id("workerId", WorkerId::new);
    fields.finish()?;
    let command = StartNode { node_id: node, attempt, worker_id };
    app.ask(asking, execution, command).await
}

/// Says how far an attempt is.
#[utoipa::path(post, operation_id = "reportNodeProgress", tag = "nodes", path = "/executions/{executionId}/nodes/{nodeId}/progress",
    params(("executionId" = String, Path), ("nodeId" = String, Path), CommandHeaders), request_body = Option<pyoco_api::ReportProgress>, responses(
    (status = 202, description = "It is written down.", body = Accepted), Commanding, Denied
))]
pub(crate) async fn progress(
    State(app): State<App>,
    asking: Asking,
    NodePath(execution, node): NodePath,
    request: Request,
) -> Result<Response, Denial> {
    let mut fields = asking.fields(request).await?;
    let command = ReportNodeProgress {
        node_id: node,
        progress: fields.number("progress", 0.0..=100.0),
        message: fields.text("message", MESSAGE),
        metrics: fields.object("metrics"),
    };
    fields.finish()?;
    app.ask(asking, execution, command).await
}

/// Lets a running node wait for somebody.
#[utoipa::path(post, operation_id = "putNodeWaiting", tag = "nodes", path = "/executions/{executionId}/nodes/{nodeId}/wait",
    params(("executionId" = String, Path), ("nodeId" = String, Path), CommandHeaders), request_body = Option<pyoco_api::PutWaiting>, responses(
    (status = 202, description = "It waits.", body = Accepted), Commanding, Denied
))]
pub(crate) async fn wait(
    State(app): State<App>,
    asking: Asking,
    NodePath(execution, node): NodePath,
    request: Request,
) -> Result<Response, Denial> {
    let mut fields = asking.fields(request).await?;
    let wait_key = fields.text("waitKey", WORD);
    let prompt = fields.object("prompt").map(|Object(prompt)| Json(prompt.into()));
    fields.finish()?;
    let command = PutNodeWaiting { node_id: node, wait_key, prompt };
    app.ask(asking, execution, command).await
}

/// Ends a wait. A wait node succeeds with the output; any other node runs on.
#[utoipa::path(post, operation_id = "resumeNode", tag = "nodes", path = "/executions/{executionId}/nodes/{nodeId}/resume",
    params(("executionId" = String, Path), ("nodeId" = String, Path), CommandHeaders), request_body = Option<pyoco_api::ResumeNode>, responses(
    (status = 202, description = "The wait is over.", body = Accepted), Commanding, Denied
))]
pub(crate) async fn resume(
    State(app): State<App>,
    asking: Asking,
    NodePath(execution, node): NodePath,
    request: Request,
) -> Result<Response, Denial> {
    let mut fields = asking.fields(request).await?;
    let resume_key = fields.text("resumeKey", WORD);
    let output = fields.any("output").map(Arc::new);
    fields.finish()?;
    let command = ResumeNode { node_id: node, resume_key, output };
    app.ask(asking, execution, command).await
}

/// A node ended well.
#[utoipa::path(post, operation_id = "succeedNode", tag = "nodes", path = "/executions/{executionId}/nodes/{nodeId}/success",
    params(("executionId" = String, Path), ("nodeId" = String, Path), CommandHeaders), request_body = Option<pyoco_api::SucceedNode>, responses(
    (status = 202, description = "It has succeeded, and what waited for it goes on.", body = Accepted), Commanding, Denied
))]
pub(crate) async fn success(
    State(app): State<App>,
    asking: Asking,
    NodePath(execution, node): NodePath,
    request: Request,
) -> Result<Response, Denial> {
    let mut fields = asking.fields(request).await?;
    let (attempt, output) = (fields.attempt(), fields.any("output").map(Arc::new));
    fields.finish()?;
    let command =
        SucceedNode { node_id: node, attempt, output, output_ref: None, inputs: None, changes: None };
    app.ask(asking, execution, command).await
}

/// An attempt failed. Another one may follow, as the graph says.
#[utoipa::path(post, operation_id = "failNode", tag = "nodes", path = "/executions/{executionId}/nodes/{nodeId}/fail",
    params(("executionId" = String, Path), ("nodeId" = String, Path), CommandHeaders), request_body = Option<pyoco_api::FailNode>, responses(
    (status = 202, description = "The attempt has failed.", body = Accepted), Commanding, Denied
))]
pub(crate) async fn fail(
    State(app): State<App>,
    asking: Asking,
    NodePath(execution, node): NodePath,
    request: Request,
) -> Result<Response, Denial> {
    let mut fields = asking.fields(request).await?;
    let attempt = fields.attempt();
    let error = fields.inside("error", |error| ErrorInfo {
        code: error.text("code", WORD),
        message: error.text("message", MESSAGE),
        detail: error.object("detail"),
        extra: Object::default(),
    });
    fields.finish()?;
    let command = FailNode { node_id: node, attempt, error, inputs: None, changes: None };
    app.ask(asking, execution, command).await
}

/// Cancels one node; the rest goes on without it.
#[utoipa::path(post, operation_id = "cancelNode", tag = "nodes", path = "/executions/{executionId}/nodes/{nodeId}/cancel",
    params(("executionId" = String, Path), ("nodeId" = String, Path), CommandHeaders), request_body = Option<pyoco_api::Why>, responses(
    (status = 202, description = "It is canceled, or will be as soon as it has stopped.", body = Accepted), Commanding, Denied
))]
pub(crate) async fn cancel(
    State(app): State<App>,
    asking: Asking,
    NodePath(execution, node): NodePath,
    request: Request,
) -> Result<Response, Denial> {
    let mut fields = asking.fields(request).await?;
    let command = CancelNode { node_id: node, reason: fields.text("reason", REASON) };
    fields.finish()?;
    app.ask(asking, execution, command).await
}
