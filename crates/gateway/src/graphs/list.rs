//! Graphs by name, page by page.

use axum::Json;
use axum::extract::State;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pyoco_api::{GraphPage, GraphSummary};
use pyoco_core::notice::Notice;

use super::is_name;
use crate::App;
use crate::caller::Viewer;
use crate::docs::{Denied, Listed};
use crate::error::Denial;
use crate::query::Query;
use crate::validation::Inputs;

/// The newest version of every graph, by name.
#[utoipa::path(get, operation_id = "listGraphs", tag = "graphs", path = "/graphs", params(
    ("limit" = Option<u32>, Query, minimum = 1, maximum = 200), ("cursor" = Option<String>, Query)
), responses((status = 200, description = "The graphs.", body = GraphPage), Listed, Denied))]
pub(crate) async fn list(
    State(app): State<App>,
    Viewer(caller): Viewer,
    query: Query,
) -> Result<Json<GraphPage>, Denial> {
    let mut inputs = Inputs::default();
    let limit = query.integer(&mut inputs, "limit", 1..=200, 50) as usize;
    let after = query.cursor(&mut inputs, decode);
    inputs.finish(Notice::InvalidListQuery)?;
    // One more than is shown says whether there is more.
    let store = app.engine.store();
    let mut found = store.graphs(caller.tenant.as_ref(), after.as_deref(), limit.saturating_add(1)).await?;
    let is_all = found.len() <= limit;
    found.truncate(limit);
    let next_cursor = found.last().filter(|_| !is_all).map(|last| URL_SAFE_NO_PAD.encode(&last.id));
    let items = found.into_iter().map(|record| GraphSummary {
        graph_id: record.id,
        version: record.version,
        created_at: record.at,
    });
    Ok(Json(GraphPage { items: items.collect(), next_cursor }))
}

fn decode(text: &str) -> Option<String> {
    let id = String::from_utf8(URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
    is_name(&id).then_some(id)
}
