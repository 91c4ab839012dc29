//! What each surface shows of the same execution.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    clippy::needless_pass_by_value,
    reason = "a test stops at the first surprise"
)]

mod explain;
mod graph;

use pyoco_core::ids::{Tag, TenantId};
use pyoco_core::json::Object;
use pyoco_core::plan::{FailPolicy, Policy};
use pyoco_core::state::NodeStatus;
use pyoco_core::time::Millis;
use pyoco_core::view::{ExecutionView, JobStatus, JobView, RunSnapshot, RunStatus, RunSummary};
use pyoco_testkit::*;
use serde_json::{Value, json};

fn run(execution: &Execution) -> Value {
    serde_json::to_value(RunSnapshot::of(execution.state(), None)).unwrap()
}

fn statuses(execution: &Execution) -> (RunStatus, JobStatus, String) {
    let state = execution.state();
    (RunStatus::of(state), JobView::of(state).status, ExecutionView::of(state).status.to_string())
}

#[test]
fn the_three_vocabularies_agree() {
    let plan = Graph::chain(&["a"], &callable()).plan();
    let mut command = create();
    command.start = true;
    let queued = Execution::new().given(&caller(), command);
    assert_eq!(statuses(&queued), (RunStatus::Pending, JobStatus::Pending, "ACTIVE".to_owned()));
    let claimed = queued.given(&worker(0), claim("j", Some(&plan)));
    assert_eq!(statuses(&claimed), (RunStatus::Running, JobStatus::Running, "ACTIVE".to_owned()));
    let canceling = claimed.clone().given(&worker(1), start_node("a")).given(&caller(), cancel());
    assert_eq!(statuses(&canceling), (RunStatus::Cancelling, JobStatus::Running, "ACTIVE".to_owned()));
    assert!(JobView::of(canceling.state()).cancel_requested_at.is_some());
    let canceled = canceling.given(&worker(1), confirm_stopped("a"));
    assert_eq!(statuses(&canceled), (RunStatus::Cancelled, JobStatus::Canceled, "CANCELED".to_owned()));
    let done = claimed.clone().given(&worker(1), start_node("a")).given(&worker(1), succeed("a", json!(1)));
    assert_eq!(statuses(&done), (RunStatus::Completed, JobStatus::Completed, "COMPLETED".to_owned()));
    let failed = claimed.given(&worker(1), start_node("a")).given(&worker(1), fail("a", "boom"));
    assert_eq!(statuses(&failed), (RunStatus::Failed, JobStatus::Failed, "FAILED".to_owned()));
}

#[test]
fn an_execution_driven_from_outside_runs_as_soon_as_a_node_does() {
    let started = Execution::started(&Graph::chain(&["a"], &external()).plan());
    assert_eq!(RunStatus::of(started.state()), RunStatus::Pending);
    assert_eq!(RunStatus::of(started.given(&caller(), start_node("a")).state()), RunStatus::Running);
}

#[test]
fn a_snapshot_has_every_field_of_the_contract() {
    let mut command = create();
    command.start = true;
    command.tag = Some(Tag::new("gpu").unwrap());
    command.labels = vec!["x".to_owned()];
    command.tenant_id = Some(TenantId::new("team").unwrap());
    command.api_key_id = Some("key1".to_owned());
    command.input = Object(json!({"n": 1}).as_object().unwrap().clone());
    command.workflow =
        Some(pyoco_core::command::Workflow { text: "flow: {graph: a}".into(), sha256: "abc".to_owned() });
    let execution = Execution::new().given(&caller(), command);
    let shown = run(&execution);
    for field in [
        "run_id",
        "flow_name",
        "tag",
        "tags",
        "tenant_id",
        "api_key_id",
        "workflow_yaml_sha256",
        "workflow_yaml_bytes",
        "status",
        "params",
        "tasks",
        "task_records",
        "start_time",
        "end_time",
        "heartbeat_at",
        "updated_at",
        "error",
        "cancel_requested_at",
        "cancel_requested_by",
        "version",
    ] {
        assert!(shown.get(field).is_some(), "{field}");
    }
    assert_eq!(shown["workflow_yaml_bytes"], json!(16));
    assert_eq!(shown["params"], json!({"n": 1}));
    assert_eq!(shown["start_time"], Value::Null);
    assert_eq!(shown["updated_at"], json!(1_700_000_000.0));
    let summary = serde_json::to_value(RunSummary::of(execution.state(), None)).unwrap();
    assert_eq!(summary["tag"], json!("gpu"));
    assert!(summary.get("task_records").is_none());
}

#[test]
fn tasks_show_their_record_and_each_attempt() {
    let policy = Policy { retries: 1, ..Policy::default() };
    let plan = Graph::new().task_with("a", callable(), policy).plan();
    let between =
        Execution::claimed(&plan).given(&worker(1), start_node("a")).given(&worker(1), fail("a", "first"));
    assert_eq!(run(&between)["tasks"]["a"], json!("RUNNING"), "between two attempts a task runs");
    let done = between
        .later(Millis(10))
        .given(&worker(1), start_node("a"))
        .given(&worker(1), succeed("a", json!([1])));
    let record = &run(&done)["task_records"]["a"];
    assert_eq!(record["state"], json!("SUCCEEDED"));
    assert_eq!(record["error"], Value::Null);
    assert_eq!(record["output"], json!([1]));
    assert_eq!(record["attempts"][0]["state"], json!("FAILED"));
    assert_eq!(record["attempts"][0]["error"], json!("first"));
    assert_eq!(record["attempts"][1]["state"], json!("SUCCEEDED"));
    assert!(record["duration_ms"].as_f64().unwrap() > 0.0);
}

#[test]
fn what_a_cancel_leaves_behind_is_canceled_and_what_a_failure_leaves_is_pending() {
    let chain = Graph::chain(&["a", "b", "c"], &callable()).plan();
    let running = Execution::claimed(&chain).given(&worker(1), start_node("a"));
    let canceled = running.clone().given(&caller(), cancel()).given(&worker(1), succeed("a", json!(1)));
    assert_eq!(run(&canceled)["tasks"], json!({"a": "SUCCEEDED", "b": "CANCELLED", "c": "CANCELLED"}));
    assert!(run(&canceled)["task_records"]["b"]["ended_at"].is_number());
    let view = ExecutionView::of(canceled.state());
    assert!(
        view.nodes
            .iter()
            .skip(1)
            .all(|node| node.status == NodeStatus::Canceled && node.canceled_by_execution)
    );
    let failed = running.given(&worker(1), fail("a", "boom"));
    assert_eq!(run(&failed)["tasks"], json!({"a": "FAILED", "b": "PENDING", "c": "PENDING"}));
    assert_eq!(run(&failed)["error"], json!("boom"));
}

#[test]
fn an_inherited_failure_shows_no_error_of_its_own() {
    let isolate = Policy { fail: FailPolicy::Isolate, ..Policy::default() };
    let plan = Graph::new().task_with("a", callable(), isolate).task("b", callable()).edge("a", "b").plan();
    let done =
        Execution::claimed(&plan).given(&worker(1), start_node("a")).given(&worker(1), fail("a", "boom"));
    let shown = run(&done);
    assert_eq!(shown["status"], json!("COMPLETED"));
    assert_eq!(shown["error"], json!("boom"));
    assert_eq!(shown["task_records"]["b"]["state"], json!("FAILED"));
    assert_eq!(shown["task_records"]["b"]["error"], Value::Null);
    assert_eq!(shown["task_records"]["b"]["ended_at"], Value::Null);
}

#[test]
fn a_waiting_run_says_what_it_waits_for() {
    let waiting =
        Execution::claimed(&Graph::new().task("ask", wait("approval-1")).plan()).given(&worker(1), park());
    let shown = run(&waiting);
    assert_eq!(shown["status"], json!("RUNNING"));
    assert_eq!(shown["tasks"]["ask"], json!("RUNNING"));
    assert_eq!(shown["waiting"][0]["wait_key"], json!("approval-1"));
    let view = ExecutionView::of(waiting.state());
    assert_eq!(view.nodes[0].waiting.as_ref().unwrap().wait_key.as_deref(), Some("approval-1"));
}

#[test]
fn a_snapshot_over_its_limit_keeps_the_states_and_drops_the_records() {
    let running =
        Execution::claimed(&Graph::chain(&["a", "b"], &callable()).plan()).given(&worker(1), start_node("a"));
    let done = running.given(&worker(1), succeed("a", json!("x".repeat(10_000))));
    let full = RunSnapshot::of(done.state(), None).to_json(262_144);
    assert!(full.len() > 10_000);
    let cut: Value = serde_json::from_slice(&RunSnapshot::of(done.state(), None).to_json(4_000)).unwrap();
    assert_eq!(cut["task_records"], json!({}));
    assert_eq!(cut["task_records_truncated"], json!(true));
    assert_eq!(cut["tasks"], json!({"a": "SUCCEEDED", "b": "PENDING"}));
    let full: Value = serde_json::from_slice(&full).unwrap();
    assert!(full.get("task_records_truncated").is_none());
}

#[test]
fn a_deleted_job_is_no_job_and_stays_an_execution() {
    let mut hide = add_label("x");
    hide.hidden = Some(true);
    let done = Execution::new().given(&caller(), create()).given(&caller(), cancel()).given(&caller(), hide);
    assert!(JobView::is_deleted(done.state()));
    assert_eq!(ExecutionView::of(done.state()).status.to_string(), "CANCELED");
}

#[test]
fn a_failed_run_shows_nothing_as_running_or_waiting() {
    let retry = Policy { retries: 1, ..Policy::default() };
    let plan =
        Graph::new().task("a", callable()).task_with("b", callable(), retry).task("ask", wait("k")).plan();
    let failed = Execution::claimed(&plan)
        .given(&worker(1), start_node("a"))
        .given(&worker(1), start_node("b"))
        .given(&worker(1), fail("b", "first"))
        .given(&worker(1), fail("a", "boom"));
    let shown = run(&failed);
    assert_eq!(shown["tasks"], json!({"a": "FAILED", "b": "FAILED", "ask": "CANCELLED"}));
    assert!(shown.get("waiting").is_none());
    let nodes = ExecutionView::of(failed.state()).nodes;
    assert!(nodes.iter().all(|node| !matches!(node.status, NodeStatus::Running | NodeStatus::Waiting)));
}
