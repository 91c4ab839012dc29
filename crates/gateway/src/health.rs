//! Whether the process answers. Never looks at the store, never needs a key.

use axum::Json;
use pyoco_api::Health;

use crate::docs::Always;

/// Whether the gateway answers.
#[utoipa::path(get, operation_id = "health", tag = "service", path = "/health", responses(
    (status = 200, description = "It does.", body = Health), Always
))]
pub(crate) async fn health() -> Json<Health> {
    Json(Health { status: "ok".to_owned() })
}
