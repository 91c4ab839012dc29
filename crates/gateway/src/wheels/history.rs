//! Who changed the shelf, as it is shown.

use axum::Json;
use axum::extract::State;
use pyoco_api::{ErrorBody, WheelHistoryEvent};
use pyoco_core::notice::Notice;
use pyoco_ports::{WheelAction, WheelEvent, WheelHistoryFilter};
use pyoco_wheels::{InvalidName, WheelName};

use super::refused;
use crate::App;
use crate::caller::Caller;
use crate::docs::{Always, Reading};
use crate::error::Refusal;
use crate::query::Query;
use crate::validation::Inputs;

/// Uploads and deletions, newest first. They are kept for a while (`PYOCO_WHEEL_HISTORY_TTL_SEC`).
#[utoipa::path(get, operation_id = "listWheelHistory", tag = "wheels", path = "/wheels/history", params(
    ("limit" = Option<u32>, Query, minimum = 1, maximum = 500, description = "100 unless told"),
    ("wheel_name" = Option<String>, Query, description = "only of this wheel", pattern = "^[A-Za-z0-9._+-]+\\.whl$", max_length = 255),
    ("action" = Option<String>, Query, description = "`upload` or `delete`", pattern = "^([Uu][Pp][Ll][Oo][Aa][Dd]|[Dd][Ee][Ll][Ee][Tt][Ee])$")
), responses(
    (status = 200, description = "The events.", body = [WheelHistoryEvent]),
    (status = 422, description = "The query cannot be read.", body = ErrorBody), Reading, Always
))]
pub(crate) async fn history(
    State(app): State<App>,
    _caller: Caller,
    query: Query,
) -> Result<Json<Vec<WheelEvent>>, Refusal> {
    let mut inputs = Inputs::default();
    let limit = query.integer(&mut inputs, "limit", 1..=500, 100);
    inputs.finish(Notice::InvalidRequest)?;
    let wheel_name = query.filled("wheel_name");
    // One that is no wheel's, but could be a file's, has no events; that is no mistake.
    if wheel_name.is_some_and(|name| WheelName::parse(name) == Err(InvalidName::NotAName)) {
        return Err(refused("invalid wheel name"));
    }
    let action = match query.filled("action").map(|word| word.trim().to_ascii_lowercase()).as_deref() {
        None | Some("") => None,
        Some("upload") => Some(WheelAction::Upload),
        Some("delete") => Some(WheelAction::Delete),
        Some(_) => return Err(refused("invalid action")),
    };
    let filter =
        WheelHistoryFilter { wheel_name: wheel_name.map(str::to_owned), action, limit: limit as usize };
    Ok(Json(app.engine.store().wheel_history(&filter, app.clock.now()).await?))
}
