//! Work that is not dropped when its caller goes.

use std::future::Future;

use axum::http::StatusCode;

use crate::error::Refusal;

/// Does something to its end, also when the caller hangs up meanwhile: a command that was begun is finished, and those who
/// watch hear of it.
pub(crate) async fn to_its_end<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, Refusal> {
    tokio::spawn(work).await.map_err(|error| match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        // Only when the process is about to end.
        Err(_) => Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping").for_now(),
    })
}
