//! One execution, as the log has it now or had it once.

use axum::Json;
use axum::extract::State;
use pyoco_api::{Execution, Location};
use pyoco_core::ids::{EventSeq, ExecutionId};
use pyoco_core::notice::Notice;
use pyoco_core::state::State as Folded;
use pyoco_core::view::ExecutionView;

use super::ExecutionPath;
use crate::caller::{Caller, Viewer};
use crate::docs::{Denied, Found};
use crate::error::{Denial, Refusal};
use crate::query::Query;
use crate::validation::Inputs;
use crate::{App, Shared};

/// An execution with its nodes. `at` shows it as it was when that event had happened.
#[utoipa::path(get, operation_id = "getExecution", tag = "executions", path = "/executions/{executionId}", params(
    ("executionId" = String, Path), ("at" = Option<u64>, Query, minimum = 1, description = "the number of an event")
), responses((status = 200, description = "The execution.", body = Execution), Found, Denied))]
pub(crate) async fn get(
    State(app): State<App>,
    Viewer(caller): Viewer,
    ExecutionPath(execution): ExecutionPath,
    query: Query,
) -> Result<Json<ExecutionView>, Denial> {
    let mut inputs = Inputs::default();
    let at = query.seq(&mut inputs, "at");
    inputs.finish(Notice::InvalidRequest)?;
    let Some(at) = at else {
        return Ok(Json(app.seen(&caller, &execution, ExecutionView::of).await?));
    };
    let last = app.seen(&caller, &execution, Folded::last_event).await?;
    let then = match at {
        EventSeq(1..) if at <= last => app.engine.state_at(&execution, at).await?,
        EventSeq(_) => None,
    };
    match then {
        Some(state) => Ok(Json(ExecutionView::of(&state))),
        None => {
            let place: [Location; 2] = ["query".into(), "at".into()];
            let rule = format!("it must be the number of an event, from 1 to {last}");
            inputs = Inputs::default();
            inputs.wrong("value_error", place, rule, at.0.into(), None);
            Err(inputs.refusal(Notice::InvalidRequest).of_run(execution.as_str()).into())
        }
    }
}

impl Shared {
    /// Refuses those who may not see an execution. Whoever may see all is not kept waiting: what is not there is told later.
    pub(crate) async fn must_be_seen(&self, caller: &Caller, execution: &ExecutionId) -> Result<(), Refusal> {
        match &caller.tenant {
            Some(_) => self.seen(caller, execution, |_| ()).await,
            None => Ok(()),
        }
    }

    /// Looks at an execution that the caller may see.
    pub(crate) async fn seen<T: Send>(
        &self,
        caller: &Caller,
        execution: &ExecutionId,
        view: impl FnOnce(&Folded) -> T + Send,
    ) -> Result<T, Refusal> {
        let found = self.found(caller, execution, |state| Some(view(state))).await?;
        found.ok_or_else(|| Refusal::run_not_found(execution.as_str()))
    }

    /// Looks at an execution that the caller may see and that has what is looked for.
    pub(crate) async fn found<T: Send>(
        &self,
        caller: &Caller,
        execution: &ExecutionId,
        view: impl FnOnce(&Folded) -> Option<T> + Send,
    ) -> Result<Option<T>, Refusal> {
        let seen = self.engine.look(execution, |state| {
            let tenant = state.origin.as_ref().and_then(|origin| origin.tenant.as_ref());
            caller.may_see(tenant).then(|| view(state)).flatten()
        });
        Ok(seen.await?.flatten())
    }
}
