//! Work that is not dropped when its caller goes.

use std::future::Future;

use axum::http::StatusCode;
use pyoco_core::command::{Command, Request};
use pyoco_core::ids::ExecutionId;
use pyoco_core::outcome::{Reason, Rejection};
use pyoco_engine::EngineError;

use crate::Shared;
use crate::caller::Caller;
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

impl Shared {
    /// Tells an execution something that needs no key, because to say it twice changes nothing.
    pub(crate) async fn tell(
        &self,
        caller: &Caller,
        execution: &ExecutionId,
        command: impl Into<Command>,
    ) -> Result<Result<(), EngineError>, Refusal> {
        let request = Request::new(caller.issuer(), self.clock.now(), command);
        let (engine, execution) = (self.engine.clone(), execution.clone());
        let told = async move {
            match engine.command(&execution, &request).await {
                // Another implementation has accepted it; from now on it has a log.
                Err(EngineError::Rejected(Rejection { reason: Reason::UnknownExecution(_), .. }))
                    if engine.adopt(&execution).await? =>
                {
                    engine.command(&execution, &request).await.map(drop)
                }
                answer => answer.map(drop),
            }
        };
        to_its_end(told).await
    }
}
