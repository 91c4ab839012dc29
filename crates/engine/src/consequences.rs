//! What follows from a record, for stores that do not do it in the same step. Each may be done twice.

use std::time::Duration;

use pyoco_core::command::DeadLetter;
use pyoco_core::event::{Actor, ActorKind};
use pyoco_core::outcome::Effect;
use pyoco_core::state::{Phase, State};
use pyoco_ports::{Append, StoreError};

use crate::{Engine, projection};

/// What fails is tried again for so long; then whoever asked is told.
const PATIENCE: Duration = Duration::from_millis(1_500);
const PAUSE: Duration = Duration::from_millis(50);

impl Engine {
    /// What is derived from a state may be missing, e.g. because the append of its record timed out.
    pub(crate) async fn derive_again(&self, state: &State) -> Result<(), StoreError> {
        self.show_state(state).await?;
        if state.phase.is_terminal() {
            self.lines.ended(state);
            self.tell_failure_again(state).await?;
        }
        if state.claim.is_none() && state.wants_worker() {
            // One too many is harmless: a live claim makes it superfluous.
            self.store.enqueue(projection::job(state, self.clock.now()), self.clock.now()).await?;
        }
        Ok(())
    }

    /// Whoever failed a run may have died before its letter was written. One that was is kept once: it has the same key. A run that
    /// nobody here has held is somebody else's to tell of.
    async fn tell_failure_again(&self, state: &State) -> Result<(), StoreError> {
        let is_ours = state.phase == Phase::Failed && state.epoch.0 > 0;
        if !(is_ours && self.store.wants_snapshots() && self.settings.letters_for_failures) {
            return Ok(());
        }
        let Some(failure) = &state.failure else { return Ok(()) };
        let error = failure.error.text().to_owned();
        let effect = Effect::PublishDeadLetter { reason: DeadLetter::ExecutionError, error };
        let by = Actor { kind: ActorKind::System, id: None };
        match projection::dead_letter(state, &effect, &by, self.clock.now()) {
            Some(letter) => self.store.publish(letter).await,
            None => Ok(()),
        }
    }

    /// Carries out the consequences of an appended record: row, then job, so that whoever takes the job finds the row.
    pub(crate) async fn carry_out(
        &self,
        state: &State,
        append: &mut Append,
        by: &Actor,
    ) -> Result<(), StoreError> {
        let over = tokio::time::Instant::now() + PATIENCE;
        loop {
            match self.carry_out_once(state, append, by).await {
                Err(error) if error.kind.is_retryable() && tokio::time::Instant::now() < over => {
                    tokio::time::sleep(PAUSE).await;
                }
                // The log has it, and somebody is at work: the next change shows it, at the latest the end.
                Err(_) if !is_awaited(state, append) => {
                    self.show_later(&state.id);
                    return Ok(());
                }
                done => return done,
            }
        }
    }

    /// Takes out of `append` what is done.
    async fn carry_out_once(&self, state: &State, append: &mut Append, by: &Actor) -> Result<(), StoreError> {
        if let Some(row) = &append.row {
            self.show(state, row.clone(), by).await?;
            pyoco_faults::at(shown(append), "show")?;
            append.row = None;
        }
        if append.drop_job {
            self.store.drop_waiting(&append.execution).await?;
            append.drop_job = false;
        }
        if let Some(job) = &append.enqueue {
            self.store.enqueue(job.clone(), self.clock.now()).await?;
            pyoco_faults::at("start.after_publish", "enqueue")?;
            append.enqueue = None;
        }
        if let Some(letter) = &append.dead_letter {
            pyoco_faults::at("dlq.before_publish", "publish")?;
            self.store.publish(letter.clone()).await?;
            pyoco_faults::at("dlq.after_publish", "publish")?;
            append.dead_letter = None;
        }
        Ok(())
    }
}

/// The place behind the snapshot of a record, by what that is.
const fn shown(append: &Append) -> &'static str {
    match append.expected.0 {
        0 => "start.after_snapshot",
        _ if append.is_end => "finish.after_snapshot",
        _ => "step.after_snapshot",
    }
}

/// Whether somebody must be told when this is not done: that it was not accepted, that its end is not to be seen, or that nobody
/// will go on with it.
fn is_awaited(state: &State, left: &Append) -> bool {
    state.version.0 <= 1 || state.phase.is_terminal() || left.enqueue.is_some() || left.dead_letter.is_some()
}
