//! Commands in short form.

use std::sync::Arc;

use pyoco_core::command::*;
use pyoco_core::event::{Actor, ActorKind, Choice, ErrorInfo};
use pyoco_core::ids::{Attempt, CommandId, Epoch, JobId, NodeId, WorkerId};
use pyoco_core::json::Json;
use pyoco_core::plan::Plan;
use serde_json::Value;

/// A node id.
pub fn node(id: &str) -> NodeId {
    NodeId::new(id).expect("a sound node id")
}

/// A worker id.
pub fn worker_id(id: &str) -> WorkerId {
    WorkerId::new(id).expect("a sound worker id")
}

/// A job id.
pub fn job(id: &str) -> JobId {
    JobId::new(id).expect("a sound job id")
}

/// An idempotency key.
pub fn key(id: &str) -> CommandId {
    CommandId::new(id).expect("a sound key")
}

/// Somebody at the API.
pub fn caller() -> Issuer {
    Issuer::Caller(Actor::named(ActorKind::User, "alice"))
}

/// A worker with the claim it believes to hold.
pub fn worker(epoch: u64) -> Issuer {
    Issuer::Worker { id: worker_id("w1"), epoch: Epoch(epoch) }
}

/// Creates an execution whose plan a worker brings.
pub fn create() -> CreateExecution {
    CreateExecution {
        graph_id: "main".to_owned(),
        input: Default::default(),
        tag: None,
        labels: Vec::new(),
        tenant_id: None,
        api_key_id: None,
        workflow: None,
        graph_version: None,
        plan: None,
        retry_of: None,
        keep: None,
        traceparent: None,
        start: false,
    }
}

/// Starts an execution.
pub fn start() -> StartExecution {
    StartExecution {}
}

/// Cancels an execution.
pub fn cancel() -> CancelExecution {
    CancelExecution { reason: None }
}

/// Archives an execution.
pub fn archive() -> ArchiveExecution {
    ArchiveExecution { reason: None }
}

/// Takes an execution for `w1`.
pub fn claim(job_id: &str, plan: Option<&Arc<Plan>>) -> ClaimExecution {
    ClaimExecution {
        job: job(job_id),
        worker_id: worker_id("w1"),
        owner_expired: false,
        plan: plan.cloned(),
        wheels: None,
    }
}

/// Lets go because everything waits.
pub fn park() -> ReleaseExecution {
    ReleaseExecution { parked: true }
}

/// Lets go because the worker stops.
pub fn drain() -> ReleaseExecution {
    ReleaseExecution { parked: false }
}

/// Starts the next attempt of a node.
pub fn start_node(id: &str) -> StartNode {
    StartNode { node_id: node(id), attempt: None, worker_id: None }
}

/// Starts that attempt of a node.
pub fn start_attempt(id: &str, attempt: u32) -> StartNode {
    StartNode { attempt: Some(Attempt(attempt)), ..start_node(id) }
}

/// Reports progress.
pub fn progress(id: &str, percent: f64) -> ReportNodeProgress {
    ReportNodeProgress { node_id: node(id), progress: Some(percent), message: None, metrics: None }
}

/// Lets a node wait.
pub fn put_waiting(id: &str, wait_key: &str) -> PutNodeWaiting {
    PutNodeWaiting { node_id: node(id), wait_key: Some(wait_key.to_owned()), prompt: None }
}

/// Resumes a node.
pub fn resume(id: &str, resume_key: &str) -> ResumeNode {
    ResumeNode { node_id: node(id), resume_key: Some(resume_key.to_owned()), output: None }
}

/// A node ended well.
pub fn succeed(id: &str, output: Value) -> SucceedNode {
    SucceedNode {
        node_id: node(id),
        attempt: None,
        output: Some(Arc::new(Json(output))),
        output_ref: None,
        inputs: None,
        changes: None,
    }
}

/// An attempt failed.
pub fn fail(id: &str, message: &str) -> FailNode {
    FailNode {
        node_id: node(id),
        attempt: None,
        error: Some(ErrorInfo::new("BOOM", message)),
        inputs: None,
        changes: None,
    }
}

/// Answers a loop or switch.
pub fn choose(id: &str, choice: Choice) -> ChooseNode {
    ChooseNode { node_id: node(id), choice }
}

/// Cancels one node.
pub fn cancel_node(id: &str) -> CancelNode {
    CancelNode { node_id: node(id), reason: None }
}

/// A worker ended an attempt that was asked to stop.
pub fn confirm_stopped(id: &str) -> ConfirmNodeStopped {
    ConfirmNodeStopped { node_id: node(id) }
}

/// Ends what did not end in time.
pub fn force_end() -> ForceEnd {
    ForceEnd {}
}

/// Fires what is due.
pub fn fire_timers() -> FireTimers {
    FireTimers {}
}

/// It cannot be run.
pub fn fail_execution(message: &str) -> FailExecution {
    FailExecution {
        error: ErrorInfo::new("FLOW_NOT_FOUND", message),
        dead_letter: Some(DeadLetter::FlowNotFound),
    }
}

/// Adds a label.
pub fn add_label(label: &str) -> AnnotateExecution {
    AnnotateExecution {
        add_labels: vec![label.to_owned()],
        remove_labels: Vec::new(),
        hidden: None,
        retried_by: None,
    }
}

/// What a foreign snapshot says.
pub fn import(status: ForeignStatus) -> ImportSnapshot {
    ImportSnapshot {
        status,
        input: Default::default(),
        worker: Some("py-worker".to_owned()),
        error: None,
        graph_id: "main".to_owned(),
        tag: None,
        labels: Vec::new(),
        tenant_id: None,
        api_key_id: None,
        workflow: None,
    }
}
