//! Random interleavings of everybody's commands on random plans. Each accepted step is sealed and the whole log
//! folded again by the test kit, so these runs also show that folding equals living.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    clippy::needless_pass_by_value,
    reason = "a test stops at the first surprise"
)]

mod checks;

use std::sync::Arc;

use proptest::prelude::*;
use pyoco_core::command::{AdvanceExecution, ClaimExecution, Command, Issuer, Request};
use pyoco_core::event::Choice;
use pyoco_core::json::Json;
use pyoco_core::outcome::Outcome;
use pyoco_core::plan::{Count, FailPolicy, JoinPolicy, Kind, Plan, Policy};
use pyoco_core::state::{Phase, State};
use pyoco_core::time::Millis;
use pyoco_testkit::*;
use serde_json::json;

use checks::{Promises, check_shape};

/// A plan of up to five tasks with random edges, runners and policies, and now and then a loop.
fn plans() -> impl Strategy<Value = Arc<Plan>> {
    let task = (0..4_u8, 0..3_u8, any::<bool>(), 0..5_u8);
    (prop::collection::vec(task, 1..6), any::<u16>(), any::<bool>()).prop_map(|(tasks, edges, with_loop)| {
        let mut graph = Graph::new();
        for (number, (runner, retries, isolate, _)) in tasks.iter().enumerate() {
            let runner = match runner {
                0 | 1 => callable(),
                2 => external(),
                _ => wait("k"),
            };
            let fail = if *isolate { FailPolicy::Isolate } else { FailPolicy::Stop };
            let policy = Policy { fail, retries: u32::from(*retries), ..Policy::default() };
            graph = graph.task_with(&format!("t{number}"), runner, policy);
        }
        let mut bit = 0;
        for to in 1..tasks.len() {
            for from in 0..to {
                if edges >> (bit % 16) & 1 == 1 {
                    graph = graph.edge(&format!("t{from}"), &format!("t{to}"));
                }
                bit += 1;
            }
        }
        for (number, (_, _, _, join)) in tasks.iter().enumerate() {
            let policy = match join {
                0 => JoinPolicy::AnySuccess,
                1 => JoinPolicy::AllDone,
                _ => continue,
            };
            graph = graph.join(&format!("t{number}"), policy);
        }
        if with_loop {
            let body = Graph::new().task("t0", callable()).block();
            graph = graph.node("loop", Kind::Repeat { count: Count::Fixed(2), body }).edge("loop", "t0");
        }
        graph.plan()
    })
}

/// What somebody does next: who, what, and to which node.
#[derive(Debug, Clone)]
struct Step {
    who: u8,
    what: u8,
    node: u8,
    keyed: bool,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (any::<u8>(), any::<u8>(), any::<u8>(), any::<bool>());
    prop::collection::vec(step.prop_map(|(who, what, node, keyed)| Step { who, what, node, keyed }), 1..60)
}

fn target(state: &State, number: u8) -> String {
    match state.nodes.get_index(usize::from(number) % state.nodes.len().max(1)) {
        Some((id, _)) => id.to_string(),
        None => "t0".to_owned(),
    }
}

fn command(state: &State, step: &Step) -> (Issuer, Command) {
    let node = target(state, step.node);
    let by_worker =
        || if step.who.is_multiple_of(8) { worker(u64::from(step.node % 3)) } else { worker(state.epoch.0) };
    let anyone = || if step.who.is_multiple_of(2) { caller() } else { by_worker() };
    match step.what % 24 {
        0..=5 => (anyone(), start_node(&node).into()),
        6..=10 => (anyone(), succeed(&node, json!(step.node)).into()),
        11 | 12 => (anyone(), fail(&node, "boom").into()),
        13 => (anyone(), progress(&node, 10.0).into()),
        14 => (anyone(), put_waiting(&node, "k").into()),
        15 => (caller(), resume(&node, "k").into()),
        16 => (caller(), cancel_node(&node).into()),
        17 => (by_worker(), confirm_stopped(&node).into()),
        18 => (by_worker(), ClaimExecution { owner_expired: step.who > 200, ..claim("job-1", None) }.into()),
        19 => (by_worker(), if step.who.is_multiple_of(2) { park().into() } else { drain().into() }),
        20 => (Issuer::Scheduler, fire_timers().into()),
        21 => (
            Issuer::Scheduler,
            if step.who.is_multiple_of(2) { force_end().into() } else { AdvanceExecution {}.into() },
        ),
        22 if step.who > 180 => (caller(), cancel().into()),
        22 => (by_worker(), choose(&node, Choice::Items(Arc::new(vec![Json(json!(1))]))).into()),
        _ if step.who > 240 => (by_worker(), fail_execution("no").into()),
        _ => (caller(), add_label(&format!("l{}", step.node)).into()),
    }
}

/// Sends a command under a fresh key and, when it was accepted, once more: nothing happens the second time.
fn send_twice(execution: Execution, number: usize, issuer: &Issuer, command: &Command) -> Execution {
    let id = key(&format!("k{number}"));
    let when = execution.when_keyed(id.clone(), issuer, command.clone());
    let wrote = !when.events.is_empty();
    if !wrote {
        return when.execution;
    }
    let again = when.execution.when_keyed(id, issuer, command.clone());
    assert!(
        matches!(again.answer.as_ref().map(|answer| &answer.outcome), Ok(Outcome::Repeated(_))),
        "{:?}",
        again.answer
    );
    assert!(again.events.is_empty());
    again.execution
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn no_interleaving_breaks_a_promise(plan in plans(), steps in steps()) {
        let mut execution = Execution::claimed(&plan);
        let mut promises = Promises::before(execution.state());
        for (number, step) in steps.iter().enumerate() {
            let (issuer, command) = command(execution.state(), step);
            execution = if step.keyed {
                send_twice(execution, number, &issuer, &command)
            } else {
                execution.when(&issuer, command).execution
            };
            promises = promises.after(execution.state());
            check_shape(execution.state());
        }
    }

    #[test]
    fn commands_that_share_a_record_fold_to_the_same_state(plan in plans(), steps in steps(), together in 1..6_usize) {
        let mut execution = Execution::claimed(&plan);
        for chunk in steps.chunks(together) {
            let mut requests: Vec<Request> = Vec::new();
            for step in chunk {
                let (issuer, command) = command(execution.state(), step);
                // Each at its own time, a second apart: what a record says must not depend on its last command's.
                let at = execution.now().after(Millis(1000 * requests.len() as u64));
                requests.push(Request::new(issuer, at, command));
            }
            let last = requests.pop().unwrap();
            execution = execution.ask_together(&requests, &last).execution.later(Millis(10_000));
            check_shape(execution.state());
        }
    }

    #[test]
    fn after_an_accepted_cancel_the_end_is_canceled(plan in plans(), before in steps(), after in steps()) {
        let mut execution = Execution::claimed(&plan);
        for step in &before {
            let (issuer, command) = command(execution.state(), step);
            execution = execution.when(&issuer, command).execution;
        }
        let ended = execution.state().phase.is_terminal();
        execution = execution.when(&caller(), cancel()).execution;
        prop_assert!(ended || execution.state().cancel.is_some());
        for step in &after {
            let (issuer, command) = command(execution.state(), step);
            execution = execution.when(&issuer, command).execution;
        }
        let execution = execution.when(&Issuer::Scheduler, force_end()).execution;
        if !ended {
            prop_assert_eq!(execution.state().phase, Phase::Canceled);
        }
    }

    #[test]
    fn a_worker_that_does_its_work_reaches_an_end(plan in plans(), outcomes in prop::collection::vec(any::<u8>(), 64)) {
        let mut execution = Execution::claimed(&plan);
        let mut outcomes = outcomes.into_iter().cycle();
        for _ in 0..400 {
            let state = execution.state();
            if state.phase.is_terminal() {
                break;
            }
            let id = |number: &_| state.node(*number).unwrap().0.to_string();
            let driver = |number: &_| {
                let node = state.node(*number).unwrap().1;
                if state.is_worker_node(node) { worker(state.epoch.0) } else { caller() }
            };
            execution = if let Some(number) = state.open.running.first() {
                let (issuer, id) = (driver(number), id(number));
                if outcomes.next().unwrap().is_multiple_of(4) {
                    execution.given(&issuer, fail(&id, "boom"))
                } else {
                    execution.given(&issuer, succeed(&id, json!(1)))
                }
            } else if let Some(number) = state.open.ready.first() {
                let (issuer, id) = (driver(number), id(number));
                execution.later(Millis(1000)).given(&issuer, start_node(&id))
            } else if let Some(number) = state.open.waiting.first() {
                let id = id(number);
                execution.given(&caller(), resume(&id, "k"))
            } else {
                panic!("nothing to do, and no end: {:?}", state.phase);
            };
        }
        prop_assert!(execution.state().phase.is_terminal());
    }
}
