//! Keeping a version of a graph.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use pyoco_api::{Graph, Location};
use pyoco_core::notice::Notice;
use pyoco_engine::{GraphError, GraphPut};
use pyoco_flow::FlowError;
use pyoco_ports::{GraphFormat, GraphSource};
use serde_json::json;

use super::{GraphPath, Match, is_name, tag_of, view};
use crate::caller::Viewer;
use crate::docs::{Changing, Denied};
use crate::error::{Code, Denial, Refusal};
use crate::server::Hosting;
use crate::unhurried::to_its_end;
use crate::validation::Inputs;
use crate::{App, body};

/// The types of YAML that are in use.
const YAML: [&str; 5] = ["application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", "text/plain"];

/// Keeps a flow under a name. What says the same as the newest version is that version; everything else is a new one.
#[utoipa::path(put, operation_id = "putGraph", tag = "graphs", path = "/graphs/{graphId}", params(
    ("graphId" = String, Path, min_length = 1, max_length = 256),
    ("If-Match" = Option<String>, Header, description = "the version, in quotes, that is to be followed")
), request_body(description = "A flow, as flow.yaml or as the same document in JSON.", content(
    (String = "application/yaml", example = "version: 2\nflow: {graph: 'a >> b'}\ntasks: {a: {}, b: {}}\n"),
    (Object = "application/json", example = json!({"version": 2, "flow": {"graph": "a >> b"}, "tasks": {"a": {}, "b": {}}}))
)), responses(
    (status = 200, description = "It is kept.", body = Graph, headers(("ETag" = String))),
    (status = 201, description = "It is kept, and the first under this name.", body = Graph, headers(("ETag" = String))),
    Changing, Denied
))]
pub(crate) async fn put(
    State(app): State<App>,
    Viewer(caller): Viewer,
    GraphPath(id): GraphPath,
    hosting: Hosting,
    request: Request,
) -> Result<Response, Denial> {
    if !is_name(&id) {
        let mut inputs = Inputs::default();
        let place: [Location; 2] = ["path".into(), "graphId".into()];
        let rule = "it must have 1 to 256 characters, no '/' and no control characters";
        inputs.wrong("value_error", place, rule, json!(id), None);
        return Err(inputs.refusal(Notice::InvalidRequest).into());
    }
    let (parts, body) = request.into_parts();
    let format = format_of(&parts.headers)?;
    let limit = app.settings.workflow_yaml_max_bytes;
    let bytes = body::read(&parts.headers, body, limit, hosting.limits.body_timeout).await?;
    let text = String::from_utf8(bytes.to_vec()).map_err(|_| {
        let refusal = Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, "the document is not UTF-8");
        refusal.coded(Code::InvalidGraph).noticed(Notice::InvalidRequest)
    })?;
    let expected = app.expected(&caller, &id, Match::of(&parts.headers)).await?;
    let by = caller.issuer().actor().id;
    let put = GraphPut {
        tenant: caller.tenant.clone(),
        id: id.clone(),
        source: GraphSource { format, text },
        by,
        expected,
    };
    let engine = app.engine.clone();
    let kept = to_its_end(async move { engine.put_graph(put).await }).await?;
    let kept = kept.map_err(|error| refused(error).of_flow(&id, ""))?;
    let status = if kept.is_first { StatusCode::CREATED } else { StatusCode::OK };
    let mut response = (status, Json(view(&kept.graph))).into_response();
    if let Some(tag) = tag_of(kept.graph.record.version) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    Ok(response)
}

/// How the document is written; JSON when nobody says.
fn format_of(headers: &HeaderMap) -> Result<GraphFormat, Refusal> {
    let Some(given) = headers.get(header::CONTENT_TYPE) else { return Ok(GraphFormat::Json) };
    let given = given.to_str().unwrap_or_default();
    let essence = given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match essence.as_str() {
        "application/json" => Ok(GraphFormat::Json),
        yaml if YAML.contains(&yaml) => Ok(GraphFormat::Yaml),
        _ => {
            let detail = "a graph is application/yaml or application/json";
            Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail).noticed(Notice::InvalidRequest))
        }
    }
}

impl crate::Shared {
    /// The version that a change is meant for; any when there is none.
    pub(super) async fn expected(
        &self,
        caller: &crate::caller::Caller,
        id: &str,
        wanted: Match,
    ) -> Result<Option<u64>, Denial> {
        match wanted {
            Match::Anything => Ok(None),
            Match::Version(version) => Ok(Some(version)),
            Match::Some => {
                let newest = self.engine.store().graph(caller.tenant.as_ref(), id, None).await?;
                match newest.filter(|newest| newest.source.is_some()) {
                    Some(newest) => Ok(Some(newest.version)),
                    None => Err(refused(GraphError::Changed { newest: 0 }).of_flow(id, "").into()),
                }
            }
        }
    }
}

/// Why a graph cannot be kept, got or deleted.
pub(super) fn refused(error: GraphError) -> Refusal {
    match error {
        GraphError::Invalid(error) => invalid(&error),
        GraphError::Changed { newest } => {
            let detail = match newest {
                0 => "there is no such graph".to_owned(),
                newest => format!("the newest version is {newest}"),
            };
            Refusal::new(StatusCode::PRECONDITION_FAILED, detail).noticed(Notice::InvalidRequest)
        }
        GraphError::Busy => Refusal::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string()).for_now(),
        GraphError::Store(error) => error.into(),
    }
}

fn invalid(error: &FlowError) -> Refusal {
    let said = error.diagnostics().next().map_or("it is no flow", |problem| problem.message());
    Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, format!("the graph cannot be used: {said}"))
        .coded(Code::InvalidGraph)
        .noticed(Notice::InvalidRequest)
        .flawed(error)
}
