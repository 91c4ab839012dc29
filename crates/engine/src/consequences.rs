//! What follows from a record, for stores that do not do it in the same step. Each may be done twice.

use pyoco_core::state::State;
use pyoco_ports::{Append, AppendError, StoreError};

use crate::{Engine, projection};

impl Engine {
    /// A record turned out to be there although its append timed out; what follows from it may be missing.
    pub(crate) async fn derive_again(&self, state: &State) -> Result<(), StoreError> {
        if let Some(row) = projection::row(state, self.settings.force_after()) {
            let wants_job = row.wants_job;
            self.store.put(row).await?;
            if wants_job {
                // One too many is harmless: a live claim makes it superfluous.
                self.store.enqueue(projection::job(state, self.clock.now()), self.clock.now()).await?;
            }
        }
        Ok(())
    }

    /// Carries out the consequences of an appended record: row, then job, so that whoever takes the job finds the row.
    pub(crate) async fn carry_out(&self, append: Append) -> Result<(), AppendError> {
        if let Some(row) = append.row {
            self.store.put(row).await?;
        }
        if append.drop_job {
            self.store.drop_waiting(&append.execution).await?;
        }
        if let Some(job) = append.enqueue {
            self.store.enqueue(job, self.clock.now()).await?;
        }
        if let Some(letter) = append.dead_letter {
            self.store.publish(letter).await?;
        }
        Ok(())
    }
}
