//! What follows from a record, for stores that do not do it in the same step. Each may be done twice.

use std::time::Duration;

use pyoco_core::event::Actor;
use pyoco_core::state::State;
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
        }
        if state.claim.is_none() && state.wants_worker() {
            // One too many is harmless: a live claim makes it superfluous.
            self.store.enqueue(projection::job(state, self.clock.now()), self.clock.now()).await?;
        }
        Ok(())
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
            append.row = None;
        }
        if append.drop_job {
            self.store.drop_waiting(&append.execution).await?;
            append.drop_job = false;
        }
        if let Some(job) = &append.enqueue {
            self.store.enqueue(job.clone(), self.clock.now()).await?;
            append.enqueue = None;
        }
        if let Some(letter) = &append.dead_letter {
            self.store.publish(letter.clone()).await?;
            append.dead_letter = None;
        }
        Ok(())
    }
}

/// Whether somebody must be told when this is not done: that it was not accepted, that its end is not to be seen, or that nobody
/// will go on with it.
fn is_awaited(state: &State, left: &Append) -> bool {
    state.version.0 <= 1 || state.phase.is_terminal() || left.enqueue.is_some() || left.dead_letter.is_some()
}
