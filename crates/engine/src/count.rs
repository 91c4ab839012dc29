//! What is counted of what the engine does. The figures themselves are `pyoco-figures`'; nothing is decided by them.

use pyoco_core::command::DeadLetter;
use pyoco_core::event::Event;
use pyoco_core::ids::{Attempt, NodeId};
use pyoco_core::outcome::Effect;
use pyoco_core::record::Record;
use pyoco_core::state::State;
use pyoco_core::time::Timestamp;
use pyoco_figures::Figures;
use pyoco_ports::AppendError;

use crate::{EngineError, Submitted};

/// A record was appended. The state is the one after it.
pub(crate) fn record(figures: &Figures, state: &State, record: &Record) {
    let flow = state.origin.as_ref().map_or("", |origin| origin.flow.as_str());
    // Forks, joins and loops are no tasks, and what never began did not end.
    let is_task = |node: &NodeId| {
        state.nodes.get(node).is_some_and(|node| node.task.is_some() && node.attempt > Attempt(0))
    };
    for envelope in &record.events {
        let at = envelope.occurred_at;
        match &envelope.event {
            Event::NodeStarted(started) if started.attempt > Attempt(1) && is_task(&started.node_id) => {
                figures.retried(flow);
            }
            Event::NodeSucceeded(ended) if is_task(&ended.node_id) => figures.task_ended(flow, "succeeded"),
            Event::NodeFailReported(_) => figures.task_ended(flow, "failed"),
            Event::NodeCanceled(ended) if is_task(&ended.node_id) => figures.task_ended(flow, "cancelled"),
            Event::ExecutionCompleted(_) => run_ended(figures, state, flow, "COMPLETED", at),
            Event::ExecutionFailed(_) => run_ended(figures, state, flow, "FAILED", at),
            Event::ExecutionCanceled(_) => run_ended(figures, state, flow, "CANCELLED", at),
            Event::NodeStarted(_) | Event::NodeSucceeded(_) | Event::NodeCanceled(_) => {}
            Event::ExecutionCreated(_)
            | Event::ExecutionStarted(_)
            | Event::ExecutionArchived(_)
            | Event::ExecutionFailRequested(_)
            | Event::ExecutionCancelRequested(_)
            | Event::NodeCreated(_)
            | Event::NodeReady(_)
            | Event::NodeProgressReported(_)
            | Event::NodeWaiting(_)
            | Event::NodeResumeRequested(_)
            | Event::NodeResumed(_)
            | Event::NodeFailed(_)
            | Event::NodeCancelRequested(_)
            | Event::NodeInterruptRequested(_)
            | Event::ForkOpened(_)
            | Event::JoinGateUpdated(_)
            | Event::JoinPassed(_) => {}
        }
    }
}

fn run_ended(figures: &Figures, state: &State, flow: &str, status: &'static str, at: Timestamp) {
    // One that was cancelled before anybody took it did not run.
    let seconds = state.active_since.map(|since| at.as_unix_seconds() - since.as_unix_seconds());
    figures.run_ended(flow, status, seconds.map(|seconds| seconds.max(0.0)));
}

/// The dead letter of an append, if it wrote one.
pub(crate) fn letter(figures: &Figures, effects: &[Effect]) {
    let reason = effects.iter().find_map(|effect| match effect {
        Effect::PublishDeadLetter { reason, .. } => Some(*reason),
        Effect::EnqueueJob(_) | Effect::DropJob | Effect::InterruptWorker(_) | Effect::Advance => None,
    });
    match reason {
        Some(DeadLetter::InvalidJob) => figures.letter("invalid_job"),
        Some(DeadLetter::FlowNotFound) => figures.letter("flow_not_found"),
        Some(DeadLetter::ExecutionError) => figures.letter("execution_error"),
        None => {}
    }
}

/// How a submission was answered.
pub(crate) const fn submitted(answer: &Result<Submitted, EngineError>) -> &'static str {
    match answer {
        Ok(submitted) if submitted.is_repeat => "repeated",
        Ok(_) => "accepted",
        Err(error) => failure(error),
    }
}

/// How a command was answered.
pub(crate) const fn answered<T>(answer: &Result<T, EngineError>) -> &'static str {
    match answer {
        Ok(_) => "accepted",
        Err(error) => failure(error),
    }
}

/// What became of a record.
pub(crate) const fn appended<T>(answer: &Result<T, AppendError>) -> &'static str {
    match answer {
        Ok(_) => "accepted",
        Err(AppendError::Conflict { .. }) => "conflict",
        Err(AppendError::Store(_)) => "failed",
    }
}

/// Whether the rules say no, or something is broken.
const fn failure(error: &EngineError) -> &'static str {
    match error {
        EngineError::Rejected(_) | EngineError::UnknownGraph(_) | EngineError::UnusableGraph { .. } => {
            "refused"
        }
        EngineError::Store(_)
        | EngineError::Unfollowed(_)
        | EngineError::Log { .. }
        | EngineError::Busy(_) => "failed",
    }
}
