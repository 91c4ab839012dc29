//! Taking a wheel from the shelf.

use axum::Json;
use axum::extract::State;
use pyoco_api::{ErrorBody, WheelDeleted};
use pyoco_ports::WheelAction;

use super::story::Origin;
use super::{Named, not_found};
use crate::App;
use crate::caller::Caller;
use crate::docs::{Always, Writing};
use crate::error::Refusal;
use crate::unhurried::to_its_end;

/// Deletes a wheel. Runs that have begun with it keep it; the same version may be uploaded again.
#[utoipa::path(delete, operation_id = "deleteWheel", tag = "wheels", path = "/wheels/{wheel_name}", params(("wheel_name" = String, Path)), responses(
    (status = 200, description = "It is gone.", body = WheelDeleted),
    (status = 404, description = "There is no such wheel.", body = ErrorBody), Writing, Always
))]
pub(crate) async fn delete(
    State(app): State<App>,
    caller: Caller,
    origin: Origin,
    Named(name): Named,
) -> Result<Json<WheelDeleted>, Refusal> {
    caller.must_have(app.settings.wheels.upload_role)?;
    let deleted = async move {
        let gone = app.engine.store().delete_wheel(&name, app.clock.now()).await?;
        let record = gone.ok_or_else(|| not_found(name.as_str()))?;
        app.tell_story(WheelAction::Delete, &record, None, &caller, origin).await;
        Ok(Json(WheelDeleted { name: name.into(), deleted: true }))
    };
    to_its_end(deleted).await?
}
