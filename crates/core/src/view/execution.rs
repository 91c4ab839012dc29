//! The `/executions` view: camelCase, RFC 3339, `CANCELED` with one l.

use std::sync::Arc;

use serde::Serialize;

use super::shown_status;
use crate::event::{ErrorInfo, Party};
use crate::ids::{Attempt, NodeId, Tag, TenantId, WorkerId};
use crate::json::Json;
use crate::state::{NodeState, NodeStatus, Phase, State, Status};
use crate::time::Timestamp;
use crate::wheels::UsedWheel;

/// An execution with its nodes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionView {
    /// Its id.
    pub execution_id: String,
    /// Which graph it runs.
    pub graph_id: String,
    /// Which version of it, when it is a registered one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graph_version: Option<u64>,
    /// Where it stands.
    pub status: Status,
    /// When a cancel was requested.
    pub cancel_requested_at: Option<Timestamp>,
    /// Who requested it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel_requested_by: Option<Party>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel_reason: Option<String>,
    /// When it was created.
    pub created_at: Option<Timestamp>,
    /// When it was allowed to run.
    pub started_at: Option<Timestamp>,
    /// When anything about it changed last.
    pub updated_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// When it was put away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archived_at: Option<Timestamp>,
    /// Its parameters.
    pub input: serde_json::Value,
    /// Which workers may run it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<Tag>,
    /// Its labels.
    pub tags: Vec<String>,
    /// Whose it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<TenantId>,
    /// Who runs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<WorkerId>,
    /// It holds no worker: everything that is open waits for somebody.
    pub parked: bool,
    /// What ended it badly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorInfo>,
    /// The node whose failure it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_node_id: Option<NodeId>,
    /// The execution it repeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_of: Option<String>,
    /// The execution that repeats it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retried_by: Option<String>,
    /// The trace that its caller was in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// The number of the last event it shows.
    pub seq: u64,
    /// What its author should know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The wheels that it runs with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wheels: Option<Arc<[UsedWheel]>>,
    /// Its nodes: those of the plan, then those that loops unfolded.
    pub nodes: Vec<NodeView>,
}

/// One node.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeView {
    /// Its id.
    pub node_id: NodeId,
    /// Its kind.
    pub node_type: String,
    /// What it is.
    pub status: NodeStatus,
    /// It was canceled because its execution was.
    pub canceled_by_execution: bool,
    /// The last attempt that started.
    pub attempt: Attempt,
    /// When its first attempt started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it settled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// When its next attempt may start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Timestamp>,
    /// Who runs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<WorkerId>,
    /// How far it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<f64>,
    /// What it says about that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<WaitingView>,
    /// What it produced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    /// What failed last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorInfo>,
}

/// What a node waits for.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitingView {
    /// Since when.
    pub since: Timestamp,
    /// What a resume must name.
    pub wait_key: Option<String>,
    /// A hint for the person.
    pub prompt: Option<Json>,
}

impl ExecutionView {
    /// The execution as it is.
    pub fn of(state: &State) -> Self {
        let origin = state.origin.as_deref();
        let cancel = state.cancel.as_ref();
        let failure = state.failure.as_ref().filter(|_| state.phase != Phase::Canceled);
        Self {
            execution_id: state.id.to_string(),
            graph_id: origin.map(|origin| origin.flow.clone()).unwrap_or_default(),
            graph_version: origin.and_then(|origin| origin.graph_version),
            status: state.phase.status(),
            cancel_requested_at: cancel.map(|cancel| cancel.at),
            cancel_requested_by: cancel.and_then(|cancel| cancel.by.clone()),
            cancel_reason: cancel.and_then(|cancel| cancel.reason.clone()),
            created_at: origin.map(|origin| origin.at),
            started_at: state.started_at,
            updated_at: state.updated_at,
            ended_at: state.ended_at,
            archived_at: state.archived_at,
            input: state.params(),
            tag: origin.and_then(|origin| origin.tag.clone()),
            tags: state.labels.clone(),
            tenant_id: origin.and_then(|origin| origin.tenant.clone()),
            worker_id: state.claim.as_ref().map(|claim| claim.worker.clone()),
            parked: state.is_parked(),
            error: failure.map(|failure| failure.error.clone()),
            failed_node_id: failure.and_then(|failure| failure.node.clone()),
            retry_of: origin.and_then(|origin| origin.retry_of.as_ref()).map(ToString::to_string),
            retried_by: state.retried_by.as_ref().map(ToString::to_string),
            traceparent: origin.and_then(|origin| origin.traceparent.clone()),
            seq: state.events.0,
            warnings: state.plan.as_ref().map(|plan| plan.warnings.clone()).unwrap_or_default(),
            wheels: state.wheels.clone(),
            nodes: nodes_of(state),
        }
    }
}

fn nodes_of(state: &State) -> Vec<NodeView> {
    let planned = state.plan.iter().flat_map(|plan| plan.root.nodes().iter().map(move |node| (plan, node)));
    let mut nodes: Vec<NodeView> = planned
        .map(|(plan, node)| {
            let id = NodeId::within("", &node.name);
            let reached = state.nodes.get(&id);
            view(state, id, reached, || State::node_type(node, plan).to_owned())
        })
        .collect();
    let is_planned = |node: &NodeState| node.place.is_some_and(|place| place.frame.0 == 0);
    let unfolded = state.nodes.iter().filter(|(_, node)| !is_planned(node));
    nodes.extend(unfolded.map(|(id, node)| view(state, id.clone(), Some(node), || node.node_type.clone())));
    nodes
}

fn view(
    state: &State,
    node_id: NodeId,
    node: Option<&NodeState>,
    node_type: impl Fn() -> String,
) -> NodeView {
    let status = shown_status(state, node);
    let never = NodeState::default();
    let node = node.unwrap_or(&never);
    let derived = status == NodeStatus::Canceled && node.status != NodeStatus::Canceled;
    NodeView {
        node_id,
        node_type: node_type(),
        status,
        canceled_by_execution: node.canceled_by_execution || (derived && state.cancel.is_some()),
        attempt: node.attempt,
        started_at: node.started_at,
        ended_at: node.ended_at.or_else(|| state.cancel.as_ref().map(|cancel| cancel.at).filter(|_| derived)),
        retry_at: node.retry_at.filter(|_| status == NodeStatus::Ready),
        worker_id: node.worker.clone(),
        progress: node.progress,
        message: node.message.clone(),
        waiting: node.waiting.as_ref().filter(|_| status == NodeStatus::Waiting).map(|waiting| WaitingView {
            since: waiting.since,
            wait_key: waiting.key.clone(),
            prompt: waiting.prompt.clone(),
        }),
        output: node.output.value.as_ref().map(|value| (**value).clone()),
        error: node.error.clone(),
    }
}
