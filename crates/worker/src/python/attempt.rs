//! One attempt of a Python task: a process is taken, asked, listened to, and given back or ended.

use std::process::ExitStatus;
use std::time::Duration;

use bytes::Bytes;
use pyoco_core::event::ErrorInfo;
use pyoco_core::plan::{Input, Runner};
use pyoco_core::state::Root;
use pyoco_ports::LogStream;
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::answer::{Done, Need, Said, read};
use super::host::{Host, Line, Place};
use super::pool::Lease;
use super::values::{Parcel, outputs_inside};
use super::{OF_FLOW, OF_PLUGIN, PythonRuntime, wire};
use crate::process::{Group, Scribe, TaskLines, how_it_ended};
use crate::runtime::{Call, End, Stop, Urgency};

/// A process that serves old code is replaced; a file that changes faster than that is served as it is found.
const RELOADS: u32 = 5;
/// A process that closed its line has so long to say how it ended.
const LAST_BREATH: Duration = Duration::from_secs(1);

/// The request for one attempt.
#[derive(Serialize)]
struct Exec<'a> {
    op: &'static str,
    run: &'a str,
    runner: Target<'a>,
    inputs: &'a indexmap::IndexMap<String, Input>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    outputs: Vec<&'a str>,
    /// Names whose values are sent, so a missing one is known to be missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    known: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    loops: Vec<&'a Map<String, Value>>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    vars: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
    #[serde(flatten)]
    values: Parcel<'a>,
}

/// Which function.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Target<'a> {
    Callable(&'a str),
    Flow(&'a str, &'a str),
    Plugin(&'a str),
}

impl<'a> Target<'a> {
    fn of(call: &'a Call) -> Option<Self> {
        match &call.task.runner {
            Runner::Callable(address) => Some(Self::Callable(address)),
            Runner::Registered(name) => match name.strip_prefix(OF_FLOW) {
                Some(task) => Some(Self::Flow(&call.plan.flow, task)),
                None => name.strip_prefix(OF_PLUGIN).map(Self::Plugin),
            },
            Runner::Command(_) | Runner::Wait { .. } | Runner::External => None,
        }
    }
}

/// What came of asking a process.
pub(super) enum Heard {
    /// An answer, with its raw bytes.
    Answer(Said, Bytes),
    /// It is gone; what is known of its end.
    Gone(Option<ExitStatus>),
    /// Something else is wrong with it.
    Broken(String),
}

impl PythonRuntime {
    /// Runs one attempt. Dropping the future ends the process and everything it started.
    pub async fn run(&self, call: &Call, stop: Stop) -> End {
        let Some(target) = Target::of(call) else {
            return End::error(&format!("task '{}' is no Python task of this worker", call.task.name));
        };
        let place = self.place(&call.plan.flow, call.wheels.as_deref(), call.plan.expose_env.as_deref());
        let known = self.signature(&place, &call.task.runner);
        let mut values = Parcel::default();
        values.add_inputs(call);
        if let Some(names) = &known {
            values.add_names(&call.context, names);
        }
        let raw = match values.load(&*self.blobs).await {
            Ok(raw) => raw,
            Err(message) => return failed("VALUE_LOST", message),
        };
        let frames = &call.loops;
        let exec = Exec {
            op: "exec",
            run: call.execution.as_str(),
            runner: target,
            inputs: &call.task.inputs,
            outputs: outputs_inside(call),
            known: known.as_ref().map(|names| names.as_slice()),
            loops: frames.iter().map(|frame| &frame.members).collect(),
            vars: frames.iter().flat_map(|frame| frame.variables.iter().cloned()).collect(),
            traceparent: call.trace.map(|trace| trace.to_string()),
            values,
        };
        let request = match wire::encode(&exec, &raw) {
            Ok(request) => request,
            Err(error) => return failed("VALUE_TOO_LARGE", error.to_string()),
        };
        drop(raw);
        self.ask_until_fresh(call, &place, &request, stop).await
    }

    async fn ask_until_fresh(&self, call: &Call, place: &Place, request: &[u8], mut stop: Stop) -> End {
        let lines = TaskLines {
            logs: self.logs.clone(),
            clock: self.clock.clone(),
            task: call.task.name.clone(),
            attempt: Some((call.execution.clone(), call.node.clone(), call.attempt)),
        };
        for _ in 0..RELOADS {
            let taken = tokio::select! {
                biased;
                taken = self.pool.take(place) => taken,
                () = stop.requested() => return End::Stopped,
            };
            let mut lease = match taken {
                Ok(lease) => lease,
                Err(message) => return failed("PYTHON_NOT_STARTED", message),
            };
            let mut stopping = Stopping::by(stop.clone());
            let (heard, last_words) =
                self.converse(&mut lease, Some(call), &lines, request, &mut stopping).await;
            match heard {
                // The file has changed since: another process reads it again.
                Heard::Answer(Said::Stale { path }, _) => {
                    tracing::debug!(path, "a module has changed, its task process is replaced");
                    drop(lease);
                }
                Heard::Answer(Said::Done(done), _) if stopping.was_told && done.stopped => {
                    return End::Stopped;
                }
                Heard::Answer(Said::Done(mut done), raw) => {
                    if let Some(names) = done.names.take() {
                        self.remember(place, &call.task.runner, names);
                    }
                    self.dismiss(lease, &stopping, &done);
                    return done.end(&raw, &call.execution, &*self.blobs).await;
                }
                Heard::Answer(Said::Need(_) | Said::Loaded(_) | Said::Flow(_), _) => {
                    return failed("HOST_BROKEN", "the task process answered another question");
                }
                Heard::Gone(_) if stopping.was_told => return End::Stopped,
                Heard::Gone(status) => return crashed(status, &last_words),
                Heard::Broken(message) => return failed("HOST_BROKEN", message),
            }
        }
        failed("STALE_MODULES", "the modules of the task change faster than they can be imported")
    }

    /// Gives the process back, or ends it: one that was asked to stop, or that a task left something in, is not used
    /// again.
    fn dismiss(&self, lease: Lease, stopping: &Stopping, done: &Done) {
        if stopping.was_asked || done.retire {
            drop(lease);
        } else {
            lease.give_back();
        }
    }

    /// Sends a request and listens until it is answered, while every line that is written is stored.
    pub(super) async fn converse(
        &self,
        lease: &mut Lease,
        call: Option<&Call>,
        lines: &TaskLines,
        request: &[u8],
        stopping: &mut Stopping,
    ) -> (Heard, String) {
        let Host { group, line, stdout, stderr } = &mut lease.host;
        let (mut out, mut err) =
            (Scribe::new(lines, LogStream::Stdout), Scribe::new(lines, LogStream::Stderr));
        let done = CancellationToken::new();
        let talk = async {
            let heard = self.talk(group, line, call, request, stopping).await;
            done.cancel();
            heard
        };
        let (heard, (), ()) = tokio::join!(talk, stdout.pump(&mut out, &done), stderr.pump(&mut err, &done));
        (heard, err.last_lines())
    }

    async fn talk(
        &self,
        group: &mut Group,
        line: &mut Line,
        call: Option<&Call>,
        request: &[u8],
        stopping: &mut Stopping,
    ) -> Heard {
        // A process that is gone says so when we listen.
        let _ = line.send(request).await;
        let mut ending = stopping.stop.clone();
        loop {
            let frame = tokio::select! {
                biased;
                frame = line.receive() => frame,
                // Its children may hold the line open although it is gone.
                status = group.ended() => match tokio::time::timeout(LAST_BREATH, line.receive()).await {
                    Ok(Ok(Some(frame))) => Ok(Some(frame)),
                    Ok(Ok(None) | Err(_)) | Err(_) => return Heard::Gone(status),
                },
                () = stopping.stop.requested(), if !stopping.was_asked => {
                    stopping.was_asked = true;
                    line.cancel();
                    continue;
                }
                () = ending.ending(), if stopping.was_asked && !stopping.was_told => {
                    stopping.was_told = true;
                    Host::terminate(group, line);
                    continue;
                }
            };
            let frame = match frame {
                Ok(Some(frame)) => frame,
                Ok(None) | Err(_) => {
                    let status = tokio::time::timeout(LAST_BREATH, group.ended()).await;
                    return status.map_or_else(
                        |_| Heard::Broken("the task process closed its connection to the worker".to_owned()),
                        Heard::Gone,
                    );
                }
            };
            match (read(&frame), call) {
                (Ok(Said::Need(need)), Some(call)) => match self.give(call, &need).await {
                    Ok(reply) => drop(line.send(&reply).await),
                    Err(message) => return Heard::Broken(message),
                },
                (Ok(said), _) => return Heard::Answer(said, frame.raw),
                (Err(error), _) => {
                    return Heard::Broken(format!("the task process cannot be understood: {error}"));
                }
            }
        }
    }

    /// The values that a task asks for while it runs.
    async fn give(&self, call: &Call, need: &Need) -> Result<Vec<u8>, String> {
        let mut values = Parcel::default();
        match need.root.as_deref().and_then(Root::named) {
            None => values.add_names(&call.context, &need.names),
            Some(root) => match &need.key {
                Some(key) => values.add_key(&call.context, root, key),
                None => values.add_root(&call.context, root),
            },
        }
        let raw = values.load(&*self.blobs).await?;
        wire::encode(&values, &raw).map_err(|error| error.to_string())
    }
}

/// How far an attempt was told to stop.
pub(super) struct Stopping {
    stop: Stop,
    was_asked: bool,
    was_told: bool,
    /// Without it the attempt would count as let go.
    _nobody: Option<watch::Sender<Urgency>>,
}

impl Stopping {
    const fn by(stop: Stop) -> Self {
        Self { stop, was_asked: false, was_told: false, _nobody: None }
    }

    /// Nobody tells it to stop; it is dropped instead.
    pub(super) fn never() -> Self {
        let nobody = watch::Sender::new(Urgency::None);
        Self { _nobody: Some(nobody.clone()), ..Self::by(Stop::from(nobody.subscribe())) }
    }
}

fn failed(code: &str, message: impl Into<String>) -> End {
    End::Failed { error: ErrorInfo::new(code, message), inputs: None, changes: None }
}

/// The process died under the task.
fn crashed(status: Option<ExitStatus>, last_words: &str) -> End {
    let how = status.map_or_else(|| "is gone".to_owned(), how_it_ended);
    let mut message = format!("the process of the task {how}");
    if status.is_some_and(|status| std::os::unix::process::ExitStatusExt::signal(&status) == Some(9)) {
        message.push_str(", perhaps because memory ran out");
    }
    if !last_words.is_empty() {
        message = format!("{message}; its last words:\n{last_words}");
    }
    failed("HOST_CRASHED", message)
}
