//! What is known of a run that ended: the state, and what no state holds (calls, logs, order).

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use indexmap::IndexMap;
use pyoco_core::state::{AttemptEnd, Root, State};
use pyoco_core::view::RunSnapshot;
use serde_json::{Map, Value, json};

use crate::folder::Folder;

/// Something that happened to a task, in the order in which it was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Its first attempt started.
    Start,
    /// It succeeded.
    End,
    /// It failed for good.
    Error,
}

impl Moment {
    /// The name that vectors use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::End => "end",
            Self::Error => "error",
        }
    }
}

/// A run that ended.
#[derive(Debug)]
pub struct Run {
    /// The final state.
    pub state: State,
    /// Every call of a task function, in order.
    pub calls: Vec<String>,
    /// What tasks printed, as stream and text.
    pub logs: IndexMap<String, Vec<(String, String)>>,
    /// What happened to the tasks, in order.
    pub moments: Vec<(String, Moment)>,
    /// How long it took, in seconds.
    pub elapsed: f64,
    pub(crate) folder: Arc<Folder>,
}

impl Run {
    /// Everything that vectors say about a run, under the names that they use.
    pub fn observed(&self) -> Map<String, Value> {
        let snapshot = RunSnapshot::of(&self.state, None);
        let context = &self.state.context;
        let mut counts: HashMap<&str, u64> = HashMap::new();
        for call in &self.calls {
            *counts.entry(call).or_default() += 1;
        }
        let mut records = Map::new();
        let mut outputs = Map::new();
        for (task, record) in &snapshot.task_records {
            if record.state == "SUCCEEDED" {
                outputs.insert(task.clone(), record.output.clone());
            }
            let shown = json!({
                "state": record.state,
                "error": record.error,
                "has_traceback": record.traceback.is_some(),
                "inputs": record.inputs,
                "output": record.output,
                "has_started": record.started_at.is_some(),
                "has_ended": record.ended_at.is_some(),
                "has_duration": record.duration_ms.is_some(),
                "artifacts": record.artifacts,
            });
            records.insert(task.clone(), shown);
        }
        let observed = [
            ("run_status", json!(snapshot.status)),
            ("error", json!(snapshot.error)),
            ("tasks", json!(snapshot.tasks)),
            ("results", context.root(Root::Results).clone()),
            ("outputs", Value::Object(outputs)),
            ("scratch", context.root(Root::Scratch).clone()),
            ("params_after", context.root(Root::Params).clone()),
            ("snapshot_params_after", snapshot.params),
            ("call_counts", json!(counts)),
            ("calls", json!(self.calls)),
            ("records", Value::Object(records)),
            ("logs", json!(self.logs)),
            ("peak", json!(self.peak())),
        ];
        observed.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }

    /// Most attempts at the same time, by the time stamps of their records.
    pub fn peak(&self) -> usize {
        let mut changes = Vec::new();
        for attempt in self.state.tasks.iter().flat_map(|task| &task.attempts) {
            let ended_at = match &attempt.end {
                Some(AttemptEnd::Succeeded(at) | AttemptEnd::Failed(at, _)) => Some(*at),
                Some(AttemptEnd::Lost(at) | AttemptEnd::Canceled(at)) => Some(*at),
                None => None,
            };
            changes.push((attempt.started_at, true));
            changes.extend(ended_at.map(|at| (at, false)));
        }
        // At the same instant an end comes before a start.
        changes.sort_unstable();
        let (mut running, mut peak) = (0_usize, 0_usize);
        for (_, starts) in changes {
            running = if starts { running + 1 } else { running.saturating_sub(1) };
            peak = peak.max(running);
        }
        peak
    }

    /// How long the last execution of a task took, in milliseconds.
    pub fn duration_ms(&self, task: &str) -> Option<f64> {
        RunSnapshot::of(&self.state, None).task_records.get(task)?.duration_ms
    }

    /// Where something happened: of `end` the last occurrence counts, of anything else the first.
    pub fn position(&self, event: &str) -> Option<usize> {
        let (task, moment) = event.rsplit_once('.')?;
        let is_it = |(who, what): &(String, Moment)| who == task && what.name() == moment;
        if moment == "end" {
            self.moments.iter().rposition(is_it)
        } else {
            self.moments.iter().position(is_it)
        }
    }

    /// A saved artifact: its type, its path below the folder of the run, and its bytes.
    pub fn artifact(&self, name: &str) -> Option<(String, PathBuf, Vec<u8>)> {
        let entry = self.state.context.root(Root::Artifacts).get(name)?;
        let path = Path::new(entry["path"].as_str()?);
        let below = path.strip_prefix(self.folder.path()).ok()?.to_owned();
        Some((entry["type"].as_str()?.to_owned(), below, fs::read(path).ok()?))
    }
}
