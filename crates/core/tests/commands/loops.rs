//! Repeat, for-each, until and switch unfold into nodes; their choices are recorded.

use std::sync::Arc;

use pyoco_core::event::Choice;
use pyoco_core::event::EventType::*;
use pyoco_core::expr::Expression;
use pyoco_core::json::Json;
use pyoco_core::outcome::Reason;
use pyoco_core::plan::{Block, BlockBuilder, Case, Count, Kind, Plan, TaskIndex, TaskSpec};
use pyoco_core::state::{NodeStatus, Phase};
use pyoco_testkit::*;
use serde_json::json;

fn body(tasks: &[(&str, u32)]) -> Block {
    let mut builder = BlockBuilder::new();
    let mut last = None;
    for (name, number) in tasks {
        let slot = builder.add(name, Kind::Task(TaskIndex(*number)));
        if let Some(last) = last {
            builder.depend(slot, last);
        }
        last = Some(slot);
    }
    builder.finish(false).block
}

fn plan(name: &str, kind: Kind) -> Arc<Plan> {
    let tasks = ["a", "b", "c"].map(|name| TaskSpec::new(name, callable())).to_vec();
    let mut builder = BlockBuilder::new();
    let control = builder.add(name, kind);
    let last = builder.add("c", Kind::Task(TaskIndex(2)));
    builder.depend(last, control);
    Arc::new(Plan::new("main".to_owned(), tasks, builder.finish(false).block).unwrap())
}

fn expression(text: &str) -> Expression {
    Expression::parse(text).unwrap()
}

fn run(execution: Execution, id: &str) -> Execution {
    execution.given(&worker(1), start_node(id)).given(&worker(1), succeed(id, json!(id)))
}

#[test]
fn a_repeat_unfolds_one_round_after_the_other() {
    let kind = Kind::Repeat { count: Count::Fixed(2), body: body(&[("a", 0), ("b", 1)]) };
    let begun = Execution::claimed(&plan("repeat", kind));
    assert_eq!(begun.node("repeat/1/a"), NodeStatus::Ready);
    begun
        .clone()
        .when(&worker(1), start_node("repeat/2/a"))
        .then_rejected(&Reason::UnknownNode(node("repeat/2/a")));
    let round = run(run(begun, "repeat/1/a"), "repeat/1/b");
    assert_eq!(round.node("repeat/2/a"), NodeStatus::Ready);
    let done = run(run(round, "repeat/2/a"), "repeat/2/b");
    assert_eq!(done.node("repeat"), NodeStatus::Succeeded);
    assert_eq!(run(done, "c").state().phase, Phase::Completed);
}

#[test]
fn zero_rounds_leave_the_body_untouched() {
    let kind = Kind::Repeat { count: Count::Fixed(0), body: body(&[("a", 0)]) };
    let begun = Execution::claimed(&plan("repeat", kind));
    assert_eq!(begun.node("c"), NodeStatus::Ready);
    assert_eq!(begun.state().tasks[0].status, NodeStatus::Pending);
}

#[test]
fn a_for_each_asks_for_its_items_and_shows_them_to_its_body() {
    let over = expression("$ctx.params.items");
    let kind = Kind::ForEach { over, item: Some("x".to_owned()), index: None, body: body(&[("a", 0)]) };
    let asking = Execution::claimed(&plan("each", kind));
    assert_eq!(asking.state().questions().count(), 1);
    let items = Choice::Items(Arc::new(vec![Json(json!("p")), Json(json!("q"))]));
    let begun = asking.when(&worker(1), choose("each", items)).then(&[NodeStarted, NodeCreated, NodeReady]);
    let second = run(begun, "each/1/a");
    let frames = second.state().loops_around(second.state().number_of(&node("each/2/a")).unwrap());
    assert_eq!(frames[0].members["item"], json!("q"));
    assert_eq!(frames[0].members["path"], json!("foreach:x[1]"));
    assert_eq!(frames[0].variables, [("x".to_owned(), json!("q"))]);
    assert_eq!(run(run(second, "each/2/a"), "c").state().phase, Phase::Completed);
}

#[test]
fn an_until_asks_after_every_round_and_gives_up_at_its_limit() {
    let kind =
        || Kind::Until { condition: expression("$ctx.params.done"), max_rounds: 2, body: body(&[("a", 0)]) };
    let asking = run(Execution::claimed(&plan("until", kind())), "until/1/a");
    assert_eq!(asking.state().questions().count(), 1);
    let again = asking.given(&worker(1), choose("until", Choice::Holds(false)));
    let asking_again = run(again, "until/2/a");
    let failed = asking_again.clone().given(&worker(1), choose("until", Choice::Holds(false)));
    let message = "Until condition '$ctx.params.done' exceeded max_iter=2";
    assert_eq!(failed.state().last_error.as_deref(), Some(message));
    let done = asking_again.given(&worker(1), choose("until", Choice::Holds(true)));
    assert_eq!(done.node("c"), NodeStatus::Ready);
}

fn switch(default: Option<Block>) -> Kind {
    let cases = vec![
        Case { value: Json(json!("x")), body: body(&[("a", 0)]) },
        Case { value: Json(json!(1)), body: body(&[("b", 1)]) },
    ];
    Kind::Switch { on: expression("$ctx.params.mode"), cases, default }
}

#[test]
fn a_switch_runs_the_chosen_case_only() {
    let asking = Execution::claimed(&plan("switch", switch(None)));
    let chosen = asking.given(&worker(1), choose("switch", Choice::Case(Some(1))));
    assert_eq!(chosen.node("switch/1/b"), NodeStatus::Ready);
    let done = run(run(chosen, "switch/1/b"), "c");
    assert_eq!(done.state().phase, Phase::Completed);
    assert_eq!(done.state().tasks[0].status, NodeStatus::Pending);
}

#[test]
fn an_answer_must_fit_its_question() {
    let asking = Execution::claimed(&plan("switch", switch(None)));
    for choice in [Choice::Case(None), Choice::Case(Some(9)), Choice::Holds(true), Choice::Rounds(3)] {
        let asked = asking.clone().when(&worker(1), choose("switch", choice));
        asked.then_rejected(&Reason::WrongChoice(node("switch")));
    }
    asking
        .clone()
        .when(&caller(), choose("switch", Choice::Case(Some(0))))
        .then_rejected(&Reason::OnlyAWorker);
    let chosen = asking.given(&worker(1), choose("switch", Choice::Case(Some(0))));
    let again = chosen.when(&worker(1), choose("switch", Choice::Case(Some(0))));
    again.then_rejected(&Reason::NodeIs { node: node("switch"), status: NodeStatus::Running });
}

#[test]
fn a_question_that_cannot_be_answered_fails_the_execution() {
    let asking = Execution::claimed(&plan("switch", switch(None)));
    let choice = Choice::Unanswerable("no match".to_owned());
    asking.when(&worker(1), choose("switch", choice)).then(&[NodeFailed, ExecutionFailed]);
}

#[test]
fn a_question_is_not_answered_after_a_cancel() {
    let canceling = Execution::claimed(&plan("switch", switch(None))).given(&caller(), cancel());
    let asked = canceling.when(&worker(1), choose("switch", Choice::Case(Some(0))));
    asked.then_rejected(&Reason::CancelRequested);
}

#[test]
fn loops_nest_and_their_paths_tell_it() {
    let inner = Kind::Repeat { count: Count::Fixed(2), body: body(&[("a", 0)]) };
    let mut builder = BlockBuilder::new();
    builder.add("repeat", inner);
    let outer = Kind::Repeat { count: Count::Fixed(2), body: builder.finish(false).block };
    let mut execution = Execution::claimed(&plan("repeat", outer));
    for (outer, inner) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
        let id = format!("repeat/{outer}/repeat/{inner}/a");
        let frames = execution.state().loops_around(execution.state().number_of(&node(&id)).unwrap());
        let path = format!("repeat[{}].repeat[{}]", outer - 1, inner - 1);
        assert_eq!(frames[1].members["path"], json!(path));
        execution = run(execution, &id);
    }
    assert_eq!(execution.node("c"), NodeStatus::Ready);
}

#[test]
fn a_loop_whose_body_failed_has_failed_and_so_has_what_follows() {
    let kind = Kind::Repeat { count: Count::Fixed(3), body: body(&[("a", 0)]) };
    let mut plan = Plan::clone(&plan("repeat", kind));
    plan.tasks[0].policy.fail = pyoco_core::plan::FailPolicy::Isolate;
    let begun = Execution::claimed(&Arc::new(plan)).given(&worker(1), start_node("repeat/1/a"));
    let failed = begun.clone().given(&worker(1), fail("repeat/1/a", "boom"));
    assert_eq!((failed.node("repeat"), failed.node("c")), (NodeStatus::Failed, NodeStatus::Failed));
    assert_eq!(failed.state().phase, Phase::Completed);
    let canceled =
        begun.given(&caller(), cancel_node("repeat/1/a")).given(&worker(1), confirm_stopped("repeat/1/a"));
    assert_eq!((canceled.node("repeat"), canceled.node("c")), (NodeStatus::Canceled, NodeStatus::Canceled));
}
