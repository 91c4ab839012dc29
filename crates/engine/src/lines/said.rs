//! What the engine says about an execution, in words: a line for each event that a reader of the log wants to know of.

use pyoco_core::event::{ErrorInfo, Event, EventEnvelope};
use pyoco_core::ids::{Attempt, NodeId};
use pyoco_core::record::Record;
use pyoco_core::state::{NodeState, Phase, State};
use pyoco_core::time::Timestamp;
use pyoco_ports::{LogLine, LogStream};

/// So much of a text of others stands in a line.
const LONGEST: usize = 2_000;

/// The lines about a record, and whether they are the last ones. The state is the one after it.
pub(super) fn about(state: &State, record: &Record) -> (Vec<LogLine>, bool) {
    let lines = record.events.iter().filter_map(|envelope| line(state, envelope)).collect();
    let is_end = |envelope: &EventEnvelope| {
        matches!(
            envelope.event,
            Event::ExecutionCompleted(_) | Event::ExecutionFailed(_) | Event::ExecutionCanceled(_)
        )
    };
    (lines, record.events.iter().any(is_end))
}

/// The last line of an execution that has ended.
pub(super) fn end(state: &State) -> Option<LogLine> {
    let at = state.ended_at.or(state.updated_at)?;
    let text = match state.phase {
        Phase::Completed => format!("run completed{}", after(state.active_since, at)),
        Phase::Failed => {
            let why =
                state.last_error.as_deref().map(|error| format!(": {}", cut(error))).unwrap_or_default();
            format!("run failed{}{why}", after(state.active_since, at))
        }
        Phase::Canceled => format!("run cancelled{}", after(state.active_since, at)),
        Phase::Absent | Phase::Created | Phase::Started | Phase::Failing | Phase::Canceling => return None,
    };
    Some(LogLine { node: None, attempt: Attempt(0), stream: LogStream::Engine, at, text })
}

/// The line that stands where others are missing.
pub(super) fn lost(lines: usize, at: Timestamp) -> LogLine {
    let text = format!("{lines} lines are missing here: the store could not be reached");
    LogLine { node: None, attempt: Attempt(0), stream: LogStream::Engine, at, text }
}

fn line(state: &State, envelope: &EventEnvelope) -> Option<LogLine> {
    let at = envelope.occurred_at;
    let of_run =
        |text: String| Some(LogLine { node: None, attempt: Attempt(0), stream: LogStream::Engine, at, text });
    match &envelope.event {
        Event::NodeStarted(started) => {
            let mut text = "started".to_owned();
            if started.attempt > Attempt(1) {
                text = format!("{text}, attempt {}", started.attempt);
            }
            if let Some(worker) = &started.worker_id {
                text = format!("{text} by {worker}");
            }
            of_task(state, &started.node_id, at, |_| text)
        }
        Event::NodeProgressReported(progress) => {
            let (percent, message) = (progress.progress, progress.message.as_deref());
            // How far a loop is is no news.
            if percent.is_none() && message.is_none() {
                return None;
            }
            let percent = percent.map(|percent| format!("{percent} %"));
            let parts: Vec<String> = percent.into_iter().chain(message.map(cut)).collect();
            of_task(state, &progress.node_id, at, |_| parts.join(": "))
        }
        Event::NodeWaiting(waiting) => of_task(state, &waiting.node_id, at, |_| {
            let key = waiting.wait_key.as_deref().map(|key| format!(" ({})", cut(key))).unwrap_or_default();
            format!("waits for an answer{key}")
        }),
        Event::NodeResumed(resumed) => of_task(state, &resumed.node_id, at, |_| "was answered".to_owned()),
        Event::NodeSucceeded(succeeded) => of_task(state, &succeeded.node_id, at, |node| {
            format!("succeeded{}", after(node.attempt_started_at.or(node.started_at), at))
        }),
        Event::NodeFailReported(failed) => {
            // Without another attempt NODE_FAILED says it.
            let retry_at = failed.retry_at?;
            of_task(state, &failed.node_id, at, |node| {
                let why = because(failed.error.as_ref());
                format!(
                    "attempt {} failed{why}; the next one in {}",
                    node.attempt,
                    time_between(at, retry_at)
                )
            })
        }
        Event::NodeFailed(failed) if failed.inherited => {
            of_task(state, &failed.node_id, at, |_| "not run: a task before it failed".to_owned())
        }
        Event::NodeFailed(failed) => of_task(state, &failed.node_id, at, |node| {
            let after = after(node.attempt_started_at.or(node.started_at), at);
            format!("failed{after}{}", because(failed.error.as_ref()))
        }),
        Event::NodeCancelRequested(canceled) => {
            of_task(state, &canceled.node_id, at, |_| "is to be cancelled".to_owned())
        }
        Event::NodeInterruptRequested(asked) => {
            of_task(state, &asked.node_id, at, |_| "was asked to stop".to_owned())
        }
        Event::NodeCanceled(canceled) => of_task(state, &canceled.node_id, at, |_| "cancelled".to_owned()),
        Event::ExecutionCancelRequested(cancel) => {
            let why = cancel.reason.as_deref().map(|reason| format!(": {}", cut(reason))).unwrap_or_default();
            of_run(format!("cancel requested{why}"))
        }
        Event::ExecutionCompleted(_) | Event::ExecutionFailed(_) | Event::ExecutionCanceled(_) => end(state),
        Event::ExecutionCreated(_)
        | Event::ExecutionStarted(_)
        | Event::ExecutionArchived(_)
        | Event::ExecutionFailRequested(_)
        | Event::NodeCreated(_)
        | Event::NodeReady(_)
        | Event::NodeResumeRequested(_)
        | Event::ForkOpened(_)
        | Event::JoinGateUpdated(_)
        | Event::JoinPassed(_) => None,
    }
}

/// A line about a task; nothing about forks, joins and loops.
fn of_task(
    state: &State,
    id: &NodeId,
    at: Timestamp,
    text: impl FnOnce(&NodeState) -> String,
) -> Option<LogLine> {
    let node = state.nodes.get(id).filter(|node| node.task.is_some())?;
    let text = text(node);
    Some(LogLine { node: Some(id.clone()), attempt: node.attempt, stream: LogStream::Engine, at, text })
}

fn because(error: Option<&ErrorInfo>) -> String {
    error.map(|error| format!(": {}", cut(error.text()))).unwrap_or_default()
}

/// How long something took.
fn after(since: Option<Timestamp>, until: Timestamp) -> String {
    since.map(|since| format!(" after {}", time_between(since, until))).unwrap_or_default()
}

fn time_between(since: Timestamp, until: Timestamp) -> String {
    let millis = until.as_micros().saturating_sub(since.as_micros()).max(0) / 1_000;
    match millis {
        ..1_000 => format!("{millis} ms"),
        1_000..60_000 => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
        60_000.. => format!("{} min {} s", millis / 60_000, millis % 60_000 / 1_000),
    }
}

/// The first line of a text, and not too much of it.
fn cut(text: &str) -> String {
    let text = text.lines().next().unwrap_or_default();
    let end = text.floor_char_boundary(LONGEST);
    let short = text.get(..end).unwrap_or_default();
    if end < text.len() { format!("{short}…") } else { short.to_owned() }
}
