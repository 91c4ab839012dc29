//! A run as it is shown: from the log, bounded in size, with what the registry knows of its worker.

use pyoco_api::NoWorker;
use pyoco_core::digest::Digest;
use pyoco_core::ids::{ExecutionId, Version};
use pyoco_core::notice::Notice;
use pyoco_core::state::State;
use pyoco_core::view::{RunSnapshot, RunStatus};
use pyoco_engine::may_be_foreign;
use serde::Serialize;
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
    /// The last record that it shows, and its fingerprint.
    pub(crate) version: Version,
    pub(crate) hash: Digest,
    /// A worker holds it.
    pub(crate) is_claimed: bool,
    /// What another implementation says about it, if that is who runs it.
    foreign: Option<Map<String, Value>>,
    /// Whether somebody else may say more about it than the log does.
    pub(crate) may_be_foreign: bool,
    /// The records of its tasks are asked for.
    with_records: bool,
}

/// The JSON form of a run.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Form {
    /// As the log has it.
    Ours(Box<RunSnapshot>),
    /// With what another implementation says about it.
    Mixed(Map<String, Value>),
}

/// What only the one who runs it, or who has accepted it, knows for sure: its snapshot may say that it has failed before it says
/// why, and tells of a flow whose text the log has never seen.
const FOREIGN: [&str; 12] = [
    "tasks",
    "task_records",
    "task_records_truncated",
    "start_time",
    "end_time",
    "heartbeat_at",
    "worker_id",
    "error",
    "cancel_requested_at",
    "cancel_requested_by",
    "workflow_yaml_sha256",
    "workflow_yaml_bytes",
];

impl Shown {
    /// The records of tasks are made only when they are wanted: there may be very many.
    pub(crate) fn of(state: &State, with_records: bool) -> Self {
        let snapshot = match with_records {
            true => RunSnapshot::of(state, None),
            false => RunSnapshot::without_records(state, None),
        };
        Self {
            snapshot,
            event: state.events.0,
            version: state.version,
            hash: state.last_hash,
            is_claimed: state.claim.is_some(),
            foreign: None,
            may_be_foreign: may_be_foreign(state),
            with_records,
        }
    }

    /// Its JSON form. Task records only when they are wanted, and only when they fit.
    pub(crate) fn form(mut self, room: &mut Room) -> Form {
        if self.with_records {
            room.fit(&mut self.snapshot);
        }
        match self.foreign {
            None => Form::Ours(Box::new(self.snapshot)),
            Some(foreign) => {
                let mut members = Form::Ours(Box::new(self.snapshot)).into_members();
                say_foreign(&mut members, foreign);
                if !self.with_records {
                    members.shift_remove("task_records");
                    members.shift_remove("task_records_truncated");
                }
                Form::Mixed(members)
            }
        }
    }
}

impl Form {
    /// For those who do not show all of it.
    pub(crate) fn into_members(self) -> Map<String, Value> {
        // Snapshots hold strings, numbers and lists only, so they always have a JSON form.
        match serde_json::to_value(self) {
            Ok(Value::Object(members)) => members,
            Ok(_) | Err(_) => Map::new(),
        }
    }
}

/// Writes what another implementation says over what the log says.
fn say_foreign(members: &mut Map<String, Value>, mut foreign: Map<String, Value>) {
    for name in FOREIGN {
        match foreign.shift_remove(name) {
            Some(value) if !value.is_null() => drop(members.insert(name.to_owned(), value)),
            // Its name is said once at the beginning, if at all.
            Some(_) | None if name == "worker_id" => drop(members.shift_remove(name)),
            Some(_) | None => {}
        }
    }
    // A run without a log has changed when its snapshot says so.
    if let Some(changed_at) = members.get_mut("updated_at").filter(|known| known.is_null()) {
        *changed_at = foreign.shift_remove("updated_at").unwrap_or_default();
    }
}

/// How long the snapshots of one answer may be. The operator hears of the first one that is longer, not of each event of a
/// watch.
pub(crate) struct Room {
    max_bytes: usize,
    is_told: bool,
}

impl Room {
    pub(crate) fn new(app: &Shared) -> Self {
        Self { max_bytes: app.settings.max_run_snapshot_bytes, is_told: false }
    }

    /// Leaves the task records out when the snapshot would be too long; the states of the tasks stay.
    pub(crate) fn fit(&mut self, snapshot: &mut RunSnapshot) {
        let bytes = pyoco_core::json::Weight::of(snapshot).bytes;
        if bytes <= self.max_bytes {
            return;
        }
        snapshot.cut();
        if !std::mem::replace(&mut self.is_told, true) {
            let notice = Notice::SnapshotTooLarge;
            tracing::warn!(
                err_id = notice.err_id(),
                msg_id = notice.msg_id(),
                run_id = snapshot.run_id,
                flow_name = snapshot.flow_name,
                bytes,
                max_bytes = self.max_bytes,
                "{}",
                notice.text()
            );
        }
    }
}

/// Whether a query asks for task records.
pub(crate) fn wants_records(query: &Query) -> bool {
    query.includes(&["records", "task_records", "full", "all"])
}

impl Shared {
    /// What the caller wants of a run that they may see.
    pub(crate) async fn run_seen<T: Send>(
        &self,
        caller: &Caller,
        run: &ExecutionId,
        view: impl FnOnce(&State) -> T + Send,
    ) -> Result<T, Refusal> {
        let seen = self.engine.look(run, |state| {
            let tenant = state.origin.as_ref().and_then(|origin| origin.tenant.as_ref());
            caller.may_see(tenant).then(|| view(state))
        });
        seen.await?.flatten().ok_or_else(|| Refusal::run_not_found(run.as_str()))
    }

    /// A run that the caller may see.
    pub(crate) async fn shown(
        &self,
        caller: &Caller,
        run: &ExecutionId,
        with_records: bool,
    ) -> Result<Shown, Refusal> {
        let shown = self.run_seen(caller, run, |state| Shown::of(state, with_records)).await?;
        self.with_foreign(run, shown).await
    }

    /// Adds what another implementation says about a run that it has.
    pub(crate) async fn with_foreign(&self, run: &ExecutionId, mut shown: Shown) -> Result<Shown, Refusal> {
        if shown.may_be_foreign
            && self.engine.store().wants_snapshots()
            && let Some(Value::Object(members)) = self.engine.foreign_snapshot(run).await?
        {
            shown.foreign = Some(members);
        }
        Ok(shown)
    }
}

/// Says of a run that nobody has taken when nobody is there who would. The registry is advisory: when it cannot be asked,
/// nothing is said.
pub(crate) async fn with_lack_of_worker(app: &Shared, shown: &mut Shown) {
    let snapshot = &mut shown.snapshot;
    let Some(tag) = snapshot.tag.as_ref().filter(|_| snapshot.status == RunStatus::Pending) else { return };
    let workers = match app.worker_views().await {
        Ok(workers) => workers,
        Err(error) => {
            tracing::warn!(run_id = snapshot.run_id, reason = %error, "the registry of workers cannot be asked");
            return;
        }
    };
    if !workers.iter().any(|worker| worker.takes(tag.as_str())) {
        snapshot.waiting.push(json!(NoWorker::of(tag.as_str())));
    }
}

/// Adds what the registry says about the worker of a run. The registry is advisory: when it cannot be asked, nothing is said.
pub(crate) async fn with_worker(app: &App, shown: &mut Shown) -> Map<String, Value> {
    let mut about = Map::new();
    let says_who = |foreign: &Map<String, Value>| foreign.get("worker_id").is_some_and(Value::is_string);
    if shown.foreign.as_ref().is_some_and(|foreign| !says_who(foreign)) {
        return about;
    }
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
