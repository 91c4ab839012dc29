//! Snapshots: what other implementations, and the lists of other processes, see of an execution.
//!
//! Written when it is accepted, when it is to be canceled and when it ends; in between at most every quarter of a second. A store
//! that nobody else looks at wants none.

use std::time::Duration;

use pyoco_core::event::{Actor, ActorKind};
use pyoco_core::ids::ExecutionId;
use pyoco_core::state::{Phase, State};
use pyoco_core::time::Timestamp;
use pyoco_core::view::RunSnapshot;
use pyoco_ports::{IndexRow, StoreError};
use serde_json::Value;

use crate::{Engine, EngineError, projection};

/// Progress is shown so often at most.
const EVERY: Duration = Duration::from_millis(250);

impl Engine {
    /// Shows a change: at once if somebody waits for it, else before long. The row of this process's own index is put at once.
    /// What another implementation said stands there already.
    pub(crate) async fn show(&self, state: &State, row: IndexRow, by: &Actor) -> Result<(), StoreError> {
        if !self.store.wants_snapshots() || by.kind == ActorKind::External {
            return self.store.put(row).await;
        }
        if is_urgent(state) {
            self.waiting.remove(&state.id);
            return self.publish(state, row, None).await;
        }
        self.store.put(row).await?;
        self.show_later(&state.id);
        Ok(())
    }

    /// Shows an execution before long; again and again if the store is away.
    pub(crate) fn show_later(&self, execution: &ExecutionId) {
        if !self.waiting.add(execution) {
            return;
        }
        let (engine, execution) = (self.clone(), execution.clone());
        tokio::spawn(async move {
            tokio::time::sleep(EVERY).await;
            if engine.waiting.remove(&execution)
                && let Err(error) = engine.show_now(&execution, None).await
            {
                tracing::debug!(run_id = %execution, reason = %error, "progress could not be shown");
                let is_passing = matches!(&error, EngineError::Store(error) if error.kind.is_retryable());
                if is_passing {
                    engine.show_later(&execution);
                }
            }
        });
    }

    /// Shows that somebody is at work on an execution, also when nothing has changed.
    pub async fn beat(&self, execution: &ExecutionId) -> Result<(), EngineError> {
        if !self.store.wants_snapshots() || !self.glance(execution, |state| state.claim.is_some()).await? {
            return Ok(());
        }
        self.waiting.remove(execution);
        self.show_now(execution, Some(self.clock.now())).await
    }

    /// Shows an execution as the log has it: what is derived may have been lost on the way, or changed by somebody.
    pub async fn show_again(&self, execution: &ExecutionId) -> Result<(), EngineError> {
        let state = self.state(execution).await?;
        self.derive_again(&state).await?;
        Ok(())
    }

    async fn show_now(&self, execution: &ExecutionId, beat: Option<Timestamp>) -> Result<(), EngineError> {
        let force_after = self.settings.force_after();
        let shown =
            self.glance(execution, |state| (projection::row(state, force_after), state.clone())).await?;
        // What has ended was shown then.
        if let (Some(row), state) = shown
            && !state.phase.is_terminal()
        {
            self.publish(&state, row, beat).await?;
        }
        Ok(())
    }

    /// Shows a state as it should be shown: what stands there may have been lost on the way, or changed by somebody.
    pub(crate) async fn show_state(&self, state: &State) -> Result<(), StoreError> {
        match projection::row(state, self.settings.force_after()) {
            Some(row) if self.store.wants_snapshots() => self.publish(state, row, None).await,
            Some(row) => self.store.put(row).await,
            None => Ok(()),
        }
    }

    /// Writes the row and its snapshot.
    pub(crate) async fn publish(
        &self,
        state: &State,
        row: IndexRow,
        beat: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        let snapshot = RunSnapshot::of(state, beat).to_json(self.settings.max_snapshot_bytes);
        let foreign = if may_be_foreign(state) { self.foreign_snapshot(&state.id).await? } else { None };
        let snapshot = match foreign {
            Some(foreign) => over(foreign, &snapshot),
            None => snapshot,
        };
        self.store.publish_row(row, snapshot).await
    }

    /// The snapshot of an execution that another implementation runs: it alone knows about its tasks.
    pub async fn foreign_snapshot(&self, execution: &ExecutionId) -> Result<Option<Value>, StoreError> {
        self.store.snapshot_body(execution).await
    }
}

/// Whether another implementation may be running it: none of ours has taken it, and somebody may have.
pub fn may_be_foreign(state: &State) -> bool {
    state.epoch.0 == 0 && state.version.0 != 1
}

/// Somebody waits for it: who submitted, who cancels, and everybody for the end.
fn is_urgent(state: &State) -> bool {
    state.version.0 <= 1 || state.phase == Phase::Canceling || state.phase.is_terminal()
}

/// What the log decides, written over the snapshot of another implementation. What that one does not say is added: its
/// gateway leaves out some of what workers always write.
fn over(mut foreign: Value, ours: &[u8]) -> Vec<u8> {
    const DECIDED: [&str; 6] =
        ["status", "cancel_requested_at", "cancel_requested_by", "updated_at", "error", "version"];
    const ADDED: [&str; 3] = ["end_time", "workflow_yaml_sha256", "workflow_yaml_bytes"];
    let ours: Value = serde_json::from_slice(ours).unwrap_or_default();
    for member in DECIDED {
        let value = ours.get(member).cloned().unwrap_or_default();
        if let Some(members) = foreign.as_object_mut()
            && !(member == "error" && value.is_null())
        {
            members.insert(member.to_owned(), value);
        }
    }
    if let Some(members) = foreign.as_object_mut() {
        for member in ADDED {
            let known = members.entry(member).or_insert_with(Default::default);
            if known.is_null() {
                *known = ours.get(member).cloned().unwrap_or_default();
            }
        }
    }
    foreign.to_string().into_bytes()
}
