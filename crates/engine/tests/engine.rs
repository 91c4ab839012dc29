//! The engine over a store that misbehaves: nothing is lost, nothing happens twice, and cancel wins.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test stops at the first surprise"
)]

use std::sync::atomic::Ordering;
use std::time::Duration;

use pyoco_core::command::{Command, Issuer, Request};
use pyoco_core::decide::Answer;
use pyoco_core::ids::{ExecutionId, Tag, Version};
use pyoco_core::outcome::{Outcome, Reason};
use pyoco_core::state::Phase;
use pyoco_core::time::Millis;
use pyoco_core::view::RunStatus;
use pyoco_engine::{Engine, EngineError, Finding};
use pyoco_ports::{DeadLetters, EventLog, RunIndex, WorkQueue};
use pyoco_testing_deployment::Deployment;
use pyoco_testkit::*;
use serde_json::json;

fn id() -> ExecutionId {
    ExecutionId::new("e").unwrap()
}

fn submission() -> Command {
    let mut command = create();
    command.start = true;
    command.into()
}

async fn ask(
    engine: &Engine,
    d: &Deployment,
    issuer: Issuer,
    command: impl Into<Command>,
) -> Result<Answer, EngineError> {
    let request = Request::new(issuer, pyoco_engine::Clock::now(&*d.hands), command);
    engine.command(&id(), &request).await
}

async fn ask_keyed(
    engine: &Engine,
    d: &Deployment,
    name: &str,
    command: impl Into<Command>,
) -> Result<Answer, EngineError> {
    let request = Request::new(caller(), pyoco_engine::Clock::now(&*d.hands), command).with_id(key(name));
    engine.command(&id(), &request).await
}

/// Submitted, claimed, and the first of two tasks running.
async fn running(engine: &Engine, d: &Deployment) {
    let plan = Graph::chain(&["a", "b"], &callable()).plan();
    ask(engine, d, caller(), submission()).await.unwrap();
    ask(engine, d, worker(0), claim("job-1", Some(&plan))).await.unwrap();
    ask(engine, d, worker(1), start_node("a")).await.unwrap();
}

#[tokio::test]
async fn a_submission_is_a_record_a_row_and_a_job() {
    let d = Deployment::new();
    ask(&d.engine(), &d, caller(), submission()).await.unwrap();
    let row = d.store.inner.get(&id()).await.unwrap().unwrap();
    assert_eq!((row.version, row.summary.status, row.wants_job), (Version(1), RunStatus::Pending, true));
    let taken =
        d.store.inner.take(&[Tag::default()], &worker_id("w"), 9, Millis(1), row.updated_at).await.unwrap();
    let body: serde_json::Value = serde_json::from_slice(&taken[0].body).unwrap();
    assert_eq!((&body["run_id"], &body["flow_name"]), (&json!("e"), &json!("main")));
}

#[tokio::test]
async fn consequences_that_a_store_leaves_to_the_engine_are_carried_out() {
    let d = Deployment::new();
    d.store.bare.store(true, Ordering::SeqCst);
    let engine = d.engine();
    ask(&engine, &d, caller(), submission()).await.unwrap();
    assert!(d.store.inner.get(&id()).await.unwrap().is_some());
    assert_eq!(d.store.inner.depth(&Tag::default()).await.unwrap(), 1);
    ask(&engine, &d, worker(0), fail_execution("no such flow")).await.unwrap();
    assert_eq!(d.store.inner.count_letters().await.unwrap(), 1);
}

#[tokio::test]
async fn a_known_execution_costs_one_append_and_no_read() {
    let d = Deployment::new();
    let engine = d.engine();
    running(&engine, &d).await;
    let before = d.store.appends.load(Ordering::SeqCst);
    ask(&engine, &d, worker(1), succeed("a", json!(1))).await.unwrap();
    assert_eq!(d.store.appends.load(Ordering::SeqCst), before + 1);
}

#[tokio::test]
async fn an_append_that_was_applied_but_timed_out_is_recognised() {
    let d = Deployment::new();
    let engine = d.engine();
    d.store.time_out.store(1, Ordering::SeqCst);
    let answer = ask_keyed(&engine, &d, "k", submission()).await.unwrap();
    assert_eq!(answer.outcome, Outcome::Repeated(Version(1)));
    assert_eq!(d.store.inner.read(&id(), Version(0)).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_submission_that_timed_out_is_found_again_and_keeps_its_row_and_job() {
    let d = Deployment::new();
    d.store.bare.store(true, Ordering::SeqCst);
    d.store.time_out.store(1, Ordering::SeqCst);
    let mut command = create();
    command.start = true;
    let submission = pyoco_engine::Submission {
        command,
        issuer: caller(),
        endpoint: "POST /runs".into(),
        flow: pyoco_engine::Flow::Given,
        digest: None,
        is_key_made_up: false,
        key: None,
        correlation_id: None,
    };
    let submitted = d.engine().submit(submission).await.unwrap();
    let execution = submitted.execution.clone();
    assert!(submitted.is_repeat);
    assert_eq!(d.store.inner.read(&execution, Version(0)).await.unwrap().len(), 1);
    assert!(d.store.inner.get(&execution).await.unwrap().is_some());
    assert_eq!(d.store.inner.depth(&Tag::default()).await.unwrap(), 1);
}

#[tokio::test]
async fn a_key_names_one_execution_for_ever_and_another_input_is_a_conflict() {
    let d = Deployment::new();
    let submission = |graph: &str| {
        let mut command = create();
        (command.start, command.graph_id) = (true, graph.to_owned());
        let key = Some(key("mine"));
        pyoco_engine::Submission {
            command,
            issuer: caller(),
            endpoint: "POST /runs".into(),
            flow: pyoco_engine::Flow::Given,
            digest: None,
            is_key_made_up: false,
            key,
            correlation_id: None,
        }
    };
    let first = d.engine().submit(submission("main")).await.unwrap();
    let again = d.engine().submit(submission("main")).await.unwrap();
    assert_eq!((first.is_repeat, again.is_repeat), (false, true));
    assert_eq!(first.execution, again.execution);
    let other = d.engine().submit(submission("other")).await.unwrap_err();
    assert!(matches!(other, EngineError::Rejected(rejection) if rejection.reason == Reason::KeyReused));
}

#[tokio::test]
async fn a_time_out_that_nobody_can_tell_from_a_failure_is_said() {
    let d = Deployment::new();
    d.store.time_out.store(1, Ordering::SeqCst);
    let error = ask(&d.engine(), &d, caller(), submission()).await.unwrap_err();
    assert!(matches!(error, EngineError::Store(error) if error.kind == pyoco_ports::ErrorKind::Timeout));
}

#[tokio::test]
async fn a_store_that_is_away_changes_nothing() {
    let d = Deployment::new();
    let engine = d.engine();
    running(&engine, &d).await;
    d.store.unavailable.store(1, Ordering::SeqCst);
    assert!(ask(&engine, &d, caller(), cancel()).await.is_err());
    assert_eq!(
        engine.state(&id()).await.unwrap().phase,
        Phase::Started,
        "the state that had seen the cancel is gone"
    );
    ask(&engine, &d, caller(), cancel()).await.unwrap();
    assert_eq!(engine.state(&id()).await.unwrap().phase, Phase::Canceling);
}

#[tokio::test]
async fn two_engines_on_one_log_decide_again_when_the_other_was_faster() {
    let d = Deployment::new();
    let (here, there) = (d.engine(), d.engine());
    running(&here, &d).await;
    // `there` has never seen the execution; `here` does not know what `there` writes.
    ask(&there, &d, caller(), cancel()).await.unwrap();
    let answer = ask(&here, &d, worker(1), succeed("a", json!(1))).await.unwrap();
    assert_eq!(answer.outcome, Outcome::Accepted);
    let state = there.state(&id()).await.unwrap();
    assert_eq!(state.phase, Phase::Canceled, "cancel wins, also over a success that was decided before it");
}

#[tokio::test(flavor = "multi_thread")]
async fn cancel_and_completion_race_and_cancel_wins_whenever_it_was_accepted() {
    let (mut canceled, mut completed) = (0, 0);
    for round in 0..200 {
        let d = Deployment::new();
        let (here, there) = (d.engine(), d.engine());
        let plan = Graph::chain(&["a"], &callable()).plan();
        ask(&here, &d, caller(), submission()).await.unwrap();
        ask(&here, &d, worker(0), claim("job-1", Some(&plan))).await.unwrap();
        ask(&here, &d, worker(1), start_node("a")).await.unwrap();
        let at = pyoco_engine::Clock::now(&*d.hands);
        let finish = Request::new(worker(1), at, succeed("a", json!(1)));
        let stop = Request::new(caller(), at, cancel());
        let canceler = there.clone();
        let stopping = tokio::spawn(async move { canceler.command(&id(), &stop).await });
        if round % 2 == 0 {
            tokio::task::yield_now().await;
        }
        here.command(&id(), &finish).await.unwrap();
        let accepted = stopping.await.unwrap().is_ok();
        let phase = there.state(&id()).await.unwrap().phase;
        assert_eq!(phase, if accepted { Phase::Canceled } else { Phase::Completed });
        if accepted { canceled += 1 } else { completed += 1 }
    }
    assert_eq!(canceled + completed, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_key_many_times_at_once_has_one_effect() {
    let d = Deployment::new();
    let engines: Vec<Engine> = (0..4).map(|_| d.engine()).collect();
    let at = pyoco_engine::Clock::now(&*d.hands);
    let tasks: Vec<_> = (0..32)
        .map(|n| {
            let engine = engines[n % 4].clone();
            let request = Request::new(caller(), at, submission()).with_id(key("once"));
            tokio::spawn(async move { engine.command(&id(), &request).await.unwrap().outcome })
        })
        .collect();
    let mut accepted = 0;
    for task in tasks {
        match task.await.unwrap() {
            Outcome::Accepted => accepted += 1,
            outcome => assert_eq!(outcome, Outcome::Repeated(Version(1))),
        }
    }
    assert_eq!(accepted, 1);
    assert_eq!(d.store.inner.read(&id(), Version(0)).await.unwrap().len(), 1);
    assert_eq!(d.store.inner.depth(&Tag::default()).await.unwrap(), 1);
}

#[tokio::test]
async fn several_commands_that_come_together_share_a_record() {
    let d = Deployment::new();
    let engine = d.engine();
    running(&engine, &d).await;
    let at = pyoco_engine::Clock::now(&*d.hands);
    let step =
        [Request::new(worker(1), at, succeed("a", json!(1))), Request::new(worker(1), at, start_node("b"))];
    let answers = engine.together(&id(), &step).await.unwrap();
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(engine.state(&id()).await.unwrap().version, Version(4));
    let refused = engine.together(&id(), &[Request::new(worker(1), at, start_node("b"))]).await.unwrap();
    assert!(
        matches!(&refused[0], Err(EngineError::Rejected(rejection)) if matches!(rejection.reason, Reason::NodeIs { .. }))
    );
}

#[tokio::test]
async fn a_wide_fork_is_opened_to_its_end_before_the_answer() {
    let d = Deployment::new();
    let engine = d.engine();
    let names: Vec<String> = (0..1500).map(|n| format!("t{n}")).collect();
    let plan = names.iter().fold(Graph::new(), |graph, name| graph.task(name, callable())).plan();
    ask(&engine, &d, caller(), submission()).await.unwrap();
    ask(&engine, &d, worker(0), claim("job-1", Some(&plan))).await.unwrap();
    let state = engine.state(&id()).await.unwrap();
    assert_eq!(state.open.ready.len(), 1500);
    assert!(!state.needs_advance());
}

#[tokio::test]
async fn a_watcher_is_told_at_once_and_misses_nothing() {
    let d = Deployment::new();
    let engine = d.engine();
    let mut watcher = engine.watch(&id());
    let told = tokio::spawn(async move { watcher.changed().await });
    running(&engine, &d).await;
    let version = tokio::time::timeout(Duration::from_secs(10), told).await.unwrap().unwrap();
    assert!(version >= Version(1));
}

#[tokio::test]
async fn the_sweeper_puts_a_lost_job_back_once() {
    let d = Deployment::new();
    let engine = d.engine();
    ask(&engine, &d, caller(), submission()).await.unwrap();
    assert_eq!(engine.sweep(&[Tag::default()], 100).await.unwrap(), pyoco_engine::Swept::default());
    d.store.inner.drop_waiting(&id()).await.unwrap();
    // Somebody else may be about to put it there, so it is missed twice before it is lost.
    assert_eq!(engine.sweep(&[Tag::default()], 100).await.unwrap().enqueued, 0);
    assert_eq!(engine.sweep(&[Tag::default()], 100).await.unwrap().enqueued, 1);
    assert_eq!(engine.sweep(&[Tag::default()], 100).await.unwrap().enqueued, 0);
}

#[tokio::test]
async fn what_was_in_hand_when_a_backup_was_made_has_a_job_again_and_its_old_worker_is_fenced() {
    let d = Deployment::new();
    let engine = d.engine();
    running(&engine, &d).await;
    // The backup has its claim, and not its job.
    d.store.inner.drop_waiting(&id()).await.unwrap();
    assert_eq!(d.store.inner.depth(&Tag::default()).await.unwrap(), 0);
    assert_eq!(engine.take_from_all().await.unwrap(), 1);
    assert_eq!(d.store.inner.depth(&Tag::default()).await.unwrap(), 1);
    let late = ask(&engine, &d, worker(1), succeed("a", json!(1))).await.unwrap_err();
    assert!(
        matches!(&late, EngineError::Rejected(why) if matches!(why.reason, Reason::Fenced { .. })),
        "{late}"
    );
    ask(&engine, &d, worker(1), claim("job-2", None)).await.unwrap();
    ask(&engine, &d, worker(2), start_node("a")).await.unwrap();
    assert_eq!(engine.take_from_all().await.unwrap(), 1);
    assert_eq!(engine.take_from_all().await.unwrap(), 0, "nobody has it any more");
}

#[tokio::test]
async fn the_sweeper_ends_a_cancel_that_its_worker_does_not() {
    let d = Deployment::new();
    let engine = d.engine();
    running(&engine, &d).await;
    ask(&engine, &d, caller(), cancel()).await.unwrap();
    d.hands.forward(39_000);
    assert_eq!(engine.sweep(&[], 100).await.unwrap().forced, 0);
    d.hands.forward(1_000);
    assert_eq!(engine.sweep(&[], 100).await.unwrap().forced, 1);
    assert_eq!(engine.state(&id()).await.unwrap().phase, Phase::Canceled);
    assert_eq!(engine.sweep(&[], 100).await.unwrap(), pyoco_engine::Swept::default());
}

#[tokio::test]
async fn the_sweeper_wakes_a_parked_execution_when_its_retry_is_due() {
    let d = Deployment::new();
    let engine = d.engine();
    let policy = pyoco_core::plan::Policy { retries: 1, retry_delay: Millis(60_000), ..Default::default() };
    let plan = Graph::new().task_with("a", callable(), policy).plan();
    ask(&engine, &d, caller(), submission()).await.unwrap();
    d.store.inner.drop_waiting(&id()).await.unwrap();
    ask(&engine, &d, worker(0), claim("job-1", Some(&plan))).await.unwrap();
    ask(&engine, &d, worker(1), start_node("a")).await.unwrap();
    ask(&engine, &d, worker(1), fail("a", "boom")).await.unwrap();
    ask(&engine, &d, worker(1), park()).await.unwrap();
    assert_eq!(engine.sweep(&[Tag::default()], 100).await.unwrap(), pyoco_engine::Swept::default());
    d.hands.forward(60_000);
    let swept = engine.sweep(&[Tag::default()], 100).await.unwrap();
    assert_eq!((swept.timers, swept.enqueued), (1, 0));
    assert_eq!(d.store.inner.depth(&Tag::default()).await.unwrap(), 1);
}

#[tokio::test]
async fn an_audit_finds_what_was_changed_and_repairs_what_is_derived() {
    let d = Deployment::new();
    let engine = d.engine();
    running(&engine, &d).await;
    assert_eq!(engine.audit(&id()).await.unwrap().findings, []);
    let mut row = d.store.inner.get(&id()).await.unwrap().unwrap();
    row.summary.status = RunStatus::Completed;
    d.store.inner.put(row.clone()).await.unwrap();
    assert_eq!(engine.audit(&id()).await.unwrap().findings, [Finding::RowRepaired]);
    assert_eq!(engine.audit(&id()).await.unwrap().findings, []);
    row.version = Version(99);
    d.store.inner.put(row).await.unwrap();
    let lost = Finding::TailLost { seen: Version(99), has: Version(3) };
    assert_eq!(engine.audit(&id()).await.unwrap().findings, [lost]);
    let forged = pyoco_ports::Append::new(id(), Version(3), b"{\"v\":1}".to_vec());
    d.store.inner.append(forged).await.unwrap();
    assert!(matches!(engine.audit(&id()).await.unwrap().findings[..], [Finding::BrokenLog(_)]));
    assert!(matches!(d.engine().state(&id()).await, Err(EngineError::Log { .. })));
}

#[tokio::test]
async fn a_refusal_never_rests_on_what_others_have_changed_since() {
    let d = Deployment::new();
    let (one, two) = (d.engine(), d.engine());
    running(&one, &d).await;
    // The other process remembers who holds it, and is not told when that ends.
    assert!(two.state(&id()).await.unwrap().claim.is_some());
    let release = pyoco_core::command::ReleaseExecution { parked: false };
    ask(&one, &d, worker(1), release).await.unwrap();
    let claimed = ask(&two, &d, worker(0), claim("job-2", None)).await;
    assert!(
        matches!(claimed, Ok(ref answer) if matches!(answer.outcome, Outcome::Claimed(_))),
        "{claimed:?}"
    );
}

#[tokio::test]
async fn whoever_watches_learns_what_a_look_finds() {
    let d = Deployment::new();
    let (one, two) = (d.engine(), d.engine());
    running(&one, &d).await;
    let seen = two.state(&id()).await.unwrap().version;
    let mut watcher = two.watch(&id());
    ask(&one, &d, caller(), cancel()).await.unwrap();
    // Nobody told this process; it happens to look.
    two.look(&id(), |_| ()).await.unwrap();
    tokio::time::timeout(Duration::from_secs(10), watcher.beyond(seen)).await.expect("it is told");
}
