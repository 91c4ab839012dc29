//! Fork and join, for all four policies, as the events tell it.

use pyoco_core::event::Event;
use pyoco_core::event::EventType::*;
use pyoco_core::expr::Expression;
use pyoco_core::plan::{FailPolicy, JoinPolicy, Kind, Policy};
use pyoco_core::state::{NodeStatus, Phase};
use pyoco_testkit::*;
use serde_json::json;

fn diamond(policy: JoinPolicy) -> Execution {
    let graph = ["a", "b", "c"]
        .into_iter()
        .fold(Graph::new().task("s", external()), |graph, name| graph.task(name, external()).edge("s", name));
    let graph = graph.task("end", external()).edge("a", "end").edge("b", "end").edge("c", "end");
    let begun = Execution::started(&graph.join("end", policy).plan())
        .given(&caller(), start_node("s"))
        .given(&caller(), succeed("s", json!(1)));
    ["a", "b", "c"].into_iter().fold(begun, |execution, name| execution.given(&caller(), start_node(name)))
}

fn ok(execution: Execution, name: &str) -> Execution {
    execution.given(&caller(), succeed(name, json!(name)))
}

fn bad(execution: Execution, name: &str) -> Execution {
    execution.given(&caller(), fail(name, "boom"))
}

#[test]
fn a_fork_names_the_first_node_of_every_branch() {
    let forked = diamond(JoinPolicy::AllSuccess);
    let records = forked.records();
    let opened = records.iter().flat_map(|record| &record.events).find_map(|event| match &event.event {
        Event::ForkOpened(payload) => Some(payload.branch_ids.clone()),
        _ => None,
    });
    assert_eq!(opened.unwrap(), [node("a"), node("b"), node("c")]);
}

#[test]
fn all_success_waits_for_every_branch() {
    let joined = ok(ok(diamond(JoinPolicy::AllSuccess), "a"), "b");
    assert_eq!(joined.node("end"), NodeStatus::Pending);
    let joined = joined.when(&caller(), succeed("c", json!(1))).then(&[
        NodeSucceeded,
        JoinGateUpdated,
        JoinPassed,
        NodeCreated,
        NodeReady,
    ]);
    assert_eq!(joined.node("end"), NodeStatus::Ready);
}

#[test]
fn the_gate_says_who_ended_how() {
    let joined = ok(diamond(JoinPolicy::AllDone), "a").given(&caller(), cancel_node("b"));
    let joined = bad(joined, "c");
    let records = joined.records();
    let gates: Vec<_> = records
        .iter()
        .flat_map(|record| &record.events)
        .filter_map(|event| match &event.event {
            Event::JoinGateUpdated(gate) => Some(gate.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(gates.iter().map(|gate| gate.is_passable).collect::<Vec<_>>(), [false, false, true]);
    let last = gates.last().unwrap();
    assert_eq!(last.expected_branches, [node("a"), node("b"), node("c")]);
    assert_eq!(last.completed_branches, [node("a")]);
    assert_eq!(last.canceled_branches, [node("b")]);
    assert_eq!(last.failed_branches, [node("c")]);
    assert_eq!(last.policy, "ALL_DONE");
    assert_eq!(joined.node("end"), NodeStatus::Ready);
}

#[test]
fn any_success_passes_early_and_the_others_may_fail() {
    let joined = ok(diamond(JoinPolicy::AnySuccess), "b");
    assert_eq!(joined.node("end"), NodeStatus::Ready);
    let joined = bad(bad(joined, "a"), "c").given(&caller(), start_node("end"));
    assert_eq!(ok(joined, "end").state().phase, Phase::Completed);
}

#[test]
fn any_success_without_one_fails_the_execution() {
    let failed = bad(bad(diamond(JoinPolicy::AnySuccess), "a"), "b");
    assert_eq!(failed.state().phase, Phase::Started);
    let failed = bad(failed, "c");
    assert_eq!(failed.state().phase, Phase::Failed);
    assert_eq!(failed.state().failure.as_ref().unwrap().node, Some(node("end.join")));
}

#[test]
fn all_done_passes_although_every_branch_failed() {
    let joined = bad(bad(bad(diamond(JoinPolicy::AllDone), "a"), "b"), "c");
    assert_eq!(joined.node("end"), NodeStatus::Ready);
}

#[test]
fn a_custom_join_passes_by_its_own_rule() {
    let rule = Expression::parse("$ctx.branches.completed >= 2").unwrap();
    let joined = bad(ok(diamond(JoinPolicy::Custom(rule)), "a"), "b");
    assert_eq!(joined.node("end"), NodeStatus::Pending);
    assert_eq!(ok(joined.clone(), "c").node("end"), NodeStatus::Ready);
    assert_eq!(bad(joined, "c").state().phase, Phase::Failed);
}

#[test]
fn a_custom_rule_that_cannot_be_evaluated_fails_the_execution() {
    let rule = Expression::parse("$ctx.branches.nope > 1").unwrap();
    let failed = ok(diamond(JoinPolicy::Custom(rule)), "a");
    assert_eq!(failed.state().phase, Phase::Failing);
    let message = failed.state().last_error.clone().unwrap();
    assert!(message.contains("$ctx.branches.nope not found."), "{message}");
}

#[test]
fn a_join_that_its_isolated_task_guards_fails_quietly() {
    let isolate = Policy { fail: FailPolicy::Isolate, ..Policy::default() };
    let graph = Graph::new()
        .task("a", external())
        .task("b", external())
        .task_with("end", external(), isolate)
        .edge("a", "end")
        .edge("b", "end")
        .join("end", JoinPolicy::AnySuccess)
        .plan();
    let begun =
        Execution::started(&graph).given(&caller(), start_node("a")).given(&caller(), start_node("b"));
    let done = bad(bad(begun, "a"), "b");
    assert_eq!(done.state().phase, Phase::Completed);
    assert_eq!(done.node("end"), NodeStatus::Failed);
}

#[test]
fn a_wide_join_reports_only_what_settles_it() {
    let names: Vec<String> = (0..100).map(|n| format!("t{n:02}")).collect();
    let graph = names.iter().fold(Graph::new().task("end", external()), |graph, name| {
        graph.task(name, external()).edge(name, "end")
    });
    let mut execution = Execution::started(&graph.plan());
    for name in &names {
        execution = ok(execution.given(&caller(), start_node(name)), name);
    }
    assert_eq!(execution.history().iter().filter(|kind| **kind == JoinGateUpdated).count(), 1);
    assert_eq!(execution.node("end"), NodeStatus::Ready);
}

#[test]
fn drawn_ends_decide_how_the_execution_ends() {
    for (kind, phase) in
        [(Kind::Success, Phase::Completed), (Kind::Failed, Phase::Failed), (Kind::Canceled, Phase::Canceled)]
    {
        let graph = Graph::new()
            .node("start", Kind::Start)
            .task("a", external())
            .edge("start", "a")
            .node("end", kind)
            .edge("a", "end");
        let done = ok(Execution::started(&graph.plan()).given(&caller(), start_node("a")), "a");
        assert_eq!(done.state().phase, phase);
    }
}

#[test]
fn a_cycle_is_a_deadlock_that_is_found_when_everything_else_has_run() {
    let graph = Graph::new().task("a", external()).task("b", external()).task("c", external());
    let graph = graph.edge("a", "b").edge("b", "a");
    let failed = ok(Execution::started(&graph.plan()).given(&caller(), start_node("c")), "c");
    assert_eq!(failed.state().phase, Phase::Failed);
    assert_eq!(failed.state().last_error.as_deref(), Some("Deadlock or cycle detected in workflow"));
}
