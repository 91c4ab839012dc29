//! The graph of an execution as it can be drawn.

use std::sync::Arc;

use pyoco_core::event::Choice;
use pyoco_core::expr::Expression;
use pyoco_core::json::Json;
use pyoco_core::plan::{Block, BlockBuilder, Case, Count, Kind, Plan, TaskIndex, TaskSpec};
use pyoco_core::state::NodeStatus;
use pyoco_core::view::{GraphNode, GraphView};
use pyoco_testkit::*;
use serde_json::json;

fn body(name: &str, task: u32) -> Block {
    let mut builder = BlockBuilder::new();
    builder.add(name, Kind::Task(TaskIndex(task)));
    builder.finish(false).block
}

/// A loop or switch, and `c` after it.
fn plan(name: &str, kind: Kind) -> Arc<Plan> {
    let tasks = ["a", "b", "c"].map(|name| TaskSpec::new(name, callable())).to_vec();
    let mut builder = BlockBuilder::new();
    let control = builder.add(name, kind);
    let last = builder.add("c", Kind::Task(TaskIndex(2)));
    builder.depend(last, control);
    Arc::new(Plan::new("main".to_owned(), tasks, builder.finish(false).block).unwrap())
}

fn graph(execution: &Execution) -> GraphView {
    GraphView::of(execution.state()).unwrap()
}

fn ids(graph: &GraphView) -> Vec<&str> {
    graph.nodes.iter().map(|node| node.id.as_str()).collect()
}

fn find<'a>(graph: &'a GraphView, id: &str) -> &'a GraphNode {
    graph.nodes.iter().find(|node| node.id == id).unwrap_or_else(|| panic!("{id}: {:?}", ids(graph)))
}

fn edges(graph: &GraphView) -> Vec<(&str, &str)> {
    graph.edges.iter().map(|edge| (edge.from.as_str(), edge.to.as_str())).collect()
}

#[test]
fn there_is_no_graph_before_there_is_a_plan() {
    let mut command = create();
    command.start = true;
    assert_eq!(GraphView::of(Execution::new().given(&caller(), command).state()), None);
}

#[test]
fn every_node_of_the_plan_is_there_with_its_state_also_one_that_is_not_reached() {
    let plan = Graph::chain(&["a", "b"], &callable()).plan();
    let begun = Execution::claimed(&plan);
    assert_eq!(find(&graph(&begun), "a").status, Some(NodeStatus::Ready));
    let running = begun.given(&worker(1), start_node("a"));
    let shown = graph(&running);
    assert_eq!(ids(&shown), ["a", "b"]);
    let (a, b) = (find(&shown, "a"), find(&shown, "b"));
    assert_eq!((a.status, a.attempt, a.task.as_deref()), (Some(NodeStatus::Running), 1, Some("a")));
    assert!(a.started_at.is_some() && a.ended_at.is_none());
    assert_eq!((b.status, b.attempt, b.started_at), (Some(NodeStatus::Pending), 0, None));
    assert_eq!(edges(&shown), [("a", "b")]);
    let failed = graph(&running.given(&worker(1), fail("a", "boom")));
    assert_eq!(find(&failed, "a").status, Some(NodeStatus::Failed));
    assert!(find(&failed, "a").ended_at.is_some());
}

#[test]
fn a_loop_shows_its_body_before_it_is_opened_and_each_round_after() {
    let repeat = || Kind::Repeat { count: Count::Fixed(2), body: body("a", 0) };
    let later =
        Graph::new().task("first", callable()).node("repeat", repeat()).edge("first", "repeat").plan();
    let shown = graph(&Execution::started(&later));
    let inner = shown.nodes.iter().find(|node| node.parent.is_some()).unwrap();
    assert_eq!((inner.name.as_str(), inner.parent.as_deref()), ("a", Some("repeat")));
    assert_eq!((inner.round, inner.status), (None, None), "its rounds are still to come");
    let first = Execution::claimed(&plan("repeat", repeat()));
    let shown = graph(&first);
    assert_eq!(ids(&shown), ["repeat", "c", "repeat/1/a"]);
    let round = find(&shown, "repeat/1/a");
    assert_eq!((round.parent.as_deref(), round.round), (Some("repeat"), Some(1)));
    assert_eq!(edges(&shown), [("repeat", "c")]);
    let second =
        first.given(&worker(1), start_node("repeat/1/a")).given(&worker(1), succeed("repeat/1/a", json!(1)));
    let shown = graph(&second);
    assert_eq!(ids(&shown), ["repeat", "c", "repeat/1/a", "repeat/2/a"]);
    assert_eq!(find(&shown, "repeat/1/a").status, Some(NodeStatus::Succeeded));
    assert_eq!(find(&shown, "repeat/2/a").status, Some(NodeStatus::Ready));
}

#[test]
fn a_switch_shows_its_cases_and_then_the_chosen_one() {
    let cases = vec![
        Case { value: Json(json!("x")), body: body("a", 0) },
        Case { value: Json(json!(1)), body: body("b", 1) },
    ];
    let kind = Kind::Switch { on: Expression::parse("$ctx.params.mode").unwrap(), cases, default: None };
    let asking = Execution::claimed(&plan("switch", kind));
    let shown = graph(&asking);
    let cases: Vec<_> =
        shown.nodes.iter().filter_map(|node| Some((node.name.as_str(), node.case.as_deref()?))).collect();
    assert_eq!(cases, [("a", "\"x\""), ("b", "1")]);
    assert!(shown.nodes.iter().filter(|node| node.case.is_some()).all(|node| node.status.is_none()));
    let chosen = graph(&asking.given(&worker(1), choose("switch", Choice::Case(Some(1)))));
    assert_eq!(ids(&chosen), ["switch", "c", "switch/1/b"]);
    let b = find(&chosen, "switch/1/b");
    assert_eq!((b.case.as_deref(), b.round, b.status), (Some("1"), None, Some(NodeStatus::Ready)));
}

#[test]
fn a_graph_that_nobody_could_look_at_is_cut_and_says_so() {
    let names: Vec<String> = (0..5_001).map(|number| format!("n{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let shown = graph(&Execution::started(&Graph::chain(&names, &callable()).plan()));
    assert!(shown.is_truncated && shown.nodes.len() == 5_000);
    let known = ids(&shown);
    assert!(shown.edges.iter().all(|edge| known.contains(&edge.from.as_str())));
}
