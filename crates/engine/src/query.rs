//! Looking at an execution without changing it.

use pyoco_core::ids::ExecutionId;
use pyoco_core::state::State;
use pyoco_ports::{ErrorKind, StoreError};

use crate::{Engine, EngineError};

impl Engine {
    /// Looks at an execution as the log has it now; `None` if there is none. The state is not copied: what the view needs of
    /// it, it takes. Whoever looks is answered in time, also behind others who wait for a silent store.
    pub async fn look<T: Send>(
        &self,
        execution: &ExecutionId,
        view: impl FnOnce(&State) -> T + Send,
    ) -> Result<Option<T>, EngineError> {
        let seen = self.in_time(self.deadline(), self.look_patiently(execution, view)).await;
        seen.unwrap_or_else(|| Err(StoreError::plain(ErrorKind::Timeout, "look").into()))
    }

    async fn look_patiently<T: Send>(
        &self,
        execution: &ExecutionId,
        view: impl FnOnce(&State) -> T + Send,
    ) -> Result<Option<T>, EngineError> {
        let entry = self.cache.entry(execution);
        let mut slot = entry.lock().await;
        let state = self.bring_up(execution, slot.take()).await?;
        if state.origin.is_none() && self.store.wants_snapshots() {
            drop(slot);
            // Another implementation may have accepted it, and knows no log.
            return Ok(self.as_others_say(execution).await?.map(|state| view(&state)));
        }
        self.hub.changed(execution, state.version);
        let seen = state.origin.is_some().then(|| view(&state));
        *slot = Some(state);
        Ok(seen)
    }

    /// The state at the head of the log, from what is known of it.
    pub(crate) async fn bring_up(
        &self,
        execution: &ExecutionId,
        known: Option<Box<State>>,
    ) -> Result<Box<State>, EngineError> {
        let mut state = match known {
            // Nobody else has written since.
            Some(state) if self.store.is_exclusive() || pyoco_faults::is_planted("decide-stale") => {
                return Ok(state);
            }
            Some(state) => state,
            None => Box::new(State::absent(execution.clone())),
        };
        let Some(records) = self.store.read_on(execution, state.version).await? else {
            // It was removed, and there may be another one of this name by now.
            self.hub.gone(execution);
            return self.load(execution).await;
        };
        for record in records {
            let folded = state.fold(&record.bytes);
            folded.map_err(|error| EngineError::Log { execution: execution.clone(), error })?;
        }
        Ok(state)
    }
}
