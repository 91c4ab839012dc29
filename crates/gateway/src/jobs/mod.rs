//! Jobs: submit, look, list, delete, follow. One file a kind of request; the socket has a folder of its own.
//!
//! A job is an execution under another name. Here is how one is shown, and who may see it: one that has ended and was deleted is no job
//! any more, though its history stays readable under `/executions`.

pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod logs;
pub(crate) mod socket;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use pyoco_api::{Extra, Job};
use pyoco_core::ids::ExecutionId;
use pyoco_core::state::State as Folded;
use pyoco_core::time::Timestamp;
use pyoco_core::view::JobView;

use crate::caller::Caller;
use crate::error::{Denial, Refusal};
use crate::executions::Asking;
use crate::{App, Shared};

/// The job that a path names. What cannot be an id names none.
pub(crate) struct JobPath(pub(crate) ExecutionId);

impl FromRequestParts<App> for JobPath {
    type Rejection = Denial;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Denial> {
        let path = Path::<String>::from_request_parts(parts, app).await;
        let text = path.map(|path| path.0).unwrap_or_default();
        Ok(ExecutionId::new(&text).map(Self).map_err(|_| Refusal::job_not_found(&text))?)
    }
}

/// Who asks for something here: under a key if they like.
pub(crate) struct JobAsking(pub(crate) Asking);

impl FromRequestParts<App> for JobAsking {
    type Rejection = Denial;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Denial> {
        Asking::of(parts, app, false).await.map(Self)
    }
}

/// A job as it is shown, without its parameters.
pub(crate) fn job(state: &Folded) -> Job {
    let view = JobView::of(state);
    Job {
        id: view.id,
        status: view.status,
        // Whoever looks at a state finds one that was created.
        created_at: view.created_at.unwrap_or_else(|| Timestamp::from_micros(0)),
        started_at: view.started_at,
        completed_at: view.completed_at,
        tags: view.tags,
        flow: state.origin.as_ref().map(|origin| origin.flow.clone()),
        parameters: None,
        cancel_requested_at: view.cancel_requested_at,
        error: view.error,
        extra: Extra::new(),
    }
}

/// A job with its parameters.
fn whole_job(state: &Folded) -> Job {
    let parameters = state.origin.as_ref().map(|origin| origin.input.0.clone());
    Job { parameters, ..job(state) }
}

impl Shared {
    /// Looks at a job that the caller may see.
    pub(crate) async fn job<T: Send>(
        &self,
        caller: &Caller,
        job: &ExecutionId,
        view: impl FnOnce(&Folded) -> T + Send,
    ) -> Result<T, Refusal> {
        self.found_job(caller, job, view).await?.ok_or_else(|| Refusal::job_not_found(job.as_str()))
    }

    /// Looks at a job that may not be there.
    pub(crate) async fn found_job<T: Send>(
        &self,
        caller: &Caller,
        job: &ExecutionId,
        view: impl FnOnce(&Folded) -> T + Send,
    ) -> Result<Option<T>, Refusal> {
        self.found(caller, job, |state| (!JobView::is_deleted(state)).then(|| view(state))).await
    }
}
