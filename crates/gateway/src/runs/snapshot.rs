//! A run as it is shown: from the log, bounded in size, with what the registry knows of its worker.

use pyoco_core::ids::ExecutionId;
use pyoco_core::state::State;
use pyoco_core::view::RunSnapshot;
use serde_json::{Map, Value, json};

use crate::caller::Caller;
use crate::error::Refusal;
use crate::query::Query;
use crate::workers::{self, WorkerView};
use crate::{App, Shared};

/// A run at a moment.
pub(crate) struct Shown {
    pub(crate) snapshot: RunSnapshot,
    /// The number of the last event that it shows.
    pub(crate) event: u64,
    /// A worker holds it.
    pub(crate) is_claimed: bool,
}

impl Shown {
    pub(crate) fn of(state: &State) -> Self {
        Self {
            snapshot: RunSnapshot::of(state, None),
            event: state.events.0,
            is_claimed: state.claim.is_some(),
        }
    }

    /// Its JSON form. Task records only when they are wanted, and only when they fit.
    pub(crate) fn members(mut self, with_records: bool, max_bytes: usize) -> Map<String, Value> {
        if with_records {
            cut(&mut self.snapshot, max_bytes);
        } else {
            self.snapshot.task_records.clear();
        }
        // Snapshots hold strings, numbers and lists only, so they always have a JSON form.
        let mut members = match serde_json::to_value(&self.snapshot) {
            Ok(Value::Object(members)) => members,
            Ok(_) | Err(_) => Map::new(),
        };
        if !with_records {
            members.shift_remove("task_records");
        }
        members
    }
}

/// Leaves the task records out when the snapshot would be too long; the states of the tasks stay.
pub(crate) fn cut(snapshot: &mut RunSnapshot, max_bytes: usize) {
    if pyoco_core::json::Weight::of(snapshot).bytes > max_bytes {
        snapshot.task_records.clear();
        snapshot.task_records_truncated = true;
    }
}

/// Whether a query asks for task records.
pub(crate) fn wants_records(query: &Query) -> bool {
    query.includes(&["records", "task_records", "full", "all"])
}

impl Shared {
    /// A run that the caller may see.
    pub(crate) async fn shown(&self, caller: &Caller, run: &ExecutionId) -> Result<Shown, Refusal> {
        let seen = self.engine.look(run, |state| {
            let tenant = state.origin.as_ref().and_then(|origin| origin.tenant.as_ref());
            caller.may_see(tenant).then(|| Shown::of(state))
        });
        seen.await?.flatten().ok_or_else(|| Refusal::run_not_found(run.as_str()))
    }
}

/// Adds what the registry says about the worker of a run. The registry is advisory: when it cannot be asked, nothing is said.
pub(crate) async fn with_worker(app: &App, shown: &mut Shown) -> Map<String, Value> {
    let mut about = Map::new();
    let Some(worker) = shown.snapshot.worker_id.clone() else { return about };
    let record = match app.engine.store().worker(&worker).await {
        Ok(record) => record,
        Err(error) => {
            tracing::warn!(worker_id = %worker, reason = %error, "the registry of workers cannot be asked");
            return about;
        }
    };
    if let Some(record) = record.as_ref().filter(|_| shown.is_claimed) {
        let seen_at = record.seen_at.as_unix_seconds();
        shown.snapshot.heartbeat_at = shown.snapshot.heartbeat_at.map(|known| known.max(seen_at));
    }
    let timeout = app.settings.worker_disconnect_timeout;
    let view = record.and_then(|record| WorkerView::of(&record, app.clock.now(), timeout));
    let mut say = |name: &str, value: Value| about.insert(name.to_owned(), value);
    match view {
        Some(view) => {
            say("worker_alive", json!(view.state.is_alive()));
            say("worker_state", json!(view.state.as_str()));
            say("worker_heartbeat_at", json!(view.heartbeat_at));
            say("worker_hidden", json!(view.hidden));
            say("worker_tags", json!(view.tags));
        }
        None => {
            say("worker_alive", json!(false));
            say("worker_state", json!(workers::State::Disconnected.as_str()));
            say("worker_heartbeat_at", Value::Null);
        }
    }
    about
}
