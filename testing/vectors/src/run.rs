//! What is known of a run that ended: how HTTP shows it, the state, and what its log and its tasks' lines say.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use pyoco_core::event::{Event, EventEnvelope};
use pyoco_core::ids::{Attempt, NodeId};
use pyoco_core::state::{AttemptEnd, Root, State};
use pyoco_ports::{LogLine, LogStream};
use serde_json::{Map, Value, json};

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
    /// The run as HTTP shows it, with the records of its tasks.
    pub snapshot: Value,
    /// The final state: what HTTP does not show.
    pub state: State,
    /// Every attempt that came to the call of its function, by its task, in the order of the log.
    pub calls: Vec<String>,
    /// Every call of a function that its module said, by the function.
    pub heard: Vec<String>,
    /// What tasks wrote in each attempt, as stream and text.
    pub logs: IndexMap<String, Vec<(String, String)>>,
    /// What happened to the tasks, in order.
    pub moments: Vec<(String, Moment)>,
    /// What tasks saved, by name.
    pub artifacts: IndexMap<String, Artifact>,
}

/// A file that a task saved.
#[derive(Debug)]
pub struct Artifact {
    /// What kind of value it was.
    pub kind: String,
    /// Where it stands, as the original would have named it.
    pub path: PathBuf,
    /// What is in it.
    pub bytes: Vec<u8>,
}

impl Run {
    /// A run of which nothing else was read yet.
    pub(crate) fn new(snapshot: Value, state: State) -> Self {
        let (calls, heard, moments) = (Vec::new(), Vec::new(), Vec::new());
        Self { snapshot, state, calls, heard, logs: IndexMap::new(), moments, artifacts: IndexMap::new() }
    }

    fn task(&self, node: &NodeId) -> Option<String> {
        let node = self.state.nodes.get(node)?;
        self.state.task_of(node).map(|task| task.name.clone())
    }

    /// What happened, from the log.
    pub(crate) fn read_events(&mut self, events: &[EventEnvelope]) {
        // A call stands where its attempt started; an attempt that failed before it had its arguments made none.
        let mut calls: Vec<Option<String>> = Vec::new();
        let mut last: HashMap<&NodeId, usize> = HashMap::new();
        for envelope in events {
            let Some(node) = envelope.event.node_id() else { continue };
            let Some(task) = self.task(node) else { continue };
            let moment = if let Event::NodeStarted(started) = &envelope.event {
                last.insert(node, calls.len());
                calls.push(Some(task.clone()));
                (started.attempt == Attempt(1)).then_some(Moment::Start)
            } else if let Event::NodeSucceeded(_) = &envelope.event {
                Some(Moment::End)
            } else if let Event::NodeFailed(failed) = &envelope.event {
                (!failed.inherited).then_some(Moment::Error)
            } else if let Event::NodeFailReported(failed) = &envelope.event {
                let timed_out =
                    failed.error.as_ref().and_then(|error| error.code.as_deref()) == Some("TIMEOUT");
                if failed.inputs.is_none() && !timed_out {
                    let call = last.get(node).and_then(|at| calls.get_mut(*at));
                    call.into_iter().for_each(|call| *call = None);
                }
                None
            } else {
                None
            };
            self.moments.extend(moment.map(|moment| (task, moment)));
        }
        self.calls = calls.into_iter().flatten().collect();
    }

    /// What was written: one entry for each stream of an attempt, as the original keeps it, its standard output first.
    pub(crate) fn read_lines(&mut self, lines: &[LogLine]) {
        let mut attempts: IndexMap<(&NodeId, Attempt), [String; 2]> = IndexMap::new();
        for line in lines {
            let Some(node) = &line.node else { continue };
            let which = match line.stream {
                LogStream::Stdout => 0,
                LogStream::Stderr => 1,
                LogStream::Engine => continue,
            };
            let text = &mut attempts.entry((node, line.attempt)).or_default()[which];
            text.push_str(&line.text);
            text.push('\n');
        }
        for ((node, _), [out, err]) in attempts {
            let Some(task) = self.task(node) else { continue };
            let streams = [("stdout", out), ("stderr", err)].into_iter().filter(|(_, text)| !text.is_empty());
            let entries = streams.map(|(stream, text)| (stream.to_owned(), text));
            self.logs.entry(task).or_default().extend(entries);
        }
    }

    /// What was saved in the folder of the run. Decision 10: the folder `artifacts` of the original is here one for each
    /// run. A file that is not there, or elsewhere, is not read.
    pub(crate) fn read_artifacts(&mut self, folder: &Path) {
        let saved = self.state.context.root(Root::Artifacts).as_object();
        let read = |(name, entry): (&String, &Value)| {
            let file = Path::new(entry["path"].as_str()?);
            let path = Path::new("artifacts").join(file.strip_prefix(folder).ok()?);
            let (kind, bytes) = (entry["type"].as_str()?.to_owned(), fs::read(file).ok()?);
            Some((name.clone(), Artifact { kind, path, bytes }))
        };
        self.artifacts = saved.into_iter().flatten().filter_map(read).collect();
    }

    /// Everything that vectors say about a run, under the names that they use.
    pub fn observed(&self) -> Map<String, Value> {
        let (snapshot, context) = (&self.snapshot, &self.state.context);
        let mut counts: HashMap<&str, u64> = HashMap::new();
        for call in &self.calls {
            *counts.entry(call).or_default() += 1;
        }
        let mut records = Map::new();
        let mut outputs = Map::new();
        for (task, record) in snapshot["task_records"].as_object().into_iter().flatten() {
            if record["state"] == "SUCCEEDED" {
                outputs.insert(task.clone(), record["output"].clone());
            }
            let shown = json!({
                "state": record["state"],
                "error": record["error"],
                "has_traceback": !record["traceback"].is_null(),
                "inputs": record["inputs"],
                "output": record["output"],
                "has_started": !record["started_at"].is_null(),
                "has_ended": !record["ended_at"].is_null(),
                "has_duration": !record["duration_ms"].is_null(),
                "artifacts": record["artifacts"],
            });
            records.insert(task.clone(), shown);
        }
        let observed = [
            ("run_status", snapshot["status"].clone()),
            ("error", snapshot["error"].clone()),
            ("tasks", snapshot["tasks"].clone()),
            ("results", context.root(Root::Results).clone()),
            ("outputs", Value::Object(outputs)),
            ("scratch", context.root(Root::Scratch).clone()),
            ("params_after", context.root(Root::Params).clone()),
            ("snapshot_params_after", snapshot["params"].clone()),
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
        self.snapshot["task_records"][task]["duration_ms"].as_f64()
    }

    /// How long it took, in seconds.
    pub fn elapsed(&self) -> Option<f64> {
        Some(self.snapshot["end_time"].as_f64()? - self.snapshot["start_time"].as_f64()?)
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
}
