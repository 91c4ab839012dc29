//! What a worker says about itself: a record in the registry, written when something changes and every few seconds.
//!
//! Advisory only: lists and people read it. Who holds an execution is said by the claim in its log.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indexmap::IndexSet;
use pyoco_core::ids::ExecutionId;
use pyoco_core::time::Timestamp;
use pyoco_core::view::RunStatus;
use pyoco_ports::WorkerRecord;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::wheels::disabled;
use crate::worker::Shared;
use pyoco_core::notice::Notice;

/// Changes within this time share a record: a busy worker ends thousands of runs a second.
const TOGETHER: Duration = Duration::from_millis(250);

/// What a worker remembers for its record.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    facts: Mutex<Facts>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Facts {
    running: IndexSet<ExecutionId>,
    last: Option<Last>,
    started_at: Option<Timestamp>,
    stopped_at: Option<Timestamp>,
}

#[derive(Debug)]
struct Last {
    run: ExecutionId,
    status: Option<RunStatus>,
    finished_at: Timestamp,
}

impl Registry {
    fn facts(&self) -> MutexGuard<'_, Facts> {
        // Each change is one step; a panic leaves nothing half done.
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A run begins here.
    pub(crate) fn started(&self, run: &ExecutionId, now: Timestamp) {
        let mut facts = self.facts();
        facts.running.insert(run.clone());
        facts.started_at = Some(now);
        drop(facts);
        self.changed.notify_one();
    }

    /// A run is no longer here; `status` is how it ended, if it did.
    pub(crate) fn finished(&self, run: &ExecutionId, status: Option<RunStatus>, now: Timestamp) {
        let mut facts = self.facts();
        facts.running.shift_remove(run);
        facts.last = Some(Last { run: run.clone(), status, finished_at: now });
        drop(facts);
        self.changed.notify_one();
    }

    /// Something else of the record has changed.
    pub(crate) fn has_news(&self) {
        self.changed.notify_one();
    }

    fn is_busy(&self) -> bool {
        !self.facts().running.is_empty()
    }

    /// The worker has stopped in good order.
    pub(crate) fn stopped(&self, now: Timestamp) {
        self.facts().stopped_at = Some(now);
    }

    /// The record in the contract's form.
    fn body(&self, shared: &Shared, now: Timestamp) -> Value {
        let facts = self.facts();
        let unix = |at: Option<Timestamp>| at.map(Timestamp::as_unix_seconds);
        let state = match facts.stopped_at {
            Some(_) => "STOPPED_GRACEFUL",
            None if facts.running.is_empty() => "IDLE",
            None => "RUNNING",
        };
        let last = facts.last.as_ref();
        let seen = now.as_unix_seconds();
        json!({
            "worker_id": shared.options.worker,
            "instance_id": shared.options.instance,
            "state": state,
            "hidden": false,
            "tags": shared.options.tags,
            "last_seen_at": seen,
            "last_heartbeat_at": seen,
            "heartbeat_at": seen,
            "current_run_id": facts.running.last(),
            "current_run_ids": facts.running,
            "last_run_id": last.map(|last| last.run.clone()),
            "last_run_status": last.and_then(|last| last.status),
            "last_run_started_at": unix(facts.started_at),
            "last_run_finished_at": unix(last.map(|last| last.finished_at)),
            "stopped_at": unix(facts.stopped_at),
            "stop_reason": facts.stopped_at.map(|_| "graceful_shutdown"),
            "updated_at": seen,
            "concurrency": shared.options.concurrency,
            "wheel_sync": shared.wheels.as_ref().map_or_else(disabled, |wheels| wheels.shown()),
        })
    }
}

impl Shared {
    /// Writes the record now.
    pub(crate) async fn report(&self) {
        let now = self.now();
        let body = serde_json::to_vec(&self.registry.body(self, now)).unwrap_or_default();
        let worker = self.options.worker.clone();
        let record = WorkerRecord { worker, seen_at: now, hidden: false, body };
        if let Err(error) = self.engine.store().report(record).await {
            notice!(warn, Notice::StoreUnavailable, worker_id = %self.options.worker, reason = %error);
        }
    }

    /// Keeps the record fresh until it is dropped.
    pub(crate) async fn keep_reporting(&self) {
        loop {
            self.report().await;
            // A run is as alive as its worker was last heard, so a busy one speaks more often.
            let pause = match self.registry.is_busy() {
                true => self.options.heartbeat_every.min(self.options.run_heartbeat_every),
                false => self.options.heartbeat_every,
            };
            tokio::select! {
                biased;
                () = tokio::time::sleep(pause) => {}
                () = self.registry.changed.notified() => tokio::time::sleep(TOGETHER).await,
            }
        }
    }
}
