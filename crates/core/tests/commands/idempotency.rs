//! Same key and input: same result, no new event. Same key, other input: conflict.

use pyoco_core::event::EventType::*;
use pyoco_core::ids::Version;
use pyoco_core::outcome::{Outcome, Reason};
use pyoco_testkit::*;
use serde_json::json;

#[test]
fn every_contract_command_is_recognised_when_it_is_repeated() {
    let plan = Graph::new().task("a", external()).task("b", wait("k")).edge("a", "b").plan();
    let mut command = create();
    command.plan = Some(plan);
    let steps: Vec<pyoco_core::command::Command> = vec![
        command.into(),
        start().into(),
        start_node("a").into(),
        progress("a", 50.0).into(),
        put_waiting("a", "w").into(),
        resume("a", "w").into(),
        fail("a", "boom").into(),
    ];
    let mut execution = Execution::new();
    for (number, step) in (1..).zip(steps) {
        let id = key(&format!("k-{number}"));
        execution = execution.when_keyed(id.clone(), &caller(), step.clone()).execution;
        execution =
            execution.when_keyed(id, &caller(), step).then_nothing(&Outcome::Repeated(Version(number)));
    }
    let ended = execution.when_keyed(key("k-archive"), &caller(), archive()).then(&[ExecutionArchived]);
    ended.when_keyed(key("k-archive"), &caller(), archive()).then_nothing(&Outcome::Repeated(Version(8)));
}

#[test]
fn success_and_cancel_are_recognised_after_the_end() {
    let done = Execution::started(&Graph::chain(&["a"], &external()).plan())
        .given(&caller(), start_node("a"))
        .when_keyed(key("s"), &caller(), succeed("a", json!(1)))
        .then(&[NodeSucceeded, ExecutionCompleted]);
    done.when_keyed(key("s"), &caller(), succeed("a", json!(1))).then_nothing(&Outcome::Repeated(Version(4)));
    let canceled = Execution::new().given(&caller(), create()).when_keyed(key("c"), &caller(), cancel());
    let canceled = canceled.then(&[ExecutionCancelRequested, ExecutionCanceled]);
    canceled.when_keyed(key("c"), &caller(), cancel()).then_nothing(&Outcome::Repeated(Version(2)));
}

#[test]
fn a_key_with_another_input_is_a_conflict() {
    let started = Execution::started(&Graph::chain(&["a"], &external()).plan())
        .when_keyed(key("k"), &caller(), start_node("a"))
        .then(&[NodeStarted]);
    started.clone().when_keyed(key("k"), &caller(), succeed("a", json!(1))).then_rejected(&Reason::KeyReused);
    started.when_keyed(key("k"), &caller(), start_attempt("a", 1)).then_rejected(&Reason::KeyReused);
}

#[test]
fn a_refused_command_is_not_remembered() {
    let plan = Graph::chain(&["a", "b"], &external()).plan();
    let started = Execution::started(&plan)
        .when_keyed(key("k"), &caller(), start_node("b"))
        .then_rejected(&Reason::NodeNotReached(node("b")));
    started
        .given(&caller(), start_node("a"))
        .given(&caller(), succeed("a", json!(1)))
        .when_keyed(key("k"), &caller(), start_node("b"))
        .then(&[NodeStarted]);
}

#[test]
fn a_workers_keys_are_kept_until_its_next_record() {
    let plan = Graph::chain(&["a", "b"], &callable()).plan();
    let claimed =
        Execution::claimed(&plan).when_keyed(key("w-1"), &worker(1), start_node("a")).then(&[NodeStarted]);
    let claimed = claimed
        .when_keyed(key("w-1"), &worker(1), start_node("a"))
        .then_nothing(&Outcome::Repeated(Version(3)));
    let next = claimed.when_keyed(key("w-2"), &worker(1), succeed("a", json!(1))).execution;
    assert_eq!(next.state().worker_commands.len(), 1);
    assert!(next.state().commands.is_empty());
}

#[test]
fn a_key_counts_also_when_there_was_nothing_to_do() {
    let plan = Graph::chain(&["a"], &callable()).plan();
    let canceling = Execution::claimed(&plan).given(&worker(1), start_node("a")).given(&caller(), cancel());
    let asked = canceling.when_keyed(key("k"), &caller(), cancel()).then_nothing(&Outcome::AlreadyCanceling);
    let ended = asked.given(&worker(1), confirm_stopped("a"));
    let record = Version(5);
    let repeated = ended.when_keyed(key("k"), &caller(), cancel()).then_nothing(&Outcome::Repeated(record));
    let other = pyoco_core::command::CancelExecution { reason: Some("another".to_owned()) };
    repeated.when_keyed(key("k"), &caller(), other).then_rejected(&Reason::KeyReused);
}
