//! ClaimExecution, ReleaseExecution, ImportSnapshot: who holds an execution, and who does not any more.

use pyoco_core::command::{ClaimExecution, ForeignStatus, Issuer};
use pyoco_core::decide::MAX_LOST_CLAIMS;
use pyoco_core::event::EventType::*;
use pyoco_core::ids::{Epoch, ExecutionId};
use pyoco_core::outcome::{Effect, Outcome, Reason};
use pyoco_core::plan::{Policy, Runner};
use pyoco_core::state::{AttemptEnd, NodeStatus, Phase, Status};
use pyoco_core::wheels::UsedWheel;
use pyoco_testkit::*;
use serde_json::json;

fn plan() -> std::sync::Arc<pyoco_core::plan::Plan> {
    Graph::chain(&["a", "b"], &callable()).plan()
}

fn queued() -> Execution {
    let mut command = create();
    command.start = true;
    Execution::new().given(&caller(), command)
}

fn foreign() -> Issuer {
    Issuer::Foreign { id: None }
}

#[test]
fn a_claim_raises_the_epoch_and_fixes_the_plan() {
    let when = queued().when(&worker(0), claim("job-1", Some(&plan())));
    assert_eq!(when.answer.as_ref().unwrap().outcome, Outcome::Claimed(Epoch(1)));
    let claimed = when.then(&[NodeCreated, NodeReady]);
    let records = claimed.records();
    assert_eq!(records[1].claim.as_ref().unwrap().epoch, Epoch(1));
    assert_eq!(records[1].plan.as_deref(), Some(&*plan()));
}

#[test]
fn the_first_claim_has_to_bring_a_plan_and_later_ones_cannot_change_it() {
    queued().when(&worker(0), claim("job-1", None)).then_rejected(&Reason::PlanMissing);
    let other = Graph::chain(&["z"], &callable()).plan();
    let again = Execution::claimed(&plan()).given(&worker(0), claim("job-1", Some(&other)));
    assert_eq!(again.state().plan.as_deref(), Some(&*plan()));
}

#[test]
fn a_claim_is_refused_while_another_is_live_and_taken_over_on_redelivery_or_expiry() {
    let claimed = Execution::claimed(&plan());
    claimed.clone().when(&worker(0), claim("job-2", None)).then_rejected(&Reason::ClaimHeld(worker_id("w1")));
    let redelivered = claimed.clone().when(&worker(0), claim("job-1", None));
    assert_eq!(redelivered.answer.unwrap().outcome, Outcome::Claimed(Epoch(2)));
    let expired = ClaimExecution { owner_expired: true, ..claim("job-2", None) };
    assert_eq!(claimed.when(&worker(0), expired).answer.unwrap().outcome, Outcome::Claimed(Epoch(2)));
}

#[test]
fn a_claim_of_something_unknown_unstarted_or_ended_takes_nothing() {
    let unknown = Reason::UnknownExecution(ExecutionId::new("e-1").unwrap());
    Execution::new().when(&worker(0), claim("j", None)).then_rejected(&unknown);
    Execution::new()
        .given(&caller(), create())
        .when(&worker(0), claim("j", None))
        .then_rejected(&Reason::NotStarted);
    let canceled = queued().given(&caller(), cancel());
    canceled.when(&worker(0), claim("j", None)).then_nothing(&Outcome::AlreadyEnded(Status::Canceled));
}

#[test]
fn a_claim_after_a_cancel_request_ends_it_without_running_anything() {
    let canceling = Execution::claimed(&plan()).given(&worker(1), start_node("a")).given(&caller(), cancel());
    let when = canceling.when(&worker(0), claim("job-1", None));
    assert_eq!(when.answer.as_ref().unwrap().outcome, Outcome::AlreadyEnded(Status::Canceled));
    when.then(&[ExecutionCanceled]);
}

#[test]
fn a_takeover_keeps_what_succeeded_and_repeats_what_was_lost_without_counting_it() {
    let lost = Execution::claimed(&plan())
        .given(&worker(1), start_node("a"))
        .given(&worker(1), succeed("a", json!("A")))
        .given(&worker(1), start_node("b"))
        .given(&worker(0), claim("job-1", None));
    assert_eq!(lost.node("a"), NodeStatus::Succeeded);
    assert_eq!(lost.node("b"), NodeStatus::Ready);
    let again = lost.given(&worker(2), start_attempt("b", 2));
    assert!(matches!(again.state().tasks[1].attempts[0].end, Some(AttemptEnd::Lost(_))));
    let done = again.given(&worker(2), succeed("b", json!("B")));
    assert_eq!(done.state().phase, Phase::Completed);
}

#[test]
fn a_worker_that_lost_its_claim_changes_nothing() {
    let taken = Execution::claimed(&plan())
        .given(&worker(1), start_node("a"))
        .given(&worker(0), claim("job-1", None));
    let fenced = Reason::Fenced { held: Epoch(1), current: Epoch(2) };
    taken.clone().when(&worker(1), succeed("a", json!(1))).then_rejected(&fenced);
    taken.clone().when(&worker(1), fail("a", "x")).then_rejected(&fenced);
    taken.clone().when(&worker(1), drain()).then_rejected(&fenced);
    taken.when(&worker(1), fail_execution("x")).then_rejected(&fenced);
}

#[test]
fn claims_that_are_lost_again_and_again_end_in_failure_with_a_dead_letter() {
    let mut execution = Execution::claimed(&plan());
    for _ in 1..MAX_LOST_CLAIMS {
        execution = execution.given(&worker(0), claim("job-1", None));
    }
    let when = execution.when(&worker(0), claim("job-1", None));
    assert!(matches!(when.answer.as_ref().unwrap().effects[..], [Effect::PublishDeadLetter { .. }]));
    when.then(&[ExecutionFailed]);
}

#[test]
fn progress_makes_earlier_losses_forgotten() {
    let mut execution = Execution::claimed(&plan());
    for _ in 1..MAX_LOST_CLAIMS {
        execution = execution.given(&worker(0), claim("job-1", None));
    }
    let epoch = execution.state().epoch.0;
    let moved =
        execution.given(&worker(epoch), start_node("a")).given(&worker(epoch), succeed("a", json!(1)));
    assert_eq!(moved.given(&worker(0), claim("job-1", None)).state().phase, Phase::Started);
}

#[test]
fn a_parked_execution_holds_no_worker_and_asks_for_one_when_it_can_go_on() {
    let graph = Graph::new().task("ask", wait("k")).task("b", callable()).edge("ask", "b").plan();
    let parked = Execution::claimed(&graph).when(&worker(1), park()).then_effects(&[]).then(&[]);
    assert!(parked.state().is_parked());
    let resumed = parked.when(&caller(), resume("ask", "k")).then_effects(&[Effect::EnqueueJob(None)]);
    let claimed = resumed.execution.when(&worker(0), claim("job-2", None));
    assert_eq!(claimed.answer.unwrap().outcome, Outcome::Claimed(Epoch(2)));
}

#[test]
fn a_claim_is_not_parked_while_a_task_runs_but_a_stopping_worker_gives_it_back() {
    let running = Execution::claimed(&plan()).given(&worker(1), start_node("a"));
    running.clone().when(&worker(1), park()).then_rejected(&Reason::TasksRunning);
    let released = running.when(&worker(1), drain()).then_effects(&[Effect::EnqueueJob(None)]).then(&[]);
    assert_eq!(released.node("a"), NodeStatus::Ready);
    released.when(&worker(1), drain()).then_rejected(&Reason::Fenced { held: Epoch(1), current: Epoch(1) });
}

#[test]
fn only_the_owner_lets_go() {
    Execution::claimed(&plan()).when(&caller(), drain()).then_rejected(&Reason::OnlyAWorker);
    queued().when(&worker(0), park()).then_rejected(&Reason::Fenced { held: Epoch(0), current: Epoch(0) });
}

#[test]
fn a_failure_while_another_worker_takes_over_still_ends_failed() {
    let graph = Graph::new().task("a", callable()).task("b", callable()).plan();
    let failing = Execution::claimed(&graph)
        .given(&worker(1), start_node("a"))
        .given(&worker(1), start_node("b"))
        .given(&worker(1), fail("a", "boom"));
    failing.when(&worker(0), claim("job-1", None)).then(&[ExecutionFailed]);
}

#[test]
fn mixed_graphs_park_while_the_outside_works() {
    let graph = Graph::new().task("out", external()).task("in", callable()).edge("out", "in").plan();
    let parked = Execution::claimed(&graph).given(&worker(1), park()).given(&caller(), start_node("out"));
    parked.when(&caller(), succeed("out", json!(1))).then_effects(&[Effect::EnqueueJob(None)]);
}

#[test]
fn a_foreign_run_is_imported_with_its_claim_and_its_end() {
    let running = Execution::new()
        .when(&foreign(), import(ForeignStatus::Running))
        .then(&[ExecutionCreated, ExecutionStarted]);
    assert!(running.state().claim.as_ref().unwrap().is_foreign());
    let running = running.when(&foreign(), import(ForeignStatus::Running)).then_nothing(&Outcome::Unchanged);
    running.clone().when(&foreign(), import(ForeignStatus::Completed)).then(&[ExecutionCompleted]);
    running.clone().when(&foreign(), import(ForeignStatus::Failed)).then(&[ExecutionFailed]);
    running
        .when(&foreign(), import(ForeignStatus::Cancelled))
        .then(&[ExecutionCancelRequested, ExecutionCanceled]);
}

#[test]
fn cancel_wins_over_the_end_that_a_foreign_worker_reports() {
    let canceling =
        Execution::new().given(&foreign(), import(ForeignStatus::Running)).given(&caller(), cancel());
    assert_eq!(canceling.state().phase, Phase::Canceling);
    canceling.clone().when(&foreign(), import(ForeignStatus::Completed)).then_phase(Phase::Canceled);
    canceling.when(&foreign(), import(ForeignStatus::Failed)).then_phase(Phase::Canceled);
}

#[test]
fn once_one_of_ours_has_claimed_foreign_snapshots_are_ignored() {
    let ours = Execution::new()
        .given(&foreign(), import(ForeignStatus::Running))
        .given(&worker(0), claim("job-1", Some(&plan())));
    ours.when(&foreign(), import(ForeignStatus::Completed)).then_rejected(&Reason::OwnedHere);
}

#[test]
fn an_ended_execution_takes_no_import() {
    let ended = queued().given(&caller(), cancel());
    ended
        .when(&foreign(), import(ForeignStatus::Completed))
        .then_nothing(&Outcome::AlreadyEnded(Status::Canceled));
}

#[test]
fn a_commands_own_retries_survive_a_lost_worker() {
    let policy = Policy { retries: 1, ..Policy::default() };
    let plan = Graph::new().task_with("a", Runner::Command(vec!["true".to_owned()]), policy).plan();
    let lost =
        Execution::claimed(&plan).given(&worker(1), start_node("a")).given(&worker(0), claim("job-1", None));
    let failed = lost.given(&worker(2), start_node("a")).given(&worker(2), fail("a", "once"));
    assert_eq!(failed.node("a"), NodeStatus::Ready, "the lost attempt did not use up the retry");
}

#[test]
fn a_worker_that_lost_its_claim_cannot_fail_a_parked_execution() {
    let graph = Graph::new().task("ask", wait("k")).plan();
    let parked = Execution::claimed(&graph)
        .given(&worker(1), park())
        .given(&worker(0), claim("job-2", None))
        .given(&worker(2), park());
    let fenced = Reason::Fenced { held: Epoch(1), current: Epoch(2) };
    parked.when(&worker(1), fail_execution("no")).then_rejected(&fenced);
}

#[test]
fn a_cancel_in_a_foreign_snapshot_is_requested_once() {
    let canceling = Execution::new()
        .given(&foreign(), import(ForeignStatus::Running))
        .given(&foreign(), import(ForeignStatus::Cancelling));
    assert_eq!(canceling.state().phase, Phase::Canceling);
    canceling.when(&foreign(), import(ForeignStatus::Cancelling)).then_nothing(&Outcome::Unchanged);
}

#[test]
fn a_drained_execution_is_not_parked() {
    let released = Execution::claimed(&plan()).given(&worker(1), drain());
    assert!(!released.state().is_parked() && released.state().wants_worker());
}

fn with_wheel(job: &str, version: &str) -> ClaimExecution {
    let name = format!("tools-{version}-py3-none-any.whl");
    let wheel = UsedWheel { name, version: version.to_owned(), sha256: "00".repeat(32) };
    ClaimExecution { wheels: Some([wheel].into()), ..claim(job, Some(&plan())) }
}

#[test]
fn the_first_claim_says_which_wheels_an_execution_runs_with_and_a_later_one_does_not() {
    let first = queued().given(&worker(0), with_wheel("job-1", "1.0"));
    let fixed = first.state().wheels.clone();
    assert_eq!(fixed.as_deref().map(|wheels| wheels[0].version.as_str()), Some("1.0"));
    let later = first.given(&worker(0), with_wheel("job-1", "2.0"));
    assert_eq!(later.state().wheels, fixed);
}

#[test]
fn an_execution_that_began_without_wheels_goes_on_without() {
    let first = Execution::claimed(&plan());
    let later = first.given(&worker(0), with_wheel("job-1", "2.0"));
    assert_eq!(later.state().wheels, None);
}
