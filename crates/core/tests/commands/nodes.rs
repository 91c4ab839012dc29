//! StartNode, ReportNodeProgress, PutNodeWaiting, ResumeNode, SucceedNode, FailNode, CancelNode.

use pyoco_core::command::{Command, Issuer};
use pyoco_core::event::EventType::*;
use pyoco_core::ids::{Attempt, Epoch};
use pyoco_core::outcome::{Effect, Outcome, Reason};
use pyoco_core::plan::{FailPolicy, Policy};
use pyoco_core::state::{NodeStatus, Phase, Status};
use pyoco_core::time::Millis;
use pyoco_testkit::*;
use serde_json::json;

fn two() -> Execution {
    Execution::started(&Graph::chain(&["a", "b"], &external()).plan())
}

fn running() -> Execution {
    two().given(&caller(), start_node("a"))
}

fn is(id: &str, status: NodeStatus) -> Reason {
    Reason::NodeIs { node: node(id), status }
}

fn progressing_commands() -> Vec<Command> {
    vec![
        start_node("a").into(),
        progress("a", 1.0).into(),
        put_waiting("a", "k").into(),
        resume("a", "k").into(),
        succeed("a", json!(1)).into(),
        fail("a", "boom").into(),
    ]
}

#[test]
fn start_begins_the_first_attempt() {
    let started = two().when(&caller(), start_attempt("a", 1)).then(&[NodeStarted]);
    assert_eq!(started.node("a"), NodeStatus::Running);
}

#[test]
fn start_is_refused_before_dependencies_for_unknown_nodes_and_wrong_attempts() {
    two().when(&caller(), start_node("b")).then_rejected(&Reason::NodeNotReached(node("b")));
    two().when(&caller(), start_node("zz")).then_rejected(&Reason::UnknownNode(node("zz")));
    let wrong = Reason::WrongAttempt { expected: Attempt(1), given: Attempt(2) };
    two().when(&caller(), start_attempt("a", 2)).then_rejected(&wrong);
    running().when(&caller(), start_node("a")).then_rejected(&is("a", NodeStatus::Running));
}

#[test]
fn nothing_is_driven_before_the_execution_is_started() {
    for command in progressing_commands() {
        let mut made = create();
        made.plan = Some(Graph::chain(&["a"], &external()).plan());
        Execution::new().given(&caller(), made).when(&caller(), command).then_rejected(&Reason::NotStarted);
    }
}

#[test]
fn after_a_cancel_request_callers_are_refused() {
    // An external node beside a worker's task: the cancel is under way until the worker has stopped.
    let graph = Graph::new().task("a", external()).task("w", callable()).plan();
    for command in progressing_commands() {
        let canceling = Execution::claimed(&graph)
            .given(&worker(1), start_node("w"))
            .given(&caller(), start_node("a"))
            .given(&caller(), cancel());
        assert_eq!(canceling.state().phase, Phase::Canceling);
        let canceling = canceling.when(&caller(), command.clone()).then_rejected(&Reason::CancelRequested);
        let canceled = canceling.given(&worker(1), confirm_stopped("w"));
        canceled.when(&caller(), command).then_rejected(&Reason::Ended(Status::Canceled));
    }
}

#[test]
fn progress_changes_nothing_but_what_is_shown() {
    let shown = running().when(&caller(), progress("a", 42.0)).then(&[NodeProgressReported]);
    assert_eq!(shown.state().nodes[&node("a")].progress, Some(42.0));
    running().when(&caller(), progress("a", 101.0)).then_rejected(&Reason::ProgressOutOfRange);
    running().when(&caller(), progress("a", -1.0)).then_rejected(&Reason::ProgressOutOfRange);
    running().when(&caller(), progress("a", f64::NAN)).then_rejected(&Reason::ProgressOutOfRange);
    two().when(&caller(), progress("a", 1.0)).then_rejected(&is("a", NodeStatus::Ready));
}

#[test]
fn a_running_node_waits_and_runs_on_when_it_is_resumed() {
    let waiting = running().when(&caller(), put_waiting("a", "approval")).then(&[NodeWaiting]);
    let waiting = waiting.when(&caller(), resume("a", "other")).then_rejected(&Reason::WrongResumeKey);
    let waiting = waiting.when(&caller(), put_waiting("a", "x")).then_rejected(&is("a", NodeStatus::Waiting));
    let resumed = waiting.when(&caller(), resume("a", "approval")).then(&[NodeResumeRequested, NodeResumed]);
    assert_eq!(resumed.node("a"), NodeStatus::Running);
    resumed.when(&caller(), resume("a", "approval")).then_rejected(&is("a", NodeStatus::Running));
    two().when(&caller(), put_waiting("a", "x")).then_rejected(&is("a", NodeStatus::Ready));
}

#[test]
fn a_wait_node_waits_by_itself_and_ends_with_the_answer() {
    let graph = Graph::new().task("ask", wait("k")).task("next", external()).edge("ask", "next").plan();
    let waiting = Execution::started(&graph);
    assert_eq!(waiting.node("ask"), NodeStatus::Waiting);
    let mut answer = resume("ask", "k");
    answer.output = Some(std::sync::Arc::new(json!({"approved": true}).into()));
    let resumed = waiting.when(&caller(), answer).then(&[
        NodeResumeRequested,
        NodeResumed,
        NodeSucceeded,
        NodeCreated,
        NodeReady,
    ]);
    let results = resumed.state().context.root(pyoco_core::state::Root::Results);
    assert_eq!(results, &json!({"ask": {"approved": true}}));
}

#[test]
fn success_makes_the_next_node_ready_and_ends_the_last() {
    let next =
        running().when(&caller(), succeed("a", json!("A"))).then(&[NodeSucceeded, NodeCreated, NodeReady]);
    let next = next.given(&caller(), start_node("b"));
    let done = next.when(&caller(), succeed("b", json!("B"))).then(&[NodeSucceeded, ExecutionCompleted]);
    done.when(&caller(), succeed("b", json!("B"))).then_rejected(&Reason::Ended(Status::Completed));
    two().when(&caller(), succeed("a", json!(1))).then_rejected(&is("a", NodeStatus::Ready));
}

#[test]
fn a_callers_success_cannot_name_opaque_bytes() {
    let mut command = succeed("a", json!(1));
    let digest = pyoco_core::digest::Digest::of_bytes(b"x");
    let encoding = pyoco_core::event::Encoding::Pickle;
    command.output_ref = Some(pyoco_core::event::BlobRef { digest, size: 1, encoding });
    running().when(&caller(), command).then_rejected(&Reason::OnlyAWorker);
}

#[test]
fn failure_without_retries_fails_the_execution() {
    let failed =
        running().when(&caller(), fail("a", "boom")).then(&[NodeFailReported, NodeFailed, ExecutionFailed]);
    assert_eq!(failed.state().last_error.as_deref(), Some("boom"));
    assert_eq!(failed.state().failure.as_ref().unwrap().node, Some(node("a")));
    assert_eq!(failed.node("b"), NodeStatus::Pending);
    two().when(&caller(), fail("a", "x")).then_rejected(&is("a", NodeStatus::Ready));
}

#[test]
fn a_retry_waits_for_its_pause_and_success_clears_the_error() {
    let policy = Policy { retries: 1, retry_delay: Millis(1000), ..Policy::default() };
    let plan = Graph::new().task_with("a", external(), policy).plan();
    let failed = Execution::started(&plan)
        .given(&caller(), start_node("a"))
        .when(&caller(), fail("a", "first"))
        .then(&[NodeFailReported]);
    let due = failed.state().next_timer().expect("a retry is due");
    let failed = failed.when(&caller(), start_node("a")).then_rejected(&Reason::RetryNotDue(due));
    let again = failed.later(Millis(1000)).when(&caller(), start_attempt("a", 2)).then(&[NodeStarted]);
    let done = again.when(&caller(), succeed("a", json!(1))).then(&[NodeSucceeded, ExecutionCompleted]);
    assert_eq!(done.state().last_error, None);
    assert_eq!(done.state().tasks[0].attempts.len(), 2);
    assert_eq!(done.state().tasks[0].error, None);
}

#[test]
fn the_last_failed_attempt_is_the_failure() {
    let policy = Policy { retries: 1, ..Policy::default() };
    let plan = Graph::new().task_with("a", external(), policy).plan();
    Execution::started(&plan)
        .given(&caller(), start_node("a"))
        .given(&caller(), fail("a", "first"))
        .given(&caller(), start_node("a"))
        .when(&caller(), fail("a", "second"))
        .then(&[NodeFailReported, NodeFailed, ExecutionFailed]);
}

#[test]
fn an_isolated_failure_fails_what_depends_on_it_and_nothing_else() {
    let isolate = Policy { fail: FailPolicy::Isolate, ..Policy::default() };
    let plan = Graph::new()
        .task_with("a", external(), isolate)
        .task("b", external())
        .task("c", external())
        .task("d", external())
        .edge("a", "b")
        .edge("b", "c")
        .plan();
    let failed =
        Execution::started(&plan).given(&caller(), start_node("a")).when(&caller(), fail("a", "boom"));
    let failed =
        failed.then(&[NodeFailReported, NodeFailed, NodeCreated, NodeFailed, NodeCreated, NodeFailed]);
    let done = failed.given(&caller(), start_node("d")).when(&caller(), succeed("d", json!(1)));
    let done = done.then(&[NodeSucceeded, ExecutionCompleted]);
    assert_eq!(done.state().last_error.as_deref(), Some("boom"));
    assert_eq!(done.node("c"), NodeStatus::Failed);
}

#[test]
fn a_stop_failure_lets_running_tasks_finish_and_starts_nothing_more() {
    let plan =
        Graph::new().task("a", external()).task("b", external()).task("c", external()).edge("b", "c").plan();
    let failing = Execution::started(&plan)
        .given(&caller(), start_node("a"))
        .given(&caller(), start_node("b"))
        .given(&caller(), fail("a", "boom"));
    assert_eq!(failing.state().phase, Phase::Failing);
    let failed = failing.when(&caller(), succeed("b", json!(1))).then(&[NodeSucceeded, ExecutionFailed]);
    assert_eq!(failed.node("c"), NodeStatus::Pending);
    assert_eq!(failed.state().last_error.as_deref(), Some("boom"));
}

#[test]
fn workers_and_callers_drive_their_own_nodes_only() {
    let graph = Graph::new().task("out", external()).task("in", callable()).plan();
    let claimed = Execution::claimed(&graph);
    claimed.clone().when(&caller(), start_node("in")).then_rejected(&Reason::BelongsToWorker(node("in")));
    claimed.clone().when(&worker(1), start_node("out")).then_rejected(&Reason::BelongsToCaller(node("out")));
    let fenced = Reason::Fenced { held: Epoch(0), current: Epoch(1) };
    claimed.when(&worker(0), start_node("in")).then_rejected(&fenced);
}

#[test]
fn one_node_is_canceled_and_the_rest_goes_on() {
    let graph =
        Graph::new().task("a", external()).task("b", external()).task("c", external()).edge("a", "b").plan();
    let canceled = Execution::started(&graph).when(&caller(), cancel_node("a")).then(&[
        NodeCancelRequested,
        NodeCanceled,
        NodeCreated,
        NodeCanceled,
    ]);
    assert_eq!(canceled.node("b"), NodeStatus::Canceled);
    assert!(!canceled.state().nodes[&node("a")].canceled_by_execution);
    canceled.clone().when(&caller(), cancel_node("a")).then_rejected(&is("a", NodeStatus::Canceled));
    let done = canceled.given(&caller(), start_node("c")).given(&caller(), succeed("c", json!(1)));
    assert_eq!(done.state().phase, Phase::Completed);
    done.when(&caller(), cancel_node("c")).then_rejected(&Reason::Ended(Status::Completed));
}

#[test]
fn a_running_worker_task_is_asked_to_stop_and_confirms() {
    let graph = Graph::chain(&["a"], &callable()).plan();
    let asked = Execution::claimed(&graph)
        .given(&worker(1), start_node("a"))
        .when(&caller(), cancel_node("a"))
        .then_effects(&[Effect::InterruptWorker(worker_id("w1"))])
        .then(&[NodeCancelRequested, NodeInterruptRequested]);
    let asked = asked.when(&caller(), cancel_node("a")).then_nothing(&Outcome::Unchanged);
    asked.clone().when(&caller(), confirm_stopped("a")).then_rejected(&Reason::OnlyAWorker);
    asked.when(&worker(1), confirm_stopped("a")).then(&[NodeCanceled, ExecutionCompleted]);
}

#[test]
fn nobody_confirms_a_stop_that_was_not_asked_for() {
    let claimed =
        Execution::claimed(&Graph::chain(&["a"], &callable()).plan()).given(&worker(1), start_node("a"));
    claimed.when(&worker(1), confirm_stopped("a")).then_rejected(&is("a", NodeStatus::Running));
}

#[test]
fn one_node_cannot_be_canceled_when_the_whole_execution_is() {
    let canceling = Execution::claimed(&Graph::chain(&["a"], &callable()).plan())
        .given(&worker(1), start_node("a"))
        .given(&caller(), cancel());
    canceling.when(&caller(), cancel_node("a")).then_rejected(&Reason::CancelRequested);
}

#[test]
fn the_scheduler_is_no_way_around_ownership_of_commands() {
    let running = running();
    running.when(&Issuer::Scheduler, confirm_stopped("a")).then_rejected(&Reason::OnlyAWorker);
}

#[test]
fn a_null_output_is_no_output() {
    let done = running().given(&caller(), succeed("a", json!(null)));
    let results = done.state().context.root(pyoco_core::state::Root::Results);
    assert_eq!(results, &json!({"a": null}));
}

#[test]
fn the_first_failure_is_the_one_that_is_shown() {
    let plan = Graph::new().task("a", external()).task("b", external()).plan();
    let failed = Execution::started(&plan)
        .given(&caller(), start_node("a"))
        .given(&caller(), start_node("b"))
        .given(&caller(), fail("a", "first"))
        .given(&caller(), fail("b", "second"));
    assert_eq!(failed.state().last_error.as_deref(), Some("first"));
}

#[test]
fn a_worker_does_not_put_its_task_to_wait() {
    let claimed =
        Execution::claimed(&Graph::chain(&["a"], &callable()).plan()).given(&worker(1), start_node("a"));
    claimed.when(&worker(1), put_waiting("a", "k")).then_rejected(&Reason::CannotWait(node("a")));
}

#[test]
fn the_cancel_of_one_node_survives_the_loss_of_its_worker() {
    let plan = Graph::new().task("a", callable()).task("b", callable()).plan();
    let asked =
        Execution::claimed(&plan).given(&worker(1), start_node("a")).given(&caller(), cancel_node("a"));
    let taken = asked.clone().when(&worker(0), claim("job-1", None)).then(&[NodeCanceled]);
    assert_eq!(taken.node("a"), NodeStatus::Canceled);
    let released = asked.when(&worker(1), drain()).then(&[NodeCanceled]);
    assert_eq!(released.node("a"), NodeStatus::Canceled);
}

#[test]
fn a_person_is_asked_once_and_a_wait_can_run_out() {
    let policy = Policy { retries: 3, timeout: Some(Millis(1000)), ..Policy::default() };
    let waiting = Execution::started(&Graph::new().task_with("ask", wait("k"), policy).plan());
    let refused = waiting.clone().when(&caller(), fail("ask", "denied"));
    refused.then(&[NodeFailReported, NodeFailed, ExecutionFailed]);
    let due = waiting.state().next_timer().expect("a wait with a deadline");
    let late = waiting.later(Millis(1000));
    assert!(late.now() >= due);
    late.when(&Issuer::Scheduler, fire_timers()).then(&[NodeFailReported, NodeFailed, ExecutionFailed]);
}

#[test]
fn time_spent_waiting_for_a_person_does_not_count_against_a_callers_node() {
    let policy = Policy { timeout: Some(Millis(1000)), ..Policy::default() };
    let waiting = Execution::started(&Graph::new().task_with("a", external(), policy).plan())
        .given(&caller(), start_node("a"))
        .given(&caller(), put_waiting("a", "k"))
        .later(Millis(5000));
    let waiting = waiting.when(&Issuer::Scheduler, fire_timers()).then_nothing(&Outcome::Unchanged);
    let resumed = waiting.given(&caller(), resume("a", "k"));
    let resumed = resumed.when(&Issuer::Scheduler, fire_timers()).then_nothing(&Outcome::Unchanged);
    resumed.later(Millis(1000)).when(&Issuer::Scheduler, fire_timers()).then_phase(Phase::Failed);
}

#[test]
fn a_node_that_also_waits_for_something_outside_never_starts() {
    for policy in [None, Some(pyoco_core::plan::JoinPolicy::AnySuccess)] {
        let mut builder = pyoco_core::plan::BlockBuilder::new();
        let task = |n| pyoco_core::plan::Kind::Task(pyoco_core::plan::TaskIndex(n));
        let (a, b) = (builder.add("a", task(0)), builder.add("b", task(1)));
        builder.depend(b, a);
        builder.depend_outside(b);
        let any = policy.is_some();
        if let Some(policy) = policy {
            builder.join(b, policy);
        }
        let tasks = ["a", "b"].map(|name| pyoco_core::plan::TaskSpec::new(name, external())).to_vec();
        let plan =
            pyoco_core::plan::Plan::new("main".to_owned(), tasks, builder.finish(false).block).unwrap();
        let done = Execution::started(&std::sync::Arc::new(plan))
            .given(&caller(), start_node("a"))
            .given(&caller(), succeed("a", json!(1)));
        // Any of them is enough, also when another can never come.
        assert_eq!(done.node("b"), if any { NodeStatus::Ready } else { NodeStatus::Pending });
        assert_eq!(done.state().phase, if any { Phase::Started } else { Phase::Failed });
    }
}
