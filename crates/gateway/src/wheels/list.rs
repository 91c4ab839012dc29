//! What is on the shelf.

use axum::Json;
use axum::extract::State;
use pyoco_api::WheelArtifact;

use super::shown;
use crate::App;
use crate::caller::Caller;
use crate::docs::{Always, Reading};
use crate::error::Refusal;

/// All wheels, in the order of their names.
#[utoipa::path(get, operation_id = "listWheels", tag = "wheels", path = "/wheels", responses(
    (status = 200, description = "The wheels.", body = [WheelArtifact]), Reading, Always
))]
pub(crate) async fn list(
    State(app): State<App>,
    _caller: Caller,
) -> Result<Json<Vec<WheelArtifact>>, Refusal> {
    let wheels = app.engine.store().wheels().await?;
    let bucket = &app.settings.wheels.bucket;
    Ok(Json(wheels.into_iter().map(|wheel| shown(wheel, bucket)).collect()))
}
