//! What a stream of server-sent events consists of, for the description. What its data say is a type of its own, named at the request.

use utoipa::ToSchema;

/// One event of a stream, as it is on the wire.
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes the events for OpenAPI; they are written as text")]
pub(crate) struct ServerSentEvent {
    /// Its number: what to send as `Last-Event-ID` to go on behind it. The end and signs of life have none.
    id: Option<String>,
    /// What happened.
    event: String,
    /// What is said of it, in JSON.
    #[schema(content_media_type = "application/json")]
    data: String,
}
