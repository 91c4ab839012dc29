//! The audit trail as it is shown: newest first, page by page.

use axum::Json;
use axum::extract::State;
use pyoco_api::{AuditEntry, AuditPage};
use pyoco_core::notice::Notice;
use pyoco_ports::AuditFilter;

use crate::caller::Viewer;
use crate::docs::{Denied, Listed};
use crate::error::Denial;
use crate::query::Query;
use crate::validation::Inputs;
use crate::{App, opaque};

/// The longest name and the longest id that can be asked for.
const LONGEST: usize = 256;
/// Cursors of this list say so.
const LIST: &str = "audit";

/// Who did what, newest first. An admin sees what its tenant did, and what is no tenant's.
#[utoipa::path(get, operation_id = "listAudit", tag = "audit", path = "/audit", params(
    ("action" = Option<String>, Query, description = "the whole name, e.g. `runs.submit`, or its part before a dot, e.g. `runs`"),
    ("target" = Option<String>, Query, description = "the execution, graph, worker or key it is about"),
    ("since" = Option<String>, Query, description = "at this instant or later"),
    ("until" = Option<String>, Query, description = "before this instant"),
    ("limit" = Option<u32>, Query, minimum = 1, maximum = 1000), ("cursor" = Option<String>, Query)
), responses((status = 200, description = "The entries. A page may be short, or empty, and have a next one.", body = AuditPage), Listed, Denied))]
pub(crate) async fn list(
    State(app): State<App>,
    Viewer(caller): Viewer,
    query: Query,
) -> Result<Json<AuditPage>, Denial> {
    let mut inputs = Inputs::default();
    let limit = query.integer(&mut inputs, "limit", 1..=1_000, 100);
    let filter = AuditFilter {
        tenant: caller.tenant,
        action: query.text(&mut inputs, "action", LONGEST),
        target: query.text(&mut inputs, "target", LONGEST),
        since: query.instant(&mut inputs, "since"),
        until: query.instant(&mut inputs, "until"),
        before: query.cursor(&mut inputs, place),
    };
    inputs.finish(Notice::InvalidListQuery)?;
    let page = app.engine.store().audit(&filter, limit as usize).await?;
    let next_cursor = page.next.map(|place| opaque::encode(&(LIST, place)));
    Ok(Json(AuditPage { items: page.entries.iter().filter_map(shown).collect(), next_cursor }))
}

/// Where a cursor of this list says to go on.
fn place(cursor: &str) -> Option<u64> {
    let (list, place) = opaque::decode::<(String, u64)>(cursor)?;
    (list == LIST).then_some(place)
}

/// An entry as it was written. One that cannot be read keeps nobody from seeing the others.
fn shown(entry: &pyoco_ports::AuditEntry) -> Option<AuditEntry> {
    match serde_json::from_slice(&entry.body) {
        Ok(shown) => Some(shown),
        Err(error) => {
            tracing::warn!(id = entry.id, reason = %error, "an entry of the audit trail cannot be read");
            None
        }
    }
}
