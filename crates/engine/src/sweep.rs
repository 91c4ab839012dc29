//! The sweeper: what is due, overdue or forgotten. Any number may run; each step is decided like any other command.

use pyoco_core::command::{AdvanceExecution, FireTimers, ForceEnd, Issuer, Request};
use pyoco_core::ids::{ExecutionId, Tag};
use pyoco_core::time::Timestamp;

use crate::{Engine, EngineError, projection};

/// What one sweep did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Executions whose timers were fired.
    pub timers: usize,
    /// Cancels and failures that were ended.
    pub forced: usize,
    /// Jobs that were missing and were put into the queue again.
    pub enqueued: usize,
    /// Executions that one record had left half-way.
    pub advanced: usize,
    /// Executions that could not be helped, e.g. because their log cannot be read.
    pub failed: usize,
}

impl Engine {
    /// One sweep over what is due and over the queues of `tags`, at most `most` executions of each.
    pub async fn sweep(&self, tags: &[Tag], most: usize) -> Result<Swept, EngineError> {
        let mut swept = Swept::default();
        let now = self.clock.now();
        for execution in self.store.due(now, most).await? {
            match self.sweep_one(&execution, now, &mut swept).await {
                // One that cannot be read is nobody else's trouble; the auditor names it.
                Err(EngineError::Log { .. } | EngineError::Rejected(_) | EngineError::Busy(_)) => {
                    swept.failed += 1;
                }
                one => one?,
            }
        }
        for tag in tags {
            swept.advanced += self.enqueue_missing(tag, most, &mut swept.enqueued).await?;
        }
        Ok(swept)
    }

    async fn sweep_one(
        &self,
        execution: &ExecutionId,
        now: Timestamp,
        swept: &mut Swept,
    ) -> Result<(), EngineError> {
        let state = self.state(execution).await?;
        if projection::forced_at(&state, self.settings.force_after()).is_some_and(|at| at <= now) {
            swept.forced += usize::from(self.ask_quietly(execution, ForceEnd {}).await?);
        } else if state.needs_advance() {
            swept.advanced += usize::from(self.ask_quietly(execution, AdvanceExecution {}).await?);
        } else {
            swept.timers += usize::from(self.ask_quietly(execution, FireTimers {}).await?);
        }
        Ok(())
    }

    /// When there are fewer jobs than executions that want one, some were lost: the queue is only a hint.
    async fn enqueue_missing(
        &self,
        tag: &Tag,
        most: usize,
        enqueued: &mut usize,
    ) -> Result<usize, EngineError> {
        let runnable = self.store.runnable(tag, most).await?;
        let mut advanced = 0;
        if self.store.depth(tag).await? >= runnable.len() as u64 {
            return Ok(advanced);
        }
        for execution in runnable {
            let state = match self.state(&execution).await {
                Err(EngineError::Log { .. }) => continue,
                state => state?,
            };
            if state.needs_advance() {
                advanced += usize::from(self.ask_quietly(&execution, AdvanceExecution {}).await?);
            }
            if state.claim.is_none() && state.wants_worker() {
                // One too many is harmless: a live claim makes it superfluous.
                self.store.enqueue(projection::job(&state, self.clock.now()), self.clock.now()).await?;
                *enqueued += 1;
            }
        }
        Ok(advanced)
    }

    /// Sends a command whose refusal only means that somebody was faster.
    async fn ask_quietly(
        &self,
        execution: &ExecutionId,
        command: impl Into<pyoco_core::command::Command>,
    ) -> Result<bool, EngineError> {
        let request = Request::new(Issuer::Scheduler, self.clock.now(), command);
        match self.command(execution, &request).await {
            Ok(_) => Ok(true),
            Err(EngineError::Rejected(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
