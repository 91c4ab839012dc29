//! CreateExecution, StartExecution, CancelExecution, ArchiveExecution, AnnotateExecution, FailExecution.

use pyoco_core::command::DeadLetter;
use pyoco_core::event::EventType::*;
use pyoco_core::ids::ExecutionId;
use pyoco_core::outcome::{Effect, Outcome, Reason};
use pyoco_core::state::{NodeStatus, Phase, Status};
use pyoco_testkit::*;
use serde_json::json;

fn unknown() -> Reason {
    Reason::UnknownExecution(ExecutionId::new("e-1").unwrap())
}

fn completed() -> Execution {
    Execution::started(&Graph::chain(&["a"], &external()).plan())
        .given(&caller(), start_node("a"))
        .given(&caller(), succeed("a", json!(1)))
}

#[test]
fn create_makes_an_execution_and_enqueues_nothing() {
    let made = Execution::new().when(&caller(), create()).then_effects(&[]).then(&[ExecutionCreated]);
    assert_eq!(made.state().phase, Phase::Created);
}

#[test]
fn create_and_start_in_one_record_asks_for_a_worker() {
    let mut command = create();
    command.start = true;
    let made = Execution::new()
        .when(&caller(), command)
        .then_effects(&[Effect::EnqueueJob(None)])
        .then(&[ExecutionCreated, ExecutionStarted]);
    assert_eq!(made.log().len(), 1);
}

#[test]
fn create_is_refused_when_the_execution_exists() {
    Execution::new()
        .given(&caller(), create())
        .when(&caller(), create())
        .then_rejected(&Reason::ExecutionExists);
}

#[test]
fn create_is_refused_after_a_cancel() {
    Execution::new()
        .given(&caller(), create())
        .given(&caller(), cancel())
        .when(&caller(), create())
        .then_rejected(&Reason::ExecutionExists);
}

#[test]
fn start_makes_the_first_nodes_ready() {
    let mut command = create();
    command.plan = Some(Graph::chain(&["a", "b"], &external()).plan());
    let started = Execution::new().given(&caller(), command).when(&caller(), start()).then(&[
        ExecutionStarted,
        NodeCreated,
        NodeReady,
    ]);
    assert_eq!(started.node("a"), NodeStatus::Ready);
    assert_eq!(started.node("b"), NodeStatus::Pending);
}

#[test]
fn start_is_refused_when_unknown_started_canceled_or_ended() {
    Execution::new().when(&caller(), start()).then_rejected(&unknown());
    let started = Execution::started(&Graph::chain(&["a"], &external()).plan());
    started.clone().when(&caller(), start()).then_rejected(&Reason::AlreadyStarted);
    let canceled = started.given(&caller(), cancel());
    canceled.when(&caller(), start()).then_rejected(&Reason::Ended(Status::Canceled));
    let claimed = Execution::claimed(&Graph::chain(&["a"], &callable()).plan()).given(&caller(), cancel());
    claimed.when(&caller(), start()).then_rejected(&Reason::CancelRequested);
    completed().when(&caller(), start()).then_rejected(&Reason::Ended(Status::Completed));
}

#[test]
fn an_empty_flow_completes_as_soon_as_it_is_claimed() {
    let ended = Execution::claimed(&Graph::new().plan());
    assert_eq!(ended.state().phase, Phase::Completed);
}

#[test]
fn cancel_of_an_unclaimed_execution_is_terminal_at_once() {
    let mut command = create();
    command.start = true;
    Execution::new()
        .given(&caller(), command)
        .when(&caller(), cancel())
        .then_effects(&[Effect::DropJob])
        .then(&[ExecutionCancelRequested, ExecutionCanceled]);
}

#[test]
fn cancel_of_a_claimed_execution_waits_for_its_worker() {
    let running = Execution::claimed(&Graph::chain(&["a", "b"], &callable()).plan())
        .given(&worker(1), start_node("a"))
        .when(&caller(), cancel())
        .then_effects(&[Effect::InterruptWorker(worker_id("w1"))])
        .then(&[ExecutionCancelRequested, NodeInterruptRequested]);
    assert_eq!(running.state().phase, Phase::Canceling);
    let ended = running.when(&worker(1), succeed("a", json!("A"))).then(&[NodeSucceeded, ExecutionCanceled]);
    assert_eq!(ended.node("a"), NodeStatus::Succeeded);
}

#[test]
fn cancel_between_two_tasks_is_ended_by_the_worker_letting_go() {
    Execution::claimed(&Graph::chain(&["a"], &callable()).plan())
        .given(&caller(), cancel())
        .when(&worker(1), drain())
        .then(&[ExecutionCanceled]);
}

#[test]
fn a_second_cancel_changes_nothing() {
    let running = Execution::claimed(&Graph::chain(&["a"], &callable()).plan())
        .given(&worker(1), start_node("a"))
        .given(&caller(), cancel());
    let running = running.when(&caller(), cancel()).then_nothing(&Outcome::AlreadyCanceling);
    let ended = running.given(&worker(1), confirm_stopped("a"));
    assert_eq!(ended.node("a"), NodeStatus::Canceled);
    ended.when(&caller(), cancel()).then_nothing(&Outcome::AlreadyCanceled);
}

#[test]
fn cancel_is_refused_when_unknown_or_ended_otherwise() {
    Execution::new().when(&caller(), cancel()).then_rejected(&unknown());
    completed().when(&caller(), cancel()).then_rejected(&Reason::Ended(Status::Completed));
}

#[test]
fn cancel_wins_over_a_failure_that_is_under_way() {
    let graph = Graph::new().task("a", callable()).task("b", callable()).plan();
    Execution::claimed(&graph)
        .given(&worker(1), start_node("a"))
        .given(&worker(1), start_node("b"))
        .when(&worker(1), fail("a", "boom"))
        .then(&[NodeFailReported, NodeFailed, ExecutionFailRequested])
        .given(&caller(), cancel())
        .when(&worker(1), fail("b", "bang"))
        .then(&[NodeFailReported, NodeFailed, ExecutionCanceled]);
}

#[test]
fn cancel_ends_waits_and_external_nodes_at_once() {
    let graph = Graph::new().task("ask", wait("k")).task("out", external()).plan();
    let ended =
        Execution::started(&graph).given(&caller(), start_node("out")).when(&caller(), cancel()).then(&[
            ExecutionCancelRequested,
            NodeInterruptRequested,
            NodeCanceled,
            NodeCanceled,
            ExecutionCanceled,
        ]);
    assert!(ended.state().nodes[&node("ask")].canceled_by_execution);
}

#[test]
fn archive_puts_an_ended_execution_away_once() {
    let archived = completed().when(&caller(), archive()).then(&[ExecutionArchived]);
    archived.when(&caller(), archive()).then_nothing(&Outcome::AlreadyArchived);
    let canceled = Execution::new().given(&caller(), create()).given(&caller(), cancel());
    let archived = canceled.when(&caller(), archive()).then(&[ExecutionArchived]);
    assert_eq!(archived.state().phase, Phase::Canceled);
}

#[test]
fn archive_is_refused_while_active() {
    Execution::new().when(&caller(), archive()).then_rejected(&unknown());
    let started = Execution::claimed(&Graph::chain(&["a"], &callable()).plan());
    started.clone().when(&caller(), archive()).then_rejected(&Reason::StillActive);
    started.given(&caller(), cancel()).when(&caller(), archive()).then_rejected(&Reason::StillActive);
}

#[test]
fn an_execution_has_sixty_four_labels_at_most() {
    let full =
        (0..64).fold(completed(), |made, number| made.given(&caller(), add_label(&format!("l{number}"))));
    assert_eq!(full.state().labels.len(), 64);
    // One that it has is no more than before.
    let full = full.when(&caller(), add_label("l7")).then_nothing(&Outcome::Unchanged);
    full.when(&caller(), add_label("one too many")).then_rejected(&Reason::TooManyLabels(64));
}

#[test]
fn labels_change_without_an_event_also_after_the_end() {
    let labelled = completed().when(&caller(), add_label("urgent")).then(&[]);
    assert_eq!(labelled.state().labels, ["urgent"]);
    assert_eq!(labelled.state().phase, Phase::Completed);
    labelled.when(&caller(), add_label("urgent")).then_nothing(&Outcome::Unchanged);
    Execution::new().when(&caller(), add_label("x")).then_rejected(&unknown());
    let canceled = Execution::new().given(&caller(), create()).given(&caller(), cancel());
    canceled.when(&caller(), add_label("late")).then(&[]);
}

#[test]
fn an_execution_that_cannot_be_run_fails_with_a_dead_letter() {
    let mut command = create();
    command.start = true;
    let created = Execution::new().given(&caller(), command);
    let letter =
        Effect::PublishDeadLetter { reason: DeadLetter::FlowNotFound, error: "no such flow".to_owned() };
    let failed = created
        .clone()
        .when(&worker(0), fail_execution("no such flow"))
        .then_effects(&[letter])
        .then(&[ExecutionFailed]);
    failed.when(&worker(0), fail_execution("again")).then_rejected(&Reason::Ended(Status::Failed));
    Execution::new().when(&worker(0), fail_execution("x")).then_rejected(&unknown());
    created
        .given(&caller(), cancel())
        .when(&worker(0), fail_execution("late"))
        .then_rejected(&Reason::Ended(Status::Canceled));
}

#[test]
fn an_execution_that_cannot_be_run_is_canceled_when_that_was_asked() {
    let claimed = Execution::claimed(&Graph::chain(&["a"], &callable()).plan()).given(&caller(), cancel());
    claimed.when(&worker(1), fail_execution("cannot load")).then(&[ExecutionCanceled]);
}
