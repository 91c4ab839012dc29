//! The transition tables: every (phase, command), (node status, command) and (phase, event) pair, written out.
//!
//! The tables in docs/state-machine.md are made here from what the code does. Run with `UPDATE_DOCS=1` to
//! rewrite them; otherwise a difference is a failure.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    clippy::needless_pass_by_value,
    reason = "a test stops at the first surprise"
)]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use pyoco_core::command::{AdvanceExecution, Command, ForeignStatus, Issuer};
use pyoco_core::event::{Choice, EventType};
use pyoco_core::expr::Expression;
use pyoco_core::json::Json;
use pyoco_core::outcome::Outcome;
use pyoco_core::plan::{BlockBuilder, Case, Kind, TaskIndex};
use pyoco_core::state::{NodeStatus, Phase};
use pyoco_testkit::*;
use serde_json::json;

/// A flow in which every kind of command finds its node: `run` and `next` are a worker's, `out` and `free` a
/// caller's, `ask` waits, `pick` is a switch that asks.
fn plan() -> std::sync::Arc<pyoco_core::plan::Plan> {
    let mut body = BlockBuilder::new();
    body.add("next", Kind::Task(TaskIndex(1)));
    let case = Case { value: Json(json!(1)), body: body.finish(false).block };
    let on = Expression::parse("$ctx.params.n").unwrap();
    Graph::new()
        .task("run", callable())
        .task("next", callable())
        .task("out", external())
        .task("free", external())
        .task("ask", wait("k"))
        .node("pick", Kind::Switch { on, cases: vec![case], default: None })
        .plan()
}

fn in_phase(phase: Phase) -> Execution {
    let started = || {
        Execution::claimed(&plan()).given(&worker(1), start_node("run")).given(&caller(), start_node("out"))
    };
    let one = || {
        Execution::started(&Graph::chain(&["run"], &external()).plan()).given(&caller(), start_node("run"))
    };
    match phase {
        Phase::Absent => Execution::new(),
        Phase::Created => Execution::new().given(&caller(), create()),
        Phase::Started => started(),
        Phase::Failing => {
            started().given(&worker(1), start_node("next")).given(&worker(1), fail("next", "boom"))
        }
        Phase::Canceling => started().given(&caller(), cancel()),
        Phase::Completed => one().given(&caller(), succeed("run", json!(1))),
        Phase::Failed => one().given(&caller(), fail("run", "boom")),
        Phase::Canceled => one().given(&caller(), cancel()),
    }
}

/// Every command as its natural issuer sends it; node commands also as the other side sends them.
fn commands() -> Vec<(&'static str, Issuer, Command)> {
    let (by_caller, by_worker, sweeper) = (caller(), worker(1), Issuer::Scheduler);
    let claimer = Issuer::Worker { id: worker_id("w2"), epoch: pyoco_core::ids::Epoch(0) };
    vec![
        ("CreateExecution", by_caller.clone(), create().into()),
        ("StartExecution", by_caller.clone(), start().into()),
        ("CancelExecution", by_caller.clone(), cancel().into()),
        ("ArchiveExecution", by_caller.clone(), archive().into()),
        ("StartNode (caller)", by_caller.clone(), start_node("free").into()),
        ("StartNode (worker)", by_worker.clone(), start_node("next").into()),
        ("ReportNodeProgress (caller)", by_caller.clone(), progress("out", 1.0).into()),
        ("ReportNodeProgress (worker)", by_worker.clone(), progress("run", 1.0).into()),
        ("PutNodeWaiting (caller)", by_caller.clone(), put_waiting("out", "k").into()),
        ("ResumeNode (caller)", by_caller.clone(), resume("ask", "k").into()),
        ("SucceedNode (caller)", by_caller.clone(), succeed("out", json!(1)).into()),
        ("SucceedNode (worker)", by_worker.clone(), succeed("run", json!(1)).into()),
        ("FailNode (caller)", by_caller.clone(), fail("out", "boom").into()),
        ("FailNode (worker)", by_worker.clone(), fail("run", "boom").into()),
        ("ClaimExecution (redelivery)", claimer.clone(), claim("job-1", None).into()),
        ("ClaimExecution (other job)", claimer, claim("job-2", None).into()),
        ("ReleaseExecution", by_worker.clone(), drain().into()),
        ("FailExecution", by_worker.clone(), fail_execution("no").into()),
        ("ChooseNode", by_worker.clone(), choose("pick", Choice::Case(Some(0))).into()),
        ("CancelNode", by_caller.clone(), cancel_node("run").into()),
        ("ConfirmNodeStopped", by_worker, confirm_stopped("run").into()),
        ("ForceEnd", sweeper.clone(), force_end().into()),
        ("FireTimers", sweeper.clone(), fire_timers().into()),
        ("AdvanceExecution", sweeper, AdvanceExecution {}.into()),
        ("AnnotateExecution", by_caller, add_label("l").into()),
        ("ImportSnapshot", Issuer::Foreign { id: None }, import(ForeignStatus::Running).into()),
    ]
}

fn cell(execution: Execution, issuer: &Issuer, command: Command) -> (String, Phase) {
    let when = execution.when(issuer, command);
    let after = when.execution.state().phase;
    let text = match &when.answer {
        Err(rejection) => format!("refused: {}", rejection.reason),
        Ok(answer) if when.events.is_empty() => match &answer.outcome {
            Outcome::Accepted | Outcome::Claimed(_) => "accepted".to_owned(),
            Outcome::Unchanged => "nothing to do".to_owned(),
            outcome => format!("nothing: {outcome:?}"),
        },
        Ok(_) => {
            let mut names: Vec<String> = Vec::new();
            for kind in &when.events {
                if names.last().is_none_or(|last| last != kind.as_str()) {
                    names.push(kind.as_str().to_owned());
                }
            }
            names.join(", ")
        }
    };
    (text, after)
}

fn phases_by_commands(moves: &mut BTreeSet<(Phase, Phase, &'static str)>) -> String {
    let mut table = String::new();
    for phase in Phase::ALL {
        writeln!(table, "\n### {phase:?}\n\n| command | what happens | phase after |\n|---|---|---|")
            .unwrap();
        for (name, issuer, command) in commands() {
            let label = command.name();
            let (text, after) = cell(in_phase(phase), &issuer, command);
            if after != phase {
                moves.insert((phase, after, label));
            }
            writeln!(table, "| {name} | {text} | {after:?} |").unwrap();
        }
    }
    table
}

/// The moves of the last open node, which the tables above (with many open nodes) do not show.
fn last_moves(moves: &mut BTreeSet<(Phase, Phase, &'static str)>) {
    let one = Execution::started(&Graph::chain(&["n"], &external()).plan()).given(&caller(), start_node("n"));
    let failing = in_phase(Phase::Failing).given(&caller(), fail("out", "late"));
    let steps: [(&Execution, Issuer, Command); 7] = [
        (&one, caller(), succeed("n", json!(1)).into()),
        (&one, caller(), fail("n", "boom").into()),
        (&one, caller(), cancel().into()),
        (&one, caller(), cancel_node("n").into()),
        (&failing, worker(1), succeed("run", json!(1)).into()),
        (&failing, worker(1), fail("run", "boom").into()),
        (&failing, worker(1), confirm_stopped("run").into()),
    ];
    for (execution, issuer, command) in steps {
        let (before, label) = (execution.state().phase, command.name());
        let after = execution.clone().given(&issuer, command).state().phase;
        assert_ne!(before, after, "{label} moves the execution");
        moves.insert((before, after, label));
    }
}

fn node_in(status: NodeStatus) -> Option<Execution> {
    let begun = Execution::started(&Graph::chain(&["before", "n"], &external()).plan())
        .given(&caller(), start_node("before"));
    let ready = || begun.clone().given(&caller(), succeed("before", json!(1)));
    let running = || ready().given(&caller(), start_node("n"));
    // A second node keeps the execution going after the first has settled.
    let two = || {
        let plan = Graph::new().task("n", external()).task("other", external()).plan();
        Execution::started(&plan).given(&caller(), start_node("n"))
    };
    Some(match status {
        NodeStatus::Pending => begun.clone(),
        NodeStatus::Ready => ready(),
        NodeStatus::Running => running(),
        NodeStatus::Waiting => running().given(&caller(), put_waiting("n", "k")),
        NodeStatus::Succeeded => two().given(&caller(), succeed("n", json!(1))),
        NodeStatus::Canceled => two().given(&caller(), cancel_node("n")),
        NodeStatus::Failed => {
            let isolate = pyoco_core::plan::Policy {
                fail: pyoco_core::plan::FailPolicy::Isolate,
                ..Default::default()
            };
            let plan = Graph::new().task_with("n", external(), isolate).task("other", external()).plan();
            Execution::started(&plan).given(&caller(), start_node("n")).given(&caller(), fail("n", "boom"))
        }
    })
}

fn nodes_by_commands() -> String {
    const STATUSES: [NodeStatus; 7] = [
        NodeStatus::Pending,
        NodeStatus::Ready,
        NodeStatus::Running,
        NodeStatus::Waiting,
        NodeStatus::Succeeded,
        NodeStatus::Failed,
        NodeStatus::Canceled,
    ];
    let commands: [(&str, Command); 7] = [
        ("StartNode", start_node("n").into()),
        ("ReportNodeProgress", progress("n", 1.0).into()),
        ("PutNodeWaiting", put_waiting("n", "k").into()),
        ("ResumeNode", resume("n", "k").into()),
        ("SucceedNode", succeed("n", json!(1)).into()),
        ("FailNode", fail("n", "boom").into()),
        ("CancelNode", cancel_node("n").into()),
    ];
    let mut table = "| node is | command | what happens | node after |\n|---|---|---|---|\n".to_owned();
    for status in STATUSES {
        for (name, command) in &commands {
            let execution = node_in(status).unwrap();
            assert_eq!(execution.node("n"), status);
            let when = execution.clone().when(&caller(), command.clone());
            let after = when.execution.node("n");
            let (text, _) = cell(execution, &caller(), command.clone());
            writeln!(table, "| {status} | {name} | {text} | {after} |").unwrap();
        }
    }
    table
}

/// What each event of the execution does to each phase: the reducer's own table.
fn phases_by_events() -> String {
    let executions: Vec<EventType> = EventType::ALL.into_iter().take(8).collect();
    let mut table = "| event |".to_owned();
    for phase in Phase::ALL {
        write!(table, " {phase:?} |").unwrap();
    }
    writeln!(table, "\n|---|{}", "---|".repeat(Phase::ALL.len())).unwrap();
    for kind in executions {
        write!(table, "| {kind} |").unwrap();
        for phase in Phase::ALL {
            let mut state = in_phase(phase).state().clone();
            let text = format!(
                r#"{{"eventId":"v","executionId":"e-1","type":"{kind}","occurredAt":"2026-01-01T00:00:00Z","actor":{{"kind":"system"}},"schemaVersion":1,"payload":{{"graphId":"g"}}}}"#
            );
            let envelope: pyoco_core::event::EventEnvelope = serde_json::from_str(&text).unwrap();
            let archived = state.archived_at;
            state.apply(&envelope.event, envelope.occurred_at);
            let change = match (state.phase == phase, state.archived_at == archived) {
                (false, _) => format!("{:?}", state.phase),
                (true, false) => "archived".to_owned(),
                (true, true) => "·".to_owned(),
            };
            write!(table, " {change} |").unwrap();
        }
        table.push('\n');
    }
    table
}

fn diagram(moves: &BTreeSet<(Phase, Phase, &'static str)>) -> String {
    let mut pairs: Vec<(Phase, Phase, Vec<&str>)> = Vec::new();
    for (from, to, label) in moves {
        match pairs.iter_mut().find(|(f, t, _)| f == from && t == to) {
            Some((_, _, labels)) => labels.push(label),
            None => pairs.push((*from, *to, vec![label])),
        }
    }
    let mut text = "```mermaid\nstateDiagram-v2\n".to_owned();
    for (from, to, labels) in pairs {
        writeln!(text, "    {from:?} --> {to:?}: {}", labels.join(", ")).unwrap();
    }
    text + "```\n"
}

#[test]
fn the_documented_tables_are_what_the_code_does() {
    let mut moves = BTreeSet::new();
    let commands = phases_by_commands(&mut moves);
    last_moves(&mut moves);
    let generated = format!(
        "## Phases, as commands move them\n\n{}\n## Phases, as events fold them\n\nA `·` means: kept in the log, changes nothing.\n\n{}\n## Nodes, as a caller's commands move them\n\n{}\n## Every phase with every command\n{commands}",
        diagram(&moves),
        phases_by_events(),
        nodes_by_commands(),
    );
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/state-machine.md");
    let document = std::fs::read_to_string(&path).expect("docs/state-machine.md");
    let marker = "<!-- generated from the code below this line: UPDATE_DOCS=1 cargo test -p pyoco-core --test transitions -->\n";
    let (head, tables) = document.split_once(marker).expect("the marker line");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{head}{marker}\n{generated}"))
            .expect("docs/state-machine.md is written");
    } else {
        assert!(
            tables.trim() == generated.trim(),
            "docs/state-machine.md differs from the code; UPDATE_DOCS=1 rewrites it"
        );
    }
}

#[test]
fn every_command_has_a_row() {
    let shown: BTreeSet<&str> = commands().iter().map(|(_, _, command)| command.name()).collect();
    let all: BTreeSet<&str> = Command::NAMES.iter().copied().collect();
    assert_eq!(shown, all);
}

#[test]
fn every_accepted_command_is_recognised_when_it_is_repeated() {
    let mut repeated = BTreeSet::new();
    for phase in Phase::ALL {
        for (_, issuer, command) in commands() {
            let when = in_phase(phase).when_keyed(key("again"), &issuer, command.clone());
            let wrote = when.execution.log().len() > in_phase(phase).log().len();
            if when.answer.is_err() || !wrote {
                continue;
            }
            let again = when.execution.when_keyed(key("again"), &issuer, command.clone());
            let outcome = &again.answer.as_ref().unwrap().outcome;
            assert!(matches!(outcome, Outcome::Repeated(_)), "{phase:?} {}: {outcome:?}", command.name());
            assert_eq!(again.events, []);
            repeated.insert(command.name());
            let other = again.execution.when_keyed(key("again"), &caller(), add_label("another input"));
            other.then_rejected(&pyoco_core::outcome::Reason::KeyReused);
        }
    }
    assert_eq!(repeated, Command::NAMES.iter().copied().collect());
}
