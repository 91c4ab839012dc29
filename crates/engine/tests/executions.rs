//! Executions of registered graphs: keys, history, following it, the state as of an event, repeating what has ended.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

use std::sync::Arc;

use pyoco_core::command::{Command, CreateExecution};
use pyoco_core::event::{Choice, EventType};
use pyoco_core::ids::{EventSeq, ExecutionId, Tag};
use pyoco_core::json::Object;
use pyoco_core::outcome::{Reason, Rejection};
use pyoco_core::state::{NodeStatus, Phase, State};
use pyoco_engine::{Ask, Asked, Create, Engine, EngineError, Flow, GraphError, GraphPut, Retry, Submission};
use pyoco_ports::{GraphFormat, GraphSource, WorkQueue as _};
use pyoco_testing_deployment::Deployment;
use pyoco_testkit::{
    archive, caller, cancel, choose, claim, create, fail, key, node, resume, start, start_node, succeed,
    worker,
};
use serde_json::json;

const CHAIN: &str = "version: 2\nflow: {graph: 'a >> b >> c'}\ntasks: {a: {}, b: {}, c: {}}\n";

async fn put(engine: &Engine, id: &str, text: &str) -> u64 {
    let source = GraphSource { format: GraphFormat::Yaml, text: text.to_owned() };
    let put = GraphPut { tenant: None, id: id.to_owned(), source, by: None, expected: None };
    engine.put_graph(put).await.unwrap().graph.record.version
}

async fn ask(
    engine: &Engine,
    execution: &ExecutionId,
    name: Option<&str>,
    command: impl Into<Command>,
) -> Result<Asked, EngineError> {
    let ask = Ask { command: command.into(), issuer: caller(), key: name.map(key), correlation_id: None };
    engine.ask(execution, ask).await
}

fn wanted(graph: &str) -> Create {
    let command = CreateExecution { graph_id: graph.to_owned(), ..create() };
    Create { command, version: None, issuer: caller(), key: None, correlation_id: None }
}

/// An execution of a graph, started.
async fn started(engine: &Engine, graph: &str) -> ExecutionId {
    let execution = engine.create(wanted(graph)).await.unwrap().execution;
    ask(engine, &execution, None, start()).await.unwrap();
    execution
}

async fn run(engine: &Engine, execution: &ExecutionId, id: &str, output: serde_json::Value) {
    ask(engine, execution, None, start_node(id)).await.unwrap();
    ask(engine, execution, None, succeed(id, output)).await.unwrap();
}

async fn types(engine: &Engine, execution: &ExecutionId) -> Vec<EventType> {
    let page = engine.events(execution, EventSeq(0), 10_000).await.unwrap().unwrap();
    assert!(page.events.iter().map(|event| event.seq.0).eq(1..=page.last.0), "without a gap");
    page.events.iter().map(|event| event.envelope().unwrap().event.event_type()).collect()
}

async fn state(engine: &Engine, execution: &ExecutionId) -> State {
    engine.state(execution).await.unwrap()
}

fn reason(error: EngineError) -> Reason {
    let text = error.to_string();
    let EngineError::Rejected(Rejection { reason, .. }) = error else { panic!("{text}") };
    reason
}

fn again(from: Option<&str>) -> Retry {
    Retry {
        input: None,
        from: from.map(node),
        issuer: caller(),
        api_key_id: None,
        traceparent: None,
        key: None,
        correlation_id: None,
    }
}

#[tokio::test]
async fn a_graph_is_driven_from_outside_to_its_end() {
    let engine = Deployment::new().engine();
    put(&engine, "chain", CHAIN).await;
    let execution = started(&engine, "chain").await;
    for id in ["a", "b", "c"] {
        run(&engine, &execution, id, json!(id)).await;
    }
    let state = state(&engine, &execution).await;
    assert_eq!(state.phase, Phase::Completed);
    assert_eq!(state.origin.as_ref().unwrap().graph_version, Some(1));
}

#[tokio::test]
async fn a_key_counts_once_for_its_own_endpoint_and_is_answered_the_same_again() {
    let engine = Deployment::new().engine();
    put(&engine, "chain", CHAIN).await;
    let execution = engine.create(wanted("chain")).await.unwrap().execution;
    let first = ask(&engine, &execution, Some("k"), start()).await.unwrap();
    assert!(!first.is_repeat);
    // The same key at another door is another key.
    assert!(!ask(&engine, &execution, Some("k"), start_node("a")).await.unwrap().is_repeat);
    let before = types(&engine, &execution).await;
    let with_a_thread = Ask {
        command: start().into(),
        issuer: caller(),
        key: Some(key("k")),
        correlation_id: Some("another".to_owned()),
    };
    let repeat = engine.ask(&execution, with_a_thread).await.unwrap();
    assert_eq!(repeat, Asked { is_repeat: true, ..first });
    assert_eq!(types(&engine, &execution).await, before);
    let other = ask(&engine, &execution, Some("s"), succeed("a", json!(1))).await.unwrap();
    assert!(!other.is_repeat);
    let reused = ask(&engine, &execution, Some("s"), succeed("a", json!(2))).await.unwrap_err();
    assert_eq!(reason(reused), Reason::KeyReused);
}

#[tokio::test]
async fn a_created_execution_is_found_by_its_key_also_after_its_graph_is_gone() {
    let engine = Deployment::new().engine();
    put(&engine, "chain", CHAIN).await;
    let keyed = || Create { key: Some(key("mine")), ..wanted("chain") };
    let first = engine.create(keyed()).await.unwrap();
    put(&engine, "chain", &CHAIN.replace("a >> b >> c", "a >> c")).await;
    assert!(engine.delete_graph(None, "chain", None, None).await.unwrap());
    assert_eq!(engine.create(keyed()).await.unwrap(), Asked { is_repeat: true, ..first });
    match engine.create(wanted("chain")).await {
        Err(EngineError::UnknownGraph(id)) => assert_eq!(id, "chain"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn versions_of_a_graph_are_counted_and_pinned() {
    let engine = Deployment::new().engine();
    assert_eq!(put(&engine, "g", CHAIN).await, 1);
    assert_eq!(put(&engine, "g", CHAIN).await, 1, "the same text is the same version");
    let old = started(&engine, "g").await;
    assert_eq!(put(&engine, "g", &CHAIN.replace("a >> b >> c", "c >> b >> a")).await, 2);
    ask(&engine, &old, None, start_node("a")).await.unwrap();
    let new = started(&engine, "g").await;
    ask(&engine, &new, None, start_node("c")).await.unwrap();
    let first = Create { version: Some(1), ..wanted("g") };
    let first = engine.create(first).await.unwrap().execution;
    assert_eq!(state(&engine, &first).await.origin.unwrap().graph_version, Some(1));
    let source = GraphSource { format: GraphFormat::Yaml, text: CHAIN.to_owned() };
    let stale = GraphPut { tenant: None, id: "g".to_owned(), source, by: None, expected: Some(1) };
    assert!(matches!(engine.put_graph(stale).await, Err(GraphError::Changed { newest: 2 })));
    assert!(engine.delete_graph(None, "g", None, None).await.unwrap());
    assert_eq!(put(&engine, "g", CHAIN).await, 4, "a deletion is a version too");
}

#[tokio::test]
async fn what_is_submitted_by_name_uses_the_registered_graph_and_nothing_where_there_is_none() {
    let d = Deployment::new();
    let engine = d.engine();
    let submission = || Submission {
        command: CreateExecution { graph_id: "g".to_owned(), start: true, ..create() },
        flow: Flow::Named,
        issuer: caller(),
        endpoint: "POST /runs".into(),
        key: None,
        digest: None,
        is_key_made_up: false,
        correlation_id: None,
    };
    let unknown = engine.submit(submission()).await.unwrap().execution;
    assert!(state(&engine, &unknown).await.plan.is_none());
    put(&engine, "g", CHAIN).await;
    let known = engine.submit(submission()).await.unwrap().execution;
    assert_eq!(state(&engine, &known).await.node_status("a"), NodeStatus::Ready);
    put(&engine, "g", "flow: {graph: 'a'}\ntasks: {a: {callable: 'm:f'}}\n").await;
    let of_version_one = engine.submit(submission()).await.unwrap().execution;
    let state = state(&engine, &of_version_one).await;
    assert!(state.plan.is_none() && state.workflow.unwrap().contains("m:f"), "its worker compiles it");
    assert_eq!(state.origin.unwrap().graph_version, Some(2));
    assert_eq!(d.store.inner.depth(&Tag::default()).await.unwrap(), 2);
}

#[tokio::test]
async fn a_graph_that_is_no_flow_is_not_kept() {
    let engine = Deployment::new().engine();
    let source = GraphSource { format: GraphFormat::Json, text: "{\"version\": 2}".to_owned() };
    let bad = GraphPut { tenant: None, id: "g".to_owned(), source, by: None, expected: None };
    assert!(matches!(engine.put_graph(bad).await, Err(GraphError::Invalid(_))));
    assert!(engine.graph(None, "g", None).await.unwrap().is_none());
}

#[tokio::test]
async fn history_is_read_in_pages_also_where_it_is_long() {
    let engine = Deployment::new().engine();
    put(&engine, "chain", CHAIN).await;
    let execution = started(&engine, "chain").await;
    ask(&engine, &execution, None, start_node("a")).await.unwrap();
    for percent in 0..400 {
        let progress = pyoco_testkit::progress("a", f64::from(percent) / 4.0);
        ask(&engine, &execution, None, progress).await.unwrap();
    }
    let all = engine.events(&execution, EventSeq(0), 10_000).await.unwrap().unwrap();
    assert_eq!(all.events.len() as u64, all.last.0);
    for after in [0, 1, 63, 64, 65, 200, 399, all.last.0, all.last.0 + 5] {
        let page = engine.events(&execution, EventSeq(after), 7).await.unwrap().unwrap();
        let wanted: Vec<u64> = (after + 1..=all.last.0).take(7).collect();
        assert_eq!(page.events.iter().map(|event| event.seq.0).collect::<Vec<_>>(), wanted);
    }
    assert!(engine.events(&ExecutionId::new("nobody").unwrap(), EventSeq(0), 7).await.unwrap().is_none());
}

#[tokio::test]
async fn the_state_as_of_each_event_is_what_the_events_up_to_it_say() {
    let engine = Deployment::new().engine();
    put(&engine, "chain", CHAIN).await;
    let execution = started(&engine, "chain").await;
    for id in ["a", "b", "c"] {
        run(&engine, &execution, id, json!(id)).await;
    }
    let now = state(&engine, &execution).await;
    for seq in 1..=now.events.0 {
        let then = engine.state_at(&execution, EventSeq(seq)).await.unwrap().unwrap();
        assert_eq!(then.events, EventSeq(seq));
        let succeeded = types(&engine, &execution)
            .await
            .iter()
            .take(usize::try_from(seq).unwrap())
            .filter(|kind| **kind == EventType::NodeSucceeded)
            .count();
        let shown = then.nodes.values().filter(|node| node.status == NodeStatus::Succeeded).count();
        assert_eq!(shown, succeeded, "after event {seq}");
    }
    assert_eq!(engine.state_at(&execution, now.events).await.unwrap().unwrap().phase, Phase::Completed);
    for nothing in [EventSeq(0), now.events.next()] {
        assert!(engine.state_at(&execution, nothing).await.unwrap().is_none());
    }
}

#[tokio::test]
async fn followers_see_every_event_once_and_are_told_when_it_is_over() {
    let d = Deployment::new();
    let engine = d.engine();
    put(&engine, "chain", CHAIN).await;
    let execution = started(&engine, "chain").await;
    let mut following = Vec::new();
    for after in [0_u64, 1, 3] {
        let mut follower = engine.follow(&execution, EventSeq(after)).await.unwrap().unwrap();
        following.push(tokio::spawn(async move {
            let mut seen = Vec::new();
            while let Some(events) = follower.next().await.unwrap() {
                seen.extend(events.iter().map(|event| event.seq.0));
            }
            (after, seen)
        }));
    }
    for id in ["a", "b", "c"] {
        run(&engine, &execution, id, json!(id)).await;
    }
    let last = state(&engine, &execution).await.events.0;
    for follower in following {
        let (after, seen) = follower.await.unwrap();
        assert_eq!(seen, (after + 1..=last).collect::<Vec<_>>());
    }
    ask(&engine, &execution, None, archive()).await.unwrap();
    let mut late = engine.follow(&execution, EventSeq(last)).await.unwrap().unwrap();
    assert_eq!(late.next().await.unwrap().unwrap().len(), 1, "the archive mark");
    assert!(late.next().await.unwrap().is_none());
}

#[tokio::test]
async fn a_repeat_keeps_what_succeeded_and_runs_what_failed() {
    let engine = Deployment::new().engine();
    put(&engine, "chain", CHAIN).await;
    let execution = started(&engine, "chain").await;
    run(&engine, &execution, "a", json!({"rows": 3})).await;
    assert_eq!(reason(engine.retry(&execution, again(None)).await.unwrap_err()), Reason::StillActive);
    ask(&engine, &execution, None, start_node("b")).await.unwrap();
    ask(&engine, &execution, None, fail("b", "no luck")).await.unwrap();
    let asked = engine.retry(&execution, again(None)).await.unwrap();
    let repeat = state(&engine, &asked.execution).await;
    assert_eq!(
        (repeat.node_status("a"), repeat.node_status("b")),
        (NodeStatus::Succeeded, NodeStatus::Ready)
    );
    assert_eq!(repeat.nodes.get(&node("a")).unwrap().output.value.as_ref().unwrap().0, json!({"rows": 3}));
    assert_eq!(repeat.origin.as_ref().unwrap().retry_of, Some(execution.clone()));
    assert_eq!(state(&engine, &execution).await.retried_by, Some(asked.execution.clone()));
    run(&engine, &asked.execution, "b", json!(1)).await;
    run(&engine, &asked.execution, "c", json!(2)).await;
    assert_eq!(state(&engine, &asked.execution).await.phase, Phase::Completed);
    // What is live and what is folded from the log are the same.
    let folded =
        engine.state_at(&asked.execution, state(&engine, &asked.execution).await.events).await.unwrap();
    assert_eq!(folded.unwrap().nodes, state(&engine, &asked.execution).await.nodes);
}

#[tokio::test]
async fn a_repeat_may_begin_at_a_node_and_with_another_input() {
    let engine = Deployment::new().engine();
    let forked = "version: 2\nflow: {graph: 'a >> (b & c) >> d'}\ntasks: {a: {}, b: {}, c: {}, d: {}}\n";
    put(&engine, "fork", forked).await;
    let execution = started(&engine, "fork").await;
    for id in ["a", "b", "c", "d"] {
        run(&engine, &execution, id, json!(id)).await;
    }
    assert_eq!(reason(engine.retry(&execution, again(None)).await.unwrap_err()), Reason::NothingToRetry);
    let unknown = engine.retry(&execution, again(Some("z"))).await.unwrap_err();
    assert_eq!(reason(unknown), Reason::UnknownNode(node("z")));
    let input = Object(json!({"day": 2}).as_object().unwrap().clone());
    let from_b = Retry { input: Some(input.clone()), ..again(Some("b")) };
    let asked = engine.retry(&execution, from_b).await.unwrap();
    let repeat = state(&engine, &asked.execution).await;
    let statuses = ["a", "b", "c", "d"].map(|id| repeat.node_status(id));
    use NodeStatus::{Pending, Ready, Succeeded};
    assert_eq!(statuses, [Succeeded, Ready, Succeeded, Pending]);
    assert_eq!(repeat.origin.as_ref().unwrap().input, input);
}

#[tokio::test]
async fn a_repeat_under_a_key_is_made_once() {
    let engine = Deployment::new().engine();
    put(&engine, "chain", CHAIN).await;
    let execution = started(&engine, "chain").await;
    ask(&engine, &execution, None, cancel()).await.unwrap();
    let keyed = |from| Retry { key: Some(key("r")), ..again(from) };
    let first = engine.retry(&execution, keyed(None)).await.unwrap();
    assert_eq!(engine.retry(&execution, keyed(None)).await.unwrap(), Asked { is_repeat: true, ..first });
    assert_eq!(reason(engine.retry(&execution, keyed(Some("a"))).await.unwrap_err()), Reason::KeyReused);
}

#[tokio::test]
async fn a_repeat_of_much_that_succeeded_goes_on_where_one_record_has_no_room() {
    let engine = Deployment::new().engine();
    let names: Vec<String> = (0..400).map(|number| format!("t{number}")).collect();
    let tasks: Vec<String> = names.iter().map(|name| format!("  {name}: {{}}")).collect();
    let text =
        format!("version: 2\nflow:\n  graph: |\n    {}\ntasks:\n{}\n", names.join(" >> "), tasks.join("\n"));
    put(&engine, "long", &text).await;
    let execution = started(&engine, "long").await;
    for id in &names[..399] {
        run(&engine, &execution, id, json!("x".repeat(2_000))).await;
    }
    ask(&engine, &execution, None, cancel()).await.unwrap();
    let asked = engine.retry(&execution, again(None)).await.unwrap();
    let repeat = state(&engine, &asked.execution).await;
    assert_eq!(repeat.node_status("t399"), NodeStatus::Ready);
    assert!(repeat.nodes.get(&node("t0")).unwrap().output.value.is_some(), "whoever drives it sees it");
    run(&engine, &asked.execution, "t399", json!(1)).await;
    assert_eq!(state(&engine, &asked.execution).await.phase, Phase::Completed);
}

#[tokio::test]
async fn a_wait_that_was_answered_is_not_asked_again() {
    let engine = Deployment::new().engine();
    let text = "version: 2\nflow: {graph: 'ok >> b'}\ntasks: {ok: {wait: {key: k1}}, b: {}}\n";
    put(&engine, "approval", text).await;
    let execution = started(&engine, "approval").await;
    let waiting = |seq| pyoco_ports::Wait { node: node("ok"), since: seq };
    let row = pyoco_ports::RunIndex::get(&**engine.store(), &execution).await.unwrap().unwrap();
    assert_eq!(row.waits, [waiting(row.waits[0].since)]);
    ask(&engine, &execution, None, resume("ok", "k1")).await.unwrap();
    ask(&engine, &execution, None, start_node("b")).await.unwrap();
    ask(&engine, &execution, None, fail("b", "no")).await.unwrap();
    let asked = engine.retry(&execution, again(None)).await.unwrap();
    let repeat = state(&engine, &asked.execution).await;
    assert_eq!(
        (repeat.node_status("ok"), repeat.node_status("b")),
        (NodeStatus::Succeeded, NodeStatus::Ready)
    );
}

/// What a node is, planned or reached.
trait NodeStatusOf {
    fn node_status(&self, id: &str) -> NodeStatus;
}

impl NodeStatusOf for State {
    fn node_status(&self, id: &str) -> NodeStatus {
        self.nodes.get(&node(id)).map(|node| node.status).unwrap_or_default()
    }
}

#[tokio::test]
async fn thirty_two_at_once_under_one_key_have_one_effect() {
    let engine = Deployment::new().engine();
    put(&engine, "chain", CHAIN).await;
    let execution = Arc::new(started(&engine, "chain").await);
    let asking: Vec<_> = (0..32)
        .map(|_| {
            let (engine, execution) = (engine.clone(), execution.clone());
            tokio::spawn(async move { ask(&engine, &execution, Some("k"), start_node("a")).await.unwrap() })
        })
        .collect();
    let mut firsts = 0;
    for asked in asking {
        firsts += usize::from(!asked.await.unwrap().is_repeat);
    }
    assert_eq!(firsts, 1);
    let started = types(&engine, &execution).await.into_iter().filter(|kind| *kind == EventType::NodeStarted);
    assert_eq!(started.count(), 1);
}

/// Asks as the worker that holds the execution.
async fn work(engine: &Engine, execution: &ExecutionId, command: impl Into<Command>) {
    let now = pyoco_core::time::Timestamp::from_micros(1_000_000);
    let request = pyoco_core::command::Request::new(worker(1), now, command);
    engine.command(execution, &request).await.unwrap();
}

async fn work_node(engine: &Engine, execution: &ExecutionId, id: &str) {
    work(engine, execution, start_node(id)).await;
    work(engine, execution, succeed(id, json!(id))).await;
}

#[tokio::test]
async fn answers_that_a_loop_got_are_kept_with_the_rounds_they_led_to() {
    let engine = Deployment::new().engine();
    let text = concat!(
        "version: 2\n",
        "flow: {graph: 'flow >> (a >> b) % (\"$ctx.results.b\", 9) >> c'}\n",
        "tasks: {a: {callable: 'm:a'}, b: {callable: 'm:b'}, c: {callable: 'm:c'}}\n"
    );
    put(&engine, "loop", text).await;
    let execution = started(&engine, "loop").await;
    let control = state(&engine, &execution).await.nodes.keys().next().unwrap().as_str().to_owned();
    work(&engine, &execution, claim("job", None)).await;
    let inner = |round: u64, name: &str| format!("{control}/{round}/{name}");
    for round in 1..=2 {
        work_node(&engine, &execution, &inner(round, "a")).await;
        work_node(&engine, &execution, &inner(round, "b")).await;
        work(&engine, &execution, choose(&control, Choice::Holds(false))).await;
    }
    work_node(&engine, &execution, &inner(3, "a")).await;
    work(&engine, &execution, start_node(&inner(3, "b"))).await;
    work(&engine, &execution, fail(&inner(3, "b"), "no")).await;
    assert_eq!(state(&engine, &execution).await.phase, Phase::Failed);

    let asked = engine.retry(&execution, again(None)).await.unwrap();
    let repeat = state(&engine, &asked.execution).await;
    assert_eq!(repeat.node_status(&inner(3, "a")), NodeStatus::Succeeded);
    assert_eq!(repeat.node_status(&inner(3, "b")), NodeStatus::Ready, "the loop stands where it stood");

    // From a node of the second round on: the first round stays, what it led to does not.
    let asked = engine.retry(&execution, again(Some(&inner(2, "b")))).await.unwrap();
    let repeat = state(&engine, &asked.execution).await;
    assert_eq!(repeat.node_status(&inner(1, "b")), NodeStatus::Succeeded);
    assert_eq!(repeat.node_status(&inner(2, "a")), NodeStatus::Succeeded);
    assert_eq!(repeat.node_status(&inner(2, "b")), NodeStatus::Ready);
    assert!(repeat.nodes.get(&node(&inner(3, "a"))).is_none());
    work(&engine, &asked.execution, claim("job", None)).await;
    work_node(&engine, &asked.execution, &inner(2, "b")).await;
    work(&engine, &asked.execution, choose(&control, Choice::Holds(true))).await;
    work_node(&engine, &asked.execution, "c").await;
    assert_eq!(state(&engine, &asked.execution).await.phase, Phase::Completed);
}

#[tokio::test]
async fn a_repeat_of_a_repeat_does_not_take_the_place_of_a_later_one() {
    let engine = Deployment::new().engine();
    put(&engine, "chain", CHAIN).await;
    let execution = started(&engine, "chain").await;
    ask(&engine, &execution, None, cancel()).await.unwrap();
    let keyed = |name| Retry { key: Some(key(name)), ..again(None) };
    engine.retry(&execution, keyed("first")).await.unwrap();
    let second = engine.retry(&execution, keyed("second")).await.unwrap();
    assert!(engine.retry(&execution, keyed("first")).await.unwrap().is_repeat);
    assert_eq!(state(&engine, &execution).await.retried_by, Some(second.execution));
}

#[tokio::test]
async fn what_is_too_much_for_a_record_goes_beside_the_log_largest_first() {
    let engine = Deployment::new().engine();
    let names: Vec<String> = (0..12).map(|number| format!("t{number}")).collect();
    let tasks: Vec<String> = names.iter().map(|name| format!("  {name}: {{}}")).collect();
    let text =
        format!("version: 2\nflow: {{graph: '{}'}}\ntasks:\n{}\n", names.join(" >> "), tasks.join("\n"));
    put(&engine, "large", &text).await;
    let execution = started(&engine, "large").await;
    for (position, id) in names[..11].iter().enumerate() {
        run(&engine, &execution, id, json!("x".repeat(800_000 + position))).await;
    }
    ask(&engine, &execution, None, cancel()).await.unwrap();
    let asked = engine.retry(&execution, again(None)).await.unwrap();
    let repeat = state(&engine, &asked.execution).await;
    let output = |id: &str| repeat.nodes.get(&node(id)).unwrap().output.clone();
    assert!(output("t0").value.is_some() && output("t10").reference.is_some());
    assert_eq!(repeat.node_status("t11"), NodeStatus::Ready);
}

#[tokio::test]
async fn other_parameters_are_asked_again_where_a_switch_led_to_the_failure() {
    let engine = Deployment::new().engine();
    let text = concat!(
        "version: 2\n",
        "flow:\n  graph: 'flow >> switch(\"$ctx.params.mode\")[\"x\" >> a, \"*\" >> b]'\n",
        "tasks: {a: {callable: 'm:a'}, b: {callable: 'm:b'}}\n"
    );
    put(&engine, "switch", text).await;
    let execution = started(&engine, "switch").await;
    let control = state(&engine, &execution).await.nodes.keys().next().unwrap().as_str().to_owned();
    work(&engine, &execution, claim("job", None)).await;
    work(&engine, &execution, choose(&control, Choice::Case(Some(0)))).await;
    let inner = format!("{control}/1/a");
    work(&engine, &execution, start_node(&inner)).await;
    work(&engine, &execution, fail(&inner, "no")).await;
    let same = engine.retry(&execution, again(None)).await.unwrap().execution;
    assert_eq!(state(&engine, &same).await.node_status(&inner), NodeStatus::Ready, "the answer is kept");
    let input = Object(json!({"mode": "y"}).as_object().unwrap().clone());
    let other = Retry { input: Some(input), ..again(None) };
    let other = engine.retry(&execution, other).await.unwrap().execution;
    let other = state(&engine, &other).await;
    assert_eq!(
        (other.node_status(&inner), other.open.asking.len()),
        (NodeStatus::Pending, 1),
        "it is asked again"
    );
}

#[tokio::test]
async fn a_deleted_graph_makes_nothing_new_in_any_version() {
    let engine = Deployment::new().engine();
    put(&engine, "g", CHAIN).await;
    engine.delete_graph(None, "g", None, None).await.unwrap();
    let first = engine.create(Create { version: Some(1), ..wanted("g") }).await;
    assert!(matches!(first, Err(EngineError::UnknownGraph(_))));
    assert!(engine.graph(None, "g", Some(1)).await.unwrap().is_none());
}

#[tokio::test]
async fn a_key_with_another_version_of_the_graph_is_a_conflict_and_with_another_api_key_it_is_not() {
    let engine = Deployment::new().engine();
    put(&engine, "g", CHAIN).await;
    put(&engine, "g", &CHAIN.replace("a >> b >> c", "a >> c")).await;
    let keyed = |version, api_key: &str| {
        let mut create = Create { key: Some(key("k")), version, ..wanted("g") };
        create.command.api_key_id = Some(api_key.to_owned());
        create
    };
    let first = engine.create(keyed(Some(1), "one")).await.unwrap();
    let conflict = engine.create(keyed(Some(2), "one")).await.unwrap_err();
    assert_eq!(reason(conflict), Reason::KeyReused);
    assert_eq!(engine.create(keyed(Some(1), "two")).await.unwrap(), Asked { is_repeat: true, ..first });
}

#[tokio::test]
async fn asking_what_has_ended_does_not_make_its_log_longer_for_ever() {
    let engine = Deployment::new().engine();
    put(&engine, "chain", CHAIN).await;
    let execution = started(&engine, "chain").await;
    ask(&engine, &execution, Some("c"), cancel()).await.unwrap();
    for number in 0..1_100 {
        assert!(!ask(&engine, &execution, Some(&format!("c{number}")), cancel()).await.unwrap().is_repeat);
    }
    for seen in ["c", "c0", "c500"] {
        assert!(ask(&engine, &execution, Some(seen), cancel()).await.unwrap().is_repeat);
    }
    let state = state(&engine, &execution).await;
    assert_eq!(state.commands.len(), 1_000);
    assert!(state.version.0 <= 1_000, "{}", state.version);
}

#[tokio::test]
async fn records_without_an_event_belong_to_the_event_before_them() {
    let engine = Deployment::new().engine();
    put(&engine, "chain", CHAIN).await;
    let execution = started(&engine, "chain").await;
    ask(&engine, &execution, None, cancel()).await.unwrap();
    let repeat = engine.retry(&execution, again(None)).await.unwrap().execution;
    let now = state(&engine, &execution).await;
    let then = engine.state_at(&execution, now.events).await.unwrap().unwrap();
    assert_eq!((then.retried_by.as_ref(), then.updated_at), (Some(&repeat), now.updated_at));
    let first = engine.state_at(&execution, EventSeq(1)).await.unwrap().unwrap();
    assert!(first.updated_at.is_some());
}
