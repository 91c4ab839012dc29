//! The reducer: what each event does to the state. It cannot fail, ask or refuse.
//!
//! Two rules stand above all others here, whatever an event says: once a cancel was requested only
//! EXECUTION_CANCELED ends the execution, and after a terminal event nothing changes but the archive mark.
//! An event that has no place in the current state is kept in the log and changes nothing.
//!
//! Which events are written is decided in `decide`.

mod execution;
mod frames;
mod node;
mod open;
mod record;

use crate::event::Event;
use crate::state::{Phase, State, Todo};
use crate::time::Timestamp;

impl State {
    /// Takes an event over.
    pub fn apply(&mut self, event: &Event, at: Timestamp) {
        self.events = self.events.next();
        match event {
            Event::ExecutionCreated(payload) => self.execution_created(payload, at),
            Event::ExecutionStarted(_) => self.execution_started(at),
            Event::ExecutionCompleted(_) => self.execution_completed(at),
            Event::ExecutionArchived(_) => self.execution_archived(at),
            Event::ExecutionCancelRequested(payload) => self.cancel_requested(payload, at),
            Event::ExecutionCanceled(payload) => self.execution_canceled(payload, at),
            Event::ExecutionFailRequested(payload) => self.fail_requested(payload, at),
            Event::ExecutionFailed(payload) => self.execution_failed(payload, at),
            Event::NodeCreated(_)
            | Event::NodeReady(_)
            | Event::NodeStarted(_)
            | Event::NodeProgressReported(_)
            | Event::NodeWaiting(_)
            | Event::NodeResumeRequested(_)
            | Event::NodeResumed(_)
            | Event::NodeSucceeded(_)
            | Event::NodeFailReported(_)
            | Event::NodeFailed(_)
            | Event::NodeCancelRequested(_)
            | Event::NodeCanceled(_)
            | Event::NodeInterruptRequested(_)
            | Event::ForkOpened(_)
            | Event::JoinGateUpdated(_)
            | Event::JoinPassed(_) => self.apply_to_node(event, at),
        }
    }

    /// Events of nodes mean something only while an execution is under way.
    fn apply_to_node(&mut self, event: &Event, at: Timestamp) {
        match self.phase {
            Phase::Absent | Phase::Completed | Phase::Failed | Phase::Canceled => {}
            Phase::Created | Phase::Started | Phase::Failing | Phase::Canceling => self.node_event(event, at),
        }
    }

    /// Crosses out what has been recorded now. It is nearly always the first entry.
    fn done(&mut self, is_done: impl Fn(&Todo) -> bool) {
        if self.agenda.front().is_some_and(&is_done) {
            self.agenda.pop_front();
        } else if let Some(at) = self.agenda.iter().position(is_done) {
            self.agenda.remove(at);
        }
    }

    /// Notes something to record next. Nothing new begins once the execution is on its way out.
    fn plan_next(&mut self, todo: Todo) {
        match self.phase {
            Phase::Started => self.agenda.push_back(todo),
            Phase::Absent | Phase::Created | Phase::Failing | Phase::Canceling => {}
            Phase::Completed | Phase::Failed | Phase::Canceled => {}
        }
    }
}
