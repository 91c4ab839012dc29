//! Deleting a graph. Executions keep what they were created with.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};

use super::put::refused;
use super::{GraphPath, Match, not_found};
use crate::App;
use crate::caller::Viewer;
use crate::docs::{Denied, Removing};
use crate::error::Denial;
use crate::unhurried::to_its_end;

/// Deletes a graph: nothing new can be made of it. Put again, it goes on with its numbers.
#[utoipa::path(delete, operation_id = "deleteGraph", tag = "graphs", path = "/graphs/{graphId}", params(
    ("graphId" = String, Path),
    ("If-Match" = Option<String>, Header, description = "the version, in quotes, that is to be deleted")
), responses((status = 204, description = "It is deleted."), Removing, Denied))]
pub(crate) async fn delete(
    State(app): State<App>,
    Viewer(caller): Viewer,
    GraphPath(id): GraphPath,
    headers: HeaderMap,
) -> Result<StatusCode, Denial> {
    let expected = app.expected(&caller, &id, Match::of(&headers)).await?;
    let (engine, tenant, name) = (app.engine.clone(), caller.tenant.clone(), id.clone());
    let by = caller.issuer().actor().id;
    let deleted = to_its_end(async move { engine.delete_graph(tenant.as_ref(), &name, by, expected).await });
    if deleted.await?.map_err(|error| refused(error).of_flow(&id, ""))? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(not_found(&id))
    }
}
