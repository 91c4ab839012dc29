//! Work that is not dropped when its caller goes.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::http::StatusCode;
use pyoco_core::command::{Command, Request};
use pyoco_core::ids::ExecutionId;
use pyoco_core::outcome::{Reason, Rejection};
use pyoco_engine::EngineError;
use tokio::runtime::Handle;

use crate::Shared;
use crate::caller::Caller;
use crate::error::Refusal;

/// Does something to its end, also when the caller hangs up meanwhile: a command that was begun is finished, and those who
/// watch hear of it. As long as the caller waits it is done in its own task; nobody is woken for it.
pub(crate) fn to_its_end<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> impl Future<Output = Result<T, Refusal>> {
    // Onto the heap before anybody waits: whoever moves what waits for it moves a pointer.
    let work = Unhurried { work: Some(Box::pin(work)) };
    // Only when the process is about to end is there nothing left of it.
    let stopping = || Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping").for_now();
    async move { work.await.ok_or_else(stopping) }
}

/// Work that goes on by itself when nobody waits for it any more.
struct Unhurried<F: Future<Output: Send + 'static> + Send + 'static> {
    work: Option<Pin<Box<F>>>,
}

impl<F: Future<Output: Send + 'static> + Send + 'static> Future for Unhurried<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(mut work) = self.work.take() else { return Poll::Ready(None) };
        // Work that panics is not there any more when this is dropped.
        match work.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending => {
                self.work = Some(work);
                Poll::Pending
            }
        }
    }
}

impl<F: Future<Output: Send + 'static> + Send + 'static> Drop for Unhurried<F> {
    fn drop(&mut self) {
        if let (Some(work), Ok(runtime)) = (self.work.take(), Handle::try_current()) {
            runtime.spawn(work);
        }
    }
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
