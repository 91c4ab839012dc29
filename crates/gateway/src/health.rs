//! Whether the process answers. Never looks at the store, never needs a key.

use axum::Json;
use pyoco_api::Health;

/// Whether the gateway answers.
#[utoipa::path(get, path = "/health", responses((status = 200, body = Health)))]
pub(crate) async fn health() -> Json<Health> {
    Json(Health { status: "ok".to_owned() })
}
