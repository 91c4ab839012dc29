//! One version of a graph.

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use pyoco_api::Graph;
use pyoco_core::notice::Notice;

use super::put::refused;
use super::{GraphPath, not_found, tag_of, view};
use crate::App;
use crate::caller::Viewer;
use crate::docs::{Denied, GraphFound};
use crate::error::Denial;
use crate::query::Query;
use crate::validation::Inputs;

/// A graph with its text: the newest version, or the one that is asked for.
#[utoipa::path(get, operation_id = "getGraph", tag = "graphs", path = "/graphs/{graphId}", params(
    ("graphId" = String, Path), ("version" = Option<u64>, Query, minimum = 1)
), responses(
    (status = 200, description = "The graph.", body = Graph, headers(("ETag" = String))), GraphFound, Denied
))]
pub(crate) async fn get(
    State(app): State<App>,
    Viewer(caller): Viewer,
    GraphPath(id): GraphPath,
    query: Query,
) -> Result<Response, Denial> {
    let mut inputs = Inputs::default();
    let version = query.version(&mut inputs, "version");
    inputs.finish(Notice::InvalidRequest)?;
    let found = app.engine.graph(caller.tenant.as_ref(), &id, version).await;
    let found = found.map_err(|error| refused(error).of_flow(&id, ""))?;
    let graph = found.ok_or_else(|| not_found(&id))?;
    let mut shown = view(&graph);
    if let Some(source) = graph.record.source.clone() {
        shown.format = Some(source.format.as_str().to_owned());
        shown.source = Some(source.text);
    }
    let mut response = Json(shown).into_response();
    if let Some(tag) = tag_of(graph.record.version) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    Ok(response)
}
