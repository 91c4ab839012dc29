//! Every sequence of four event types, and random interleavings of commands: nothing breaks a promise.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    clippy::needless_pass_by_value,
    reason = "a test stops at the first surprise"
)]

mod checks;

use std::sync::Arc;

use pyoco_core::event::*;
use pyoco_core::ids::{Attempt, ExecutionId};
use pyoco_core::json::Object;
use pyoco_core::plan::Plan;
use pyoco_core::state::State;
use pyoco_core::time::Timestamp;
use pyoco_testkit::*;

use checks::{Promises, check_shape};

/// One event of each type, all about the same node.
fn sample(kind: EventType) -> Event {
    let node_id = node("a");
    let extra = Object::default;
    let error = Some(ErrorInfo::new("E", "boom"));
    match kind {
        EventType::ExecutionCreated => ExecutionCreated {
            graph_id: "main".to_owned(),
            input: None,
            tag: None,
            labels: Vec::new(),
            tenant_id: None,
            api_key_id: None,
            workflow: None,
            graph_version: None,
            retry_of: None,
            traceparent: None,
            extra: extra(),
        }
        .into(),
        EventType::ExecutionStarted => ExecutionStarted { started_by: None, extra: extra() }.into(),
        EventType::ExecutionCompleted => ExecutionCompleted { result: None, extra: extra() }.into(),
        EventType::ExecutionArchived => ExecutionArchived { reason: None, extra: extra() }.into(),
        EventType::ExecutionCancelRequested => {
            ExecutionCancelRequested { reason: None, requested_by: None, extra: extra() }.into()
        }
        EventType::ExecutionCanceled => {
            ExecutionCanceled { reason: None, canceled_at: None, extra: extra() }.into()
        }
        EventType::ExecutionFailRequested => ExecutionFailRequested {
            reason: None,
            requested_by: None,
            failed_node_id: None,
            error,
            extra: extra(),
        }
        .into(),
        EventType::ExecutionFailed => {
            ExecutionFailed { reason: None, failed_node_id: None, error, extra: extra() }.into()
        }
        EventType::NodeCreated => {
            NodeCreated { node_id, node_type: "Task".to_owned(), meta: None, extra: extra() }.into()
        }
        EventType::NodeReady => NodeReady { node_id, extra: extra() }.into(),
        EventType::NodeStarted => {
            NodeStarted { node_id, attempt: Attempt(1), worker_id: None, choice: None, extra: extra() }.into()
        }
        EventType::NodeProgressReported => NodeProgressReported {
            node_id,
            progress: Some(1.0),
            message: None,
            metrics: None,
            choice: None,
            extra: extra(),
        }
        .into(),
        EventType::NodeWaiting => {
            NodeWaiting { node_id, wait_key: None, prompt: None, extra: extra() }.into()
        }
        EventType::NodeResumeRequested => {
            NodeResumeRequested { node_id, resume_key: None, requested_by: None, extra: extra() }.into()
        }
        EventType::NodeResumed => NodeResumed { node_id, extra: extra() }.into(),
        EventType::NodeSucceeded => NodeSucceeded {
            node_id,
            output: None,
            output_ref: None,
            inputs: None,
            changes: None,
            extra: extra(),
        }
        .into(),
        EventType::NodeFailReported => {
            NodeFailReported { node_id, error, inputs: None, changes: None, retry_at: None, extra: extra() }
                .into()
        }
        EventType::NodeFailed => NodeFailed { node_id, error, inherited: false, extra: extra() }.into(),
        EventType::NodeCancelRequested => {
            NodeCancelRequested { node_id, reason: None, extra: extra() }.into()
        }
        EventType::NodeCanceled => NodeCanceled { node_id, reason: None, extra: extra() }.into(),
        EventType::NodeInterruptRequested => {
            NodeInterruptRequested { node_id, worker_id: None, reason: None, extra: extra() }.into()
        }
        EventType::ForkOpened => ForkOpened { node_id, branch_ids: Vec::new(), extra: extra() }.into(),
        EventType::JoinGateUpdated => JoinGateUpdated {
            node_id,
            expected_branches: Vec::new(),
            completed_branches: Vec::new(),
            failed_branches: Vec::new(),
            canceled_branches: Vec::new(),
            policy: "ALL_SUCCESS".to_owned(),
            is_passable: true,
            extra: extra(),
        }
        .into(),
        EventType::JoinPassed => JoinPassed { node_id, extra: extra() }.into(),
    }
}

fn every_sequence(state: &State, promises: &Promises, depth: usize, folded: &mut u64) {
    for kind in EventType::ALL {
        let mut next = state.clone();
        next.apply(&sample(kind), Timestamp::from_micros(0));
        *folded += 1;
        let promises = promises.after(&next);
        check_shape(&next);
        if depth > 1 {
            every_sequence(&next, &promises, depth - 1, folded);
        }
    }
}

#[test]
fn all_sequences_of_four_event_types_from_nothing() {
    let state = State::absent(ExecutionId::new("e").unwrap());
    let mut folded = 0;
    every_sequence(&state, &Promises::before(&state), 4, &mut folded);
    assert_eq!(folded, 24 + 24_u64.pow(2) + 24_u64.pow(3) + 24_u64.pow(4));
}

#[test]
fn all_sequences_of_four_event_types_from_a_started_plan() {
    let plan: Arc<Plan> =
        Graph::new().task("a", external()).task("b", external()).task("c", external()).edge("a", "b").plan();
    let started = Execution::started(&plan).state().clone();
    let mut folded = 0;
    every_sequence(&started, &Promises::before(&started), 4, &mut folded);
    assert_eq!(folded, 24 + 24_u64.pow(2) + 24_u64.pow(3) + 24_u64.pow(4));
}
