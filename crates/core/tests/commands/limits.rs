//! What is written can be read again: values, ids, plans, records and histories have bounds.

use std::sync::Arc;

use pyoco_core::command::{Issuer, Request};
use pyoco_core::decide::{Batch, MAX_EVENTS, RECORD_EVENTS, decide};
use pyoco_core::event::{BlobRef, Changes, Encoding};
use pyoco_core::expr::Expression;
use pyoco_core::json::Json;
use pyoco_core::outcome::{Reason, RejectionKind};
use pyoco_core::plan::{
    Block, BlockBuilder, Case, Count, InvalidPlan, JoinPolicy, Kind, Plan, TaskIndex, TaskSpec,
};
use pyoco_core::state::Phase;
use pyoco_testkit::*;
use serde_json::json;

fn running() -> Execution {
    Execution::started(&Graph::chain(&["a", "b"], &external()).plan()).given(&caller(), start_node("a"))
}

fn one_task(name: &str) -> Block {
    let mut builder = BlockBuilder::new();
    builder.add(name, Kind::Task(TaskIndex(0)));
    builder.finish(false).block
}

fn nested(levels: usize, wrap: impl Fn(Block) -> (String, Kind)) -> Result<Plan, InvalidPlan> {
    let block = (0..levels).fold(one_task("t"), |inner, _| {
        let (name, kind) = wrap(inner);
        let mut builder = BlockBuilder::new();
        builder.add(&name, kind);
        builder.finish(false).block
    });
    Plan::new("main".to_owned(), vec![TaskSpec::new("t", callable())], block)
}

#[test]
fn a_value_that_no_record_could_hold_is_refused() {
    let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
    running().when(&caller(), succeed("a", deep)).then_rejected(&Reason::ValueTooLarge);
    running().when(&caller(), succeed("a", json!("x".repeat(2 << 20)))).then_rejected(&Reason::ValueTooLarge);
    running().when(&caller(), fail("a", &"x".repeat(2 << 20))).then_rejected(&Reason::ValueTooLarge);
    let mut command = create();
    command.input.0.insert("x".repeat(2 << 20), json!(1));
    Execution::new().when(&caller(), command).then_rejected(&Reason::ValueTooLarge);
    let mut request = Request::new(caller(), running().now(), progress("a", 1.0));
    request.correlation_id = Some("c".repeat(1000));
    running().ask(&request).then_rejected(&Reason::ValueTooLarge);
}

#[test]
fn a_record_takes_no_more_commands_than_can_be_read_again() {
    let graph = (0..20).fold(Graph::new(), |graph, n| graph.task(&format!("t{n}"), external())).plan();
    let execution = (0..20).fold(Execution::started(&graph), |execution, n| {
        execution.given(&caller(), start_node(&format!("t{n}")))
    });
    let mut state = execution.state().clone();
    let mut batch = Batch::new(&mut state);
    let large = |n: usize| {
        Request::new(caller(), execution.now(), succeed(&format!("t{n}"), json!("x".repeat(900_000))))
    };
    assert!(batch.decide(&large(0)).is_ok());
    let refused = batch.decide(&large(1)).unwrap_err();
    assert_eq!(
        (refused.reason.clone(), refused.reason.kind()),
        (Reason::SealFirst, RejectionKind::SealFirst)
    );
}

#[test]
fn a_plan_whose_ids_would_grow_too_long_is_refused() {
    let long = |inner| ("n".repeat(500), Kind::Repeat { count: Count::Fixed(2), body: inner });
    assert!(nested(3, long).is_ok());
    assert!(matches!(nested(5, long), Err(InvalidPlan::IdTooLong(_))));
    let escaped = |inner| ("%".repeat(500), Kind::Repeat { count: Count::Fixed(2), body: inner });
    assert!(matches!(nested(2, escaped), Err(InvalidPlan::IdTooLong(_))));
}

#[test]
fn a_plan_nested_deeper_than_json_can_be_read_is_refused() {
    let on = Expression::parse("$ctx.params.n").unwrap();
    let switch = |inner| {
        let cases = vec![Case { value: Json(json!(1)), body: inner }];
        ("s".to_owned(), Kind::Switch { on: on.clone(), cases, default: None })
    };
    let deepest = (1..30).take_while(|levels| nested(*levels, switch).is_ok()).last().unwrap();
    let plan = nested(deepest, switch).unwrap();
    assert_eq!(nested(deepest + 1, switch), Err(InvalidPlan::TooDeep));
    assert!(deepest >= 12, "flows of a sensible depth are fine");
    let claimed = Execution::claimed(&Arc::new(plan));
    assert_eq!(claimed.state().phase, Phase::Started, "its record was read again by the test kit");
}

#[test]
fn a_rule_over_very_many_branches_is_refused() {
    let names: Vec<String> = (0..300).map(|n| format!("t{n}")).collect();
    let mut builder = BlockBuilder::new();
    let end = builder.add("end", Kind::Task(TaskIndex(0)));
    for name in &names {
        let slot = builder.add(name, Kind::Task(TaskIndex(0)));
        builder.depend(end, slot);
    }
    builder.join(end, JoinPolicy::Custom(Expression::parse("True").unwrap()));
    let tasks = vec![TaskSpec::new("t", external())];
    let plan = Plan::new("main".to_owned(), tasks, builder.finish(true).block);
    assert_eq!(plan, Err(InvalidPlan::CustomTooWide("end.join".to_owned())));
}

#[test]
fn a_cancel_of_thousands_of_running_nodes_fits_into_a_record() {
    let names: Vec<String> = (0..2000).map(|n| format!("t{n}")).collect();
    let graph = names.iter().fold(Graph::new(), |graph, name| graph.task(name, external())).plan();
    let mut command = create();
    (command.plan, command.start) = (Some(graph), true);
    let mut state = Execution::new().state().clone();
    let at = Execution::new().now();
    decide(&mut state, &Request::new(caller(), at, command)).unwrap();
    while state.needs_advance() {
        let advance = pyoco_core::command::AdvanceExecution {};
        decide(&mut state, &Request::new(Issuer::Scheduler, at, advance)).unwrap();
    }
    for name in &names {
        decide(&mut state, &Request::new(caller(), at, start_node(name))).unwrap();
    }
    let decision = decide(&mut state, &Request::new(caller(), at, cancel())).unwrap();
    assert!(decision.events.len() <= RECORD_EVENTS + 4, "{} events", decision.events.len());
    assert_eq!(state.phase, Phase::Canceled);
    let view = pyoco_core::view::ExecutionView::of(&state);
    let tasks = view.nodes.iter().filter(|node| node.node_type == "Task");
    assert!(tasks.clone().all(|node| node.status == pyoco_core::state::NodeStatus::Canceled));
    assert_eq!(tasks.count(), 2000);
}

#[test]
fn an_execution_that_only_ever_reports_progress_comes_to_an_end() {
    let execution = running();
    let mut state = execution.state().clone();
    let request = Request::new(caller(), execution.now(), progress("a", 1.0));
    let reported = (0..MAX_EVENTS + 10)
        .take_while(|_| decide(&mut state, &request).is_ok() && state.phase == Phase::Started);
    assert!(reported.count() < usize::try_from(MAX_EVENTS).unwrap());
    assert_eq!(state.phase, Phase::Failing);
    assert!(state.last_error.unwrap().contains("100000 events"));
}

#[test]
fn only_a_worker_points_at_bytes_outside_the_log_or_changes_the_context() {
    let digest = pyoco_core::digest::Digest::of_bytes(b"x");
    let reference = BlobRef { digest, size: 1, encoding: Encoding::Pickle };
    let mut changes = Changes::default();
    changes.refs.insert("results.x".to_owned(), reference);
    let mut command = succeed("a", json!(1));
    command.changes = Some(Box::new(changes.clone()));
    running().when(&caller(), command).then_rejected(&Reason::OnlyAWorker);
    let mut command = fail("a", "boom");
    command.changes = Some(Box::new(changes));
    running().when(&caller(), command).then_rejected(&Reason::OnlyAWorker);
}
