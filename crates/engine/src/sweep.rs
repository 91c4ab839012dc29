//! The sweeper: what is due, overdue or forgotten. Any number may run; each step is decided like any other command.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use pyoco_core::command::{AdvanceExecution, FireTimers, ForceEnd, Issuer, ReleaseExecution, Request};
use pyoco_core::ids::{ExecutionId, Tag, WorkerId};
use pyoco_core::state::State;
use pyoco_core::time::{Millis, Timestamp};
use pyoco_core::view::RunStatus;
use pyoco_figures::Stopwatch;
use pyoco_ports::Filter;
use serde_json::Value;

use crate::{Engine, EngineError, projection, prune};

/// A worker that was not heard for so long has lost what it held.
const GONE_AFTER: Millis = Millis(60_000);
/// How a run that a worker may hold looks in the index.
const IN_HAND: [RunStatus; 2] = [RunStatus::Running, RunStatus::Cancelling];
/// So many rows of the index are asked for at a time.
const PAGE: usize = 500;

/// Tags that had too few jobs when they were last looked at.
#[derive(Default)]
pub(crate) struct Shortage(Mutex<HashSet<Tag>>);

impl Shortage {
    /// Whether there are too few now and were the last time.
    fn lasts(&self, tag: &Tag, is_short: bool) -> bool {
        let mut short = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_short {
            short.remove(tag);
        }
        is_short && !short.insert(tag.clone())
    }
}

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
        let watch = Stopwatch::start();
        let swept = self.sweep_all(tags, most).await;
        self.figures().swept(watch.seconds());
        swept
    }

    async fn sweep_all(&self, tags: &[Tag], most: usize) -> Result<Swept, EngineError> {
        let mut swept = Swept::default();
        let now = self.clock.now();
        for execution in self.refused.take() {
            self.refuse(execution).await;
        }
        for execution in self.store.due(now, most).await? {
            match self.sweep_one(&execution, now, &mut swept).await {
                // One that cannot be read is nobody else's trouble; the auditor names it.
                Err(error) if error.is_hopeless() => swept.failed += 1,
                Err(EngineError::Rejected(_) | EngineError::Busy(_)) => swept.failed += 1,
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
        // Nothing happened although something was due: its row is older than its log, and whoever wrote that is gone. If it wants
        // a job, its row says so from now on, and the queue is compared with it.
        if !self.store.is_exclusive() && self.state(execution).await?.version == state.version {
            self.show_and_tell(&state).await?;
        }
        Ok(())
    }

    /// When there are fewer jobs than executions that want one, some were lost: the queue is only a hint. One that was just
    /// accepted has its job in a moment, so a store that others write to is looked at twice.
    async fn enqueue_missing(
        &self,
        tag: &Tag,
        most: usize,
        enqueued: &mut usize,
    ) -> Result<usize, EngineError> {
        let runnable = self.store.runnable(tag, most).await?;
        // Those in hand are not counted: one that is lost must not hide behind them.
        let is_short = self.store.waiting(tag).await? < runnable.len() as u64;
        let lasts = self.shortage.lasts(tag, is_short);
        if !is_short || !(lasts || self.store.is_exclusive()) {
            return Ok(0);
        }
        let queued: HashSet<ExecutionId> = self.store.queued(tag).await?.into_iter().collect();
        let mut advanced = 0;
        for execution in runnable.into_iter().filter(|execution| !queued.contains(execution)) {
            let state = match self.state(&execution).await {
                Err(error) if error.is_hopeless() => continue,
                state => state?,
            };
            if state.needs_advance() {
                advanced += usize::from(self.ask_quietly(&execution, AdvanceExecution {}).await?);
            }
            let is_free = state.claim.is_none() && state.wants_worker();
            // Its worker may have died before anybody heard that it had one.
            if is_free || self.is_abandoned(&state).await? {
                self.enqueue(&state).await?;
                *enqueued += 1;
            } else {
                // It looks as if it wanted a job and wants none: whoever went on with it did not live to show its end, or what it
                // waits for.
                self.show_and_tell(&state).await?;
            }
        }
        Ok(advanced)
    }

    /// A worker that is gone leaves what it held to whoever gets its job next. If the job is gone too, a new one is made. In a store
    /// of one process jobs are not lost.
    pub async fn succeed_the_gone(&self, most: usize) -> Result<usize, EngineError> {
        if self.store.is_exclusive() {
            return Ok(0);
        }
        let (mut queued, mut enqueued) = (HashMap::new(), 0);
        for status in IN_HAND {
            let filter = Filter { statuses: vec![status], ..Filter::default() };
            for row in self.store.list(&filter, most).await?.rows {
                let Some(tag) = row.summary.tag else { continue };
                // Whoever is at work on it changes it now and then; only what is quiet is looked at.
                if row.updated_at.after(GONE_AFTER) >= self.clock.now() {
                    continue;
                }
                let state = match self.state(&row.execution).await {
                    Err(error) if error.is_hopeless() => continue,
                    state => state?,
                };
                if state.version > row.version {
                    // Whoever wrote the log did not live to show it.
                    self.show_and_tell(&state).await?;
                    continue;
                }
                let is_free = state.claim.is_none() && state.wants_worker();
                if !is_free && !self.is_abandoned(&state).await? {
                    continue;
                }
                if !queued.contains_key(&tag) {
                    let found: HashSet<ExecutionId> = self.store.queued(&tag).await?.into_iter().collect();
                    queued.insert(tag.clone(), found);
                }
                if queued.get(&tag).is_some_and(|queued| !queued.contains(&row.execution)) {
                    self.enqueue(&state).await?;
                    enqueued += 1;
                }
            }
        }
        Ok(enqueued)
    }

    /// Whoever was accepting an execution may have been lost behind its first record. Nobody was told of it, but it is there, so it is
    /// shown and run. Says how many were.
    pub async fn finish_the_begun(&self) -> Result<usize, EngineError> {
        let found = self.store.unshown().await?;
        // This process has refused those and takes them back, as soon as it can. Until then the next look finds them again.
        let (refused, begun): (Vec<_>, Vec<_>) =
            found.executions.into_iter().partition(|execution| self.refused.has(execution));
        for execution in &begun {
            match self.finish_one(execution).await {
                // The auditor names it.
                Err(error) if error.is_hopeless() => {}
                one => one?,
            }
        }
        if let Some(until) = found.until.filter(|_| refused.is_empty()) {
            self.store.shown_until(until).await?;
        }
        Ok(begun.len())
    }

    async fn finish_one(&self, execution: &ExecutionId) -> Result<(), EngineError> {
        let state = self.state(execution).await?;
        let is_taken_back = state.hidden || prune::creation(&state).is_none();
        if state.origin.is_none() {
            // It was removed in the meantime.
            Ok(())
        } else if state.phase.is_terminal() && is_taken_back {
            // Nobody is shown what was not accepted; whoever took it back was lost, too.
            Ok(self.store.forget(execution).await?)
        } else {
            Ok(self.derive_again(&state).await?)
        }
    }

    /// Takes everything out of the hands of workers, as after a restore: nobody whom a backup names is at work on what was made of it.
    /// Each has a job again at once, also if its job is not in the backup.
    pub async fn take_from_all(&self) -> Result<usize, EngineError> {
        let mut taken = 0;
        for status in IN_HAND {
            let mut filter = Filter { statuses: vec![status], ..Filter::default() };
            loop {
                let page = self.store.list(&filter, PAGE).await?;
                for row in &page.rows {
                    match self.take_from_owner(&row.execution).await {
                        Err(error) if error.is_hopeless() => {}
                        // Somebody was faster: then it is in good hands.
                        Err(EngineError::Rejected(_) | EngineError::Busy(_)) => {}
                        one => taken += usize::from(one?),
                    }
                }
                match page.next {
                    Some(next) => filter.cursor = Some(next),
                    None => break,
                }
            }
        }
        Ok(taken)
    }

    /// Whether it was in anybody's hand.
    async fn take_from_owner(&self, execution: &ExecutionId) -> Result<bool, EngineError> {
        let state = self.state(execution).await?;
        let Some(claim) = state.claim.as_ref().filter(|_| !state.phase.is_terminal()) else {
            return Ok(false);
        };
        if claim.is_foreign() {
            // One of ours takes it over with any job.
            self.enqueue(&state).await?;
            return Ok(true);
        }
        let owner = Issuer::Worker { id: claim.worker.clone(), epoch: claim.epoch };
        let request = Request::new(owner, self.clock.now(), ReleaseExecution { parked: false });
        self.command(execution, &request).await?;
        Ok(true)
    }

    /// Whether a worker of ours holds it that is not at work on it any more.
    async fn is_abandoned(&self, state: &State) -> Result<bool, EngineError> {
        let Some(claim) = state.claim.as_ref().filter(|claim| !claim.is_foreign()) else { return Ok(false) };
        let is_quiet = state.updated_at.is_none_or(|at| at.after(GONE_AFTER) < self.clock.now());
        Ok(is_quiet && !state.phase.is_terminal() && !self.is_at_work(&claim.worker, &state.id).await?)
    }

    /// Whether a worker was heard of late and says that it has this execution. Another process may have taken over its name.
    async fn is_at_work(&self, worker: &WorkerId, execution: &ExecutionId) -> Result<bool, EngineError> {
        let Some(record) = self.store.worker(worker).await? else { return Ok(false) };
        let body: Value = serde_json::from_slice(&record.body).unwrap_or_default();
        let says = |run: &Value| run.as_str() == Some(execution.as_str());
        let has_it = match body.get("current_run_ids").and_then(Value::as_array) {
            Some(runs) => runs.iter().any(says),
            None => body.get("current_run_id").is_some_and(says),
        };
        Ok(has_it && record.seen_at.after(GONE_AFTER) >= self.clock.now())
    }

    /// One too many is harmless: a live claim makes it superfluous.
    async fn enqueue(&self, state: &State) -> Result<(), EngineError> {
        let now = self.clock.now();
        pyoco_faults::at("sweep.before_publish", "enqueue")?;
        self.store.enqueue(projection::job(state, now), now).await?;
        Ok(pyoco_faults::at("sweep.after_publish", "enqueue")?)
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
