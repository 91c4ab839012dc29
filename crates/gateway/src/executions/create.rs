//! Making an execution exist. It does not run before it is started.

use axum::extract::{Request, State};
use axum::response::Response;
use pyoco_api::Accepted;
use pyoco_core::command::CreateExecution;
use pyoco_core::ids::Tag;
use pyoco_engine::Create;

use super::{Asking, accepted_at};
use crate::App;
use crate::docs::{CommandHeaders, Commanding, Denied};
use crate::error::{Denial, Refusal};
use crate::fields::{Fields, WORD};
use crate::trace::TraceHeader;
use crate::unhurried::to_its_end;

/// Creates an execution of a registered graph.
#[utoipa::path(post, operation_id = "createExecution", tag = "executions", path = "/executions", params(CommandHeaders, TraceHeader), request_body = pyoco_api::CreateExecution, responses(
    (status = 202, description = "It exists; `Location` says where.", body = Accepted, headers(("Location" = String))),
    Commanding, Denied
))]
pub(crate) async fn create(
    State(app): State<App>,
    asking: Asking,
    request: Request,
) -> Result<Response, Denial> {
    let mut fields = asking.fields(request).await?;
    let graph_id = graph_id(&mut fields);
    let input = fields.object("input").unwrap_or_default();
    let tag = fields.id("tag", Tag::new).unwrap_or_else(|| app.settings.default_tag.clone());
    let tags = fields.texts("tags", WORD);
    let version = fields.count("graphVersion", u64::MAX);
    fields.finish()?;
    let labels = if tags.is_empty() { vec![tag.as_str().to_owned()] } else { tags };
    let Asking { caller, key, correlation_id, traceparent, .. } = asking;
    let command = CreateExecution {
        graph_id: graph_id.clone(),
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
        start: false,
    };
    let create = Create { command, version, issuer: caller.issuer(), key, correlation_id };
    let engine = app.engine.clone();
    let created = to_its_end(async move { engine.create(create).await }).await?;
    let created = created.map_err(|error| Refusal::from(error).of_flow(&graph_id, tag.as_str()))?;
    Ok(accepted_at("CreateExecution", created))
}

fn graph_id(fields: &mut Fields) -> String {
    if !fields.has("graphId") {
        fields.missing("graphId");
        return String::new();
    }
    fields.text("graphId", WORD).unwrap_or_default()
}
