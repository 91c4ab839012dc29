//! ForceEnd, FireTimers, AdvanceExecution: what the sweeper does.

use pyoco_core::command::{AdvanceExecution, Issuer};
use pyoco_core::decide::RECORD_EVENTS;
use pyoco_core::event::EventType::*;
use pyoco_core::ids::ExecutionId;
use pyoco_core::outcome::{Effect, Outcome, Reason};
use pyoco_core::plan::Policy;
use pyoco_core::state::{NodeStatus, Phase, Status};
use pyoco_core::time::Millis;
use pyoco_testkit::*;

const SWEEPER: Issuer = Issuer::Scheduler;

fn unknown() -> Reason {
    Reason::UnknownExecution(ExecutionId::new("e-1").unwrap())
}

#[test]
fn a_cancel_that_its_worker_does_not_end_is_forced() {
    let canceling = Execution::claimed(&Graph::chain(&["a"], &callable()).plan())
        .given(&worker(1), start_node("a"))
        .given(&caller(), cancel());
    let forced = canceling.when(&SWEEPER, force_end()).then(&[NodeCanceled, ExecutionCanceled]);
    let forced = forced.when(&SWEEPER, force_end()).then_nothing(&Outcome::AlreadyEnded(Status::Canceled));
    forced.when(&worker(1), confirm_stopped("a")).then_rejected(&Reason::Ended(Status::Canceled));
}

#[test]
fn a_failure_that_its_worker_does_not_end_is_forced() {
    let graph = Graph::new().task("a", callable()).task("b", callable()).plan();
    let failing = Execution::claimed(&graph)
        .given(&worker(1), start_node("a"))
        .given(&worker(1), start_node("b"))
        .given(&worker(1), fail("a", "boom"));
    failing.when(&SWEEPER, force_end()).then(&[NodeCanceled, ExecutionFailed]);
}

#[test]
fn nothing_is_forced_that_nobody_wants_to_end() {
    Execution::new().when(&SWEEPER, force_end()).then_rejected(&unknown());
    let started = Execution::started(&Graph::chain(&["a"], &external()).plan());
    started.when(&SWEEPER, force_end()).then_rejected(&Reason::StillActive);
}

#[test]
fn an_external_attempt_past_its_deadline_fails() {
    let policy = Policy { timeout: Some(Millis(500)), ..Policy::default() };
    let running = Execution::started(&Graph::new().task_with("a", external(), policy).plan())
        .given(&caller(), start_node("a"));
    let running = running.when(&SWEEPER, fire_timers()).then_nothing(&Outcome::Unchanged);
    let failed = running.later(Millis(500)).when(&SWEEPER, fire_timers());
    let failed = failed.then(&[NodeFailReported, NodeFailed, ExecutionFailed]);
    assert_eq!(failed.state().last_error.as_deref(), Some("Task 'a' exceeded timeout of 0.5s"));
    failed.when(&SWEEPER, fire_timers()).then_nothing(&Outcome::AlreadyEnded(Status::Failed));
}

#[test]
fn a_retry_that_is_due_asks_for_a_worker_when_nobody_holds_the_execution() {
    let policy = Policy { retries: 1, retry_delay: Millis(60_000), ..Policy::default() };
    let parked = Execution::claimed(&Graph::new().task_with("a", callable(), policy).plan())
        .given(&worker(1), start_node("a"))
        .given(&worker(1), fail("a", "boom"))
        .given(&worker(1), park());
    let early = parked.clone().when(&SWEEPER, fire_timers()).then_effects(&[]);
    early.then_nothing(&Outcome::Unchanged);
    let due = parked.later(Millis(60_000)).when(&SWEEPER, fire_timers());
    let fired = due.then_effects(&[Effect::EnqueueJob(None)]).then(&[NodeReady]);
    assert_eq!(fired.state().next_timer(), None);
    let again = fired.when(&SWEEPER, fire_timers()).then_effects(&[]);
    again.then_nothing(&Outcome::Unchanged);
}

#[test]
fn timers_do_nothing_before_the_start_and_after_a_cancel() {
    Execution::new().when(&SWEEPER, fire_timers()).then_rejected(&unknown());
    let created = Execution::new().given(&caller(), create());
    created.when(&SWEEPER, fire_timers()).then_nothing(&Outcome::Unchanged);
    let canceling = Execution::claimed(&Graph::chain(&["a"], &callable()).plan()).given(&caller(), cancel());
    canceling.when(&SWEEPER, fire_timers()).then_nothing(&Outcome::Unchanged);
}

#[test]
fn a_wide_fork_is_opened_over_several_records() {
    let names: Vec<String> = (0..1000).map(|n| format!("t{n}")).collect();
    let graph = names.iter().fold(Graph::new(), |graph, name| graph.task(name, external()));
    let when = Execution::new();
    let mut command = create();
    command.plan = Some(graph.plan());
    let when = when.given(&caller(), command).when(&caller(), start());
    assert_eq!(when.answer.as_ref().unwrap().effects.last(), Some(&Effect::Advance));
    assert!(when.events.len() < RECORD_EVENTS + 4);
    let mut execution = when.execution;
    loop {
        let when = execution.when(&SWEEPER, AdvanceExecution {});
        let more = when.answer.as_ref().unwrap().effects.contains(&Effect::Advance);
        execution = when.execution;
        if !more {
            break;
        }
    }
    assert_eq!(execution.state().open.ready.len(), 1000);
    assert_eq!(execution.node("t999"), NodeStatus::Ready);
    execution.when(&SWEEPER, AdvanceExecution {}).then_nothing(&Outcome::Unchanged);
}

#[test]
fn a_half_opened_fork_is_canceled_as_a_whole() {
    let names: Vec<String> = (0..1000).map(|n| format!("t{n}")).collect();
    let graph = names.iter().fold(Graph::new(), |graph, name| graph.task(name, external()));
    let canceled = Execution::started(&graph.plan()).given(&caller(), cancel());
    assert_eq!(canceled.state().phase, Phase::Canceled);
    canceled.when(&SWEEPER, AdvanceExecution {}).then_rejected(&Reason::Ended(Status::Canceled));
}
