//! Events of one node. Called only while the execution is under way.

use crate::event::{
    Choice, ErrorInfo, Event, NodeCreated, NodeFailReported, NodeProgressReported, NodeStarted,
    NodeSucceeded, NodeWaiting,
};
use crate::ids::{Attempt, NodeId};
use crate::plan::{Kind, TaskIndex};
use crate::state::{
    AttemptEnd, AttemptRecord, NodeNumber, NodeState, NodeStatus, Output, Phase, Place, Settled, State,
    TaskRecord, Todo, Waiting,
};
use crate::time::Timestamp;

impl State {
    pub(super) fn node_event(&mut self, event: &Event, at: Timestamp) {
        match event {
            Event::NodeCreated(payload) => self.node_created(payload),
            Event::NodeReady(payload) => self.node_ready(&payload.node_id),
            Event::NodeStarted(payload) => self.node_started(payload, at),
            Event::NodeProgressReported(payload) => self.node_progress(payload),
            Event::NodeWaiting(payload) => self.node_waiting(payload, at),
            Event::NodeResumed(payload) => self.node_resumed(&payload.node_id, at),
            Event::NodeSucceeded(payload) => self.node_succeeded(payload, at),
            Event::NodeFailReported(payload) => self.node_fail_reported(payload, at),
            Event::NodeFailed(payload) => {
                self.node_failed(&payload.node_id, payload.error.as_ref(), payload.inherited, at);
            }
            Event::NodeCancelRequested(payload) => {
                if let Some(node) = self.nodes.get_mut(&payload.node_id) {
                    node.cancel_requested = true;
                }
            }
            Event::NodeCanceled(payload) => self.node_canceled(&payload.node_id, at),
            Event::ForkOpened(payload) => self.settle(&payload.node_id, Settled::Succeeded, at),
            Event::JoinGateUpdated(payload) => {
                if let Some(place) = self.nodes.get(&payload.node_id).and_then(|node| node.place) {
                    self.done(|todo| *todo == Todo::Gate(place));
                    self.gate_reported(place);
                }
            }
            Event::JoinPassed(payload) => self.settle(&payload.node_id, Settled::Succeeded, at),
            // Asking is a fact of its own; it changes nothing by itself.
            Event::NodeResumeRequested(_) | Event::NodeInterruptRequested(_) => {}
            Event::ExecutionCreated(_)
            | Event::ExecutionStarted(_)
            | Event::ExecutionCompleted(_)
            | Event::ExecutionArchived(_)
            | Event::ExecutionCancelRequested(_)
            | Event::ExecutionCanceled(_)
            | Event::ExecutionFailRequested(_)
            | Event::ExecutionFailed(_) => {}
        }
    }

    fn node_created(&mut self, payload: &NodeCreated) {
        if self.nodes.contains_key(&payload.node_id) {
            return;
        }
        let place = self.place_of(&payload.node_id);
        let task = place.and_then(|place| self.task_at(place));
        if let Some(place) = place {
            self.done(|todo| *todo == Todo::Reach(place) || *todo == Todo::Inherit(place));
        }
        let node = NodeState { place, node_type: payload.node_type.clone(), task, ..NodeState::default() };
        self.nodes.insert(payload.node_id.clone(), node);
    }

    fn task_at(&self, place: Place) -> Option<TaskIndex> {
        match self.planned(place)?.kind {
            Kind::Task(task) => Some(task),
            Kind::Start | Kind::Success | Kind::Failed | Kind::Canceled | Kind::Fork { .. } => None,
            Kind::Join { .. } | Kind::Repeat { .. } | Kind::ForEach { .. } => None,
            Kind::Until { .. } | Kind::Switch { .. } => None,
        }
    }

    /// A node is ready when it was reached, and once more when the pause before its retry is over.
    fn node_ready(&mut self, id: &NodeId) {
        let Some((number, node)) = self.entry(id) else { return };
        match node.status {
            NodeStatus::Pending => {}
            NodeStatus::Ready if node.retry_at.is_some() => {
                return self.change(number, |node| node.retry_at = None);
            }
            NodeStatus::Ready | NodeStatus::Running | NodeStatus::Waiting => return,
            NodeStatus::Succeeded | NodeStatus::Failed | NodeStatus::Canceled => return,
        }
        self.change(number, |node| node.status = NodeStatus::Ready);
        self.with_record(number, |record| {
            record.status = NodeStatus::Ready;
            record.reached = true;
            record.attempts.clear();
        });
    }

    fn node_started(&mut self, payload: &NodeStarted, at: Timestamp) {
        match self.phase {
            Phase::Started => {}
            // Nothing starts once the end is certain.
            Phase::Absent | Phase::Created | Phase::Failing | Phase::Canceling => return,
            Phase::Completed | Phase::Failed | Phase::Canceled => return,
        }
        let epoch = self.epoch;
        let Some((number, node)) = self.entry(&payload.node_id) else { return };
        match node.status {
            NodeStatus::Ready => {}
            NodeStatus::Pending | NodeStatus::Running | NodeStatus::Waiting => return,
            NodeStatus::Succeeded | NodeStatus::Failed | NodeStatus::Canceled => return,
        }
        let first = node.started_at.is_none();
        self.change(number, |node| {
            node.status = NodeStatus::Running;
            node.attempt = payload.attempt;
            node.epoch = epoch;
            node.started_at.get_or_insert(at);
            node.attempt_started_at = Some(at);
            node.retry_at = None;
            node.error = None;
            node.worker.clone_from(&payload.worker_id);
        });
        if self.is_control(number) {
            return self.begin_control(number, payload.choice.as_ref());
        }
        self.active_since.get_or_insert(at);
        let attempt = AttemptRecord {
            attempt: payload.attempt,
            started_at: at,
            worker: payload.worker_id.clone(),
            end: None,
        };
        self.with_record(number, |record| {
            record.status = NodeStatus::Running;
            record.error = None;
            if first {
                record.started_at = Some(at);
            }
            record.attempts.push(attempt);
        });
    }

    fn node_progress(&mut self, payload: &NodeProgressReported) {
        let Some((number, node)) = self.entry(&payload.node_id) else { return };
        match node.status {
            NodeStatus::Running | NodeStatus::Waiting => {}
            NodeStatus::Pending | NodeStatus::Ready => return,
            NodeStatus::Succeeded | NodeStatus::Failed | NodeStatus::Canceled => return,
        }
        node.progress = payload.progress.or(node.progress);
        if payload.message.is_some() {
            node.message.clone_from(&payload.message);
        }
        if let (Some(Choice::Holds(holds)), true) = (&payload.choice, node.asking) {
            self.condition_known(number, *holds);
        }
    }

    fn node_waiting(&mut self, payload: &NodeWaiting, at: Timestamp) {
        let Some((number, node)) = self.entry(&payload.node_id) else { return };
        match node.status {
            NodeStatus::Ready | NodeStatus::Running => {}
            NodeStatus::Pending | NodeStatus::Waiting => return,
            NodeStatus::Succeeded | NodeStatus::Failed | NodeStatus::Canceled => return,
        }
        let waiting = Waiting { since: at, key: payload.wait_key.clone(), prompt: payload.prompt.clone() };
        self.change(number, |node| {
            node.status = NodeStatus::Waiting;
            // A wait node waits without being started; its waiting is its first attempt.
            node.attempt = node.attempt.max(Attempt(1));
            node.started_at.get_or_insert(at);
            node.retry_at = None;
            node.waiting = Some(waiting.clone());
        });
        self.active_since.get_or_insert(at);
        self.has_waited = true;
        self.with_record(number, |record| {
            record.status = NodeStatus::Waiting;
            record.started_at.get_or_insert(at);
            record.waiting = Some(waiting);
        });
    }

    fn node_resumed(&mut self, id: &NodeId, at: Timestamp) {
        match self.phase {
            Phase::Created | Phase::Started | Phase::Failing => {}
            Phase::Absent | Phase::Canceling | Phase::Completed | Phase::Failed | Phase::Canceled => return,
        }
        let Some((number, node)) = self.entry(id) else { return };
        match node.status {
            NodeStatus::Waiting => {}
            NodeStatus::Pending | NodeStatus::Ready | NodeStatus::Running => return,
            NodeStatus::Succeeded | NodeStatus::Failed | NodeStatus::Canceled => return,
        }
        self.change(number, |node| {
            node.status = NodeStatus::Running;
            node.waiting = None;
            node.attempt_started_at = Some(at);
        });
        self.with_record(number, |record| {
            record.status = NodeStatus::Running;
            record.waiting = None;
        });
    }

    fn node_succeeded(&mut self, payload: &NodeSucceeded, at: Timestamp) {
        let Some((number, node)) = self.entry(&payload.node_id) else { return };
        if node.status.is_settled() {
            return;
        }
        let output = Output { value: payload.output.clone(), reference: payload.output_ref.clone() };
        node.output = output.clone();
        node.error = None;
        let task = node.task;
        if let Some(changes) = &payload.changes {
            self.context.merge(changes);
        }
        if let Some(spec) = self.plan.clone().as_ref().and_then(|plan| plan.task(task?)) {
            self.context.store(&spec.name, &spec.outputs, &output);
        }
        self.lost_claims = 0;
        self.with_record(number, |record| {
            record.error = None;
            record.output = output;
            if payload.inputs.is_some() {
                record.inputs.clone_from(&payload.inputs);
            }
            end_attempt(record, AttemptEnd::Succeeded(at));
        });
        self.settle(&payload.node_id, Settled::Succeeded, at);
    }

    fn node_fail_reported(&mut self, payload: &NodeFailReported, at: Timestamp) {
        let may_retry = self.phase == Phase::Started;
        let Some((number, node)) = self.entry(&payload.node_id) else { return };
        if node.status.is_settled() {
            return;
        }
        let error = payload.error.clone().unwrap_or_default();
        node.failures += 1;
        node.error = Some(error.clone());
        if let Some(retry_at) = payload.retry_at.filter(|_| may_retry) {
            self.change(number, |node| {
                node.status = NodeStatus::Ready;
                node.retry_at = Some(retry_at);
                node.waiting = None;
                node.attempt_started_at = None;
            });
        }
        if let Some(changes) = &payload.changes {
            self.context.merge(changes);
        }
        self.lost_claims = 0;
        self.with_record(number, |record| {
            if payload.inputs.is_some() {
                record.inputs.clone_from(&payload.inputs);
            }
            end_attempt(record, AttemptEnd::Failed(at, error.clone()));
            record.error = Some(error);
            record.waiting = None;
            // Between two attempts a task counts as running, as the original shows it.
            record.status = NodeStatus::Running;
        });
    }

    fn node_failed(&mut self, id: &NodeId, error: Option<&ErrorInfo>, inherited: bool, at: Timestamp) {
        let Some((number, node)) = self.entry(id) else { return };
        if node.status.is_settled() {
            return;
        }
        node.inherited = inherited;
        if node.error.is_none() {
            node.error = error.cloned();
        }
        if let (Some(error), false) = (error, inherited) {
            // The failure that ends the execution is the one that is shown, not those that come after it.
            if self.failure.is_none() {
                self.last_error = Some(error.text().to_owned());
            }
            self.with_record(number, |record| {
                record.error.get_or_insert_with(|| error.clone());
            });
        }
        self.settle(id, Settled::Failed, at);
    }

    fn node_canceled(&mut self, id: &NodeId, at: Timestamp) {
        let by_execution = self.cancel.is_some();
        let Some((number, node)) = self.entry(id) else { return };
        if node.status.is_settled() {
            return;
        }
        node.canceled_by_execution = by_execution;
        self.with_record(number, |record| end_attempt(record, AttemptEnd::Canceled(at)));
        self.settle(id, Settled::Canceled, at);
    }

    /// The end of a node, however it came.
    fn settle(&mut self, id: &NodeId, how: Settled, at: Timestamp) {
        let Some((number, node)) = self.entry(id) else { return };
        if node.status.is_settled() {
            return;
        }
        let (place, inherited) = (node.place, node.inherited);
        let status = match how {
            Settled::Succeeded => NodeStatus::Succeeded,
            Settled::Failed => NodeStatus::Failed,
            Settled::Canceled => NodeStatus::Canceled,
        };
        if self.is_control(number) {
            self.done(|todo| *todo == Todo::Finish(number));
        }
        self.change(number, |node| {
            node.status = status;
            node.ended_at = Some(at);
            node.waiting = None;
            node.retry_at = None;
        });
        self.with_record(number, |record| {
            record.status = status;
            record.reached = true;
            record.waiting = None;
            if !inherited {
                record.ended_at = Some(at);
            }
        });
        if let Some(place) = place {
            self.settle_in_frame(place, how);
        }
    }

    /// A new claim, or none any more: attempts under the old one are lost, and may be made again without counting
    /// as failures.
    pub(super) fn attempts_lost(&mut self, at: Timestamp) {
        let lost: Vec<NodeNumber> = self.open.in_workers.iter().copied().collect();
        for number in lost {
            self.change(number, |node| {
                node.status = NodeStatus::Ready;
                node.worker = None;
                node.attempt_started_at = None;
            });
            self.with_record(number, |record| end_attempt(record, AttemptEnd::Lost(at)));
        }
    }

    fn entry(&mut self, id: &NodeId) -> Option<(NodeNumber, &mut NodeState)> {
        let (index, _, node) = self.nodes.get_full_mut(id)?;
        Some((NodeNumber::from_index(index), node))
    }

    fn with_record(&mut self, number: NodeNumber, change: impl FnOnce(&mut TaskRecord)) {
        let task = self.node(number).and_then(|(_, node)| node.task);
        if let Some(record) = task.and_then(|task| self.tasks.get_mut(task.0 as usize)) {
            change(record);
        }
    }
}

fn end_attempt(record: &mut TaskRecord, end: AttemptEnd) {
    if let Some(attempt) = record.attempts.last_mut().filter(|attempt| attempt.end.is_none()) {
        attempt.end = Some(end);
    }
}
