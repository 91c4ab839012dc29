//! A worker's record as it is shown: completed where an older worker left something out, and with the state that follows
//! from when it was last heard.

use pyoco_core::time::{Millis, Timestamp};
use pyoco_ports::WorkerRecord;
use serde_json::{Map, Value, json};

/// What a worker does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Running,
    Idle,
    StoppedGraceful,
    Disconnected,
}

impl State {
    /// The state of that name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let all = [Self::Running, Self::Idle, Self::StoppedGraceful, Self::Disconnected];
        all.into_iter().find(|state| state.as_str() == name)
    }

    /// The contract's name.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "RUNNING",
            Self::Idle => "IDLE",
            Self::StoppedGraceful => "STOPPED_GRACEFUL",
            Self::Disconnected => "DISCONNECTED",
        }
    }

    /// Whether it takes work.
    pub(crate) const fn is_alive(self) -> bool {
        match self {
            Self::Running | Self::Idle => true,
            Self::StoppedGraceful | Self::Disconnected => false,
        }
    }
}

/// A worker.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WorkerView {
    pub(crate) state: State,
    pub(crate) hidden: bool,
    pub(crate) last_seen_at: f64,
    pub(crate) heartbeat_at: Value,
    pub(crate) tags: Value,
    /// All of it; what we do not know passes through.
    pub(crate) members: Map<String, Value>,
}

/// Members that a record of an older worker may lack.
const NULL_BY_DEFAULT: [&str; 7] = [
    "current_run_id",
    "last_run_id",
    "last_run_status",
    "last_run_started_at",
    "last_run_finished_at",
    "stopped_at",
    "stop_reason",
];

impl WorkerView {
    /// Whether it is there and takes runs of that tag.
    pub(crate) fn takes(&self, tag: &str) -> bool {
        let tags = self.tags.as_array();
        self.state.is_alive() && tags.is_some_and(|tags| tags.iter().any(|known| known == tag))
    }

    /// A record at a moment; `None` if it cannot be read.
    pub(crate) fn of(record: &WorkerRecord, now: Timestamp, timeout: Millis) -> Option<Self> {
        let Ok(Value::Object(mut members)) = serde_json::from_slice(&record.body) else { return None };
        if !members.get("worker_id").is_some_and(Value::is_string) {
            members.insert("worker_id".to_owned(), json!(record.worker));
        }
        if !members.get("instance_id").is_some_and(Value::is_string) {
            let id = members.get("worker_id").cloned().unwrap_or_default();
            members.insert("instance_id".to_owned(), id);
        }
        let number = |members: &Map<String, Value>, name: &str| members.get(name).and_then(Value::as_f64);
        let first = |names: [&str; 2]| names.into_iter().find_map(|name| number(&members, name));
        let last_seen_at =
            first(["last_seen_at", "heartbeat_at"]).unwrap_or_else(|| record.seen_at.as_unix_seconds());
        let heartbeat_at = first(["last_heartbeat_at", "heartbeat_at"]).unwrap_or(last_seen_at);
        let stored = members.get("state").and_then(Value::as_str).and_then(State::named);
        let state = derived(stored.unwrap_or(State::Idle), last_seen_at, now, timeout);
        let tags = match members.get("tags") {
            Some(Value::Array(tags)) => Value::Array(tags.clone()),
            Some(_) | None => json!([]),
        };
        let updated_at = number(&members, "updated_at").unwrap_or(last_seen_at);
        for name in NULL_BY_DEFAULT {
            members.entry(name).or_insert(Value::Null);
        }
        if !members.get("wheel_sync").is_some_and(Value::is_object) {
            members.insert("wheel_sync".to_owned(), json!({}));
        }
        for (name, value) in [
            ("state", json!(state.as_str())),
            ("hidden", json!(record.hidden)),
            ("tags", tags.clone()),
            ("last_seen_at", json!(last_seen_at)),
            ("last_heartbeat_at", json!(heartbeat_at)),
            ("heartbeat_at", json!(heartbeat_at)),
            ("updated_at", json!(updated_at)),
        ] {
            members.insert(name.to_owned(), value);
        }
        let (hidden, heartbeat_at) = (record.hidden, json!(heartbeat_at));
        Some(Self { state, hidden, last_seen_at, heartbeat_at, tags, members })
    }
}

/// A worker that has not said that it stopped, and is not heard any more, is gone.
fn derived(stored: State, last_seen_at: f64, now: Timestamp, timeout: Millis) -> State {
    match stored {
        State::StoppedGraceful | State::Disconnected => stored,
        State::Running | State::Idle => {
            let silence = now.as_unix_seconds() - last_seen_at;
            if timeout.0 > 0 && silence > timeout.as_seconds() { State::Disconnected } else { stored }
        }
    }
}

#[cfg(test)]
mod tests {
    use pyoco_core::ids::WorkerId;

    use super::*;

    fn view(body: &Value, seconds_later: i64) -> Option<WorkerView> {
        let seen_at = Timestamp::from_micros(1_000_000_000);
        let body = serde_json::to_vec(body).unwrap();
        let record = WorkerRecord { worker: WorkerId::new("w").unwrap(), seen_at, hidden: true, body };
        let now = Timestamp::from_micros(1_000_000_000 + seconds_later * 1_000_000);
        WorkerView::of(&record, now, Millis(20_000))
    }

    #[test]
    fn a_record_of_the_first_version_is_completed() {
        let view = view(&json!({"heartbeat_at": 1000.0, "tags": "x", "new": 1}), 5).unwrap();
        assert_eq!((view.state, view.hidden), (State::Idle, true));
        for (name, wanted) in [
            ("worker_id", json!("w")),
            ("instance_id", json!("w")),
            ("state", json!("IDLE")),
            ("tags", json!([])),
            ("last_seen_at", json!(1000.0)),
            ("last_heartbeat_at", json!(1000.0)),
            ("stopped_at", Value::Null),
            ("wheel_sync", json!({})),
            ("new", json!(1)),
        ] {
            assert_eq!(view.members.get(name), Some(&wanted), "{name}");
        }
    }

    #[test]
    fn silence_disconnects_but_a_graceful_stop_stays_one() {
        let running = json!({"state": "RUNNING", "last_seen_at": 1000.0});
        assert_eq!(view(&running, 20).unwrap().state, State::Running);
        assert_eq!(view(&running, 21).unwrap().state, State::Disconnected);
        let stopped = json!({"state": "STOPPED_GRACEFUL", "last_seen_at": 1000.0});
        assert_eq!(view(&stopped, 9_999).unwrap().state, State::StoppedGraceful);
        assert_eq!(view(&json!({"state": "NEW", "last_seen_at": 1000.0}), 1).unwrap().state, State::Idle);
    }

    #[test]
    fn what_is_no_record_is_not_shown() {
        assert_eq!(view(&json!([]), 1), None);
        assert_eq!(view(&json!("x"), 1), None);
    }
}
