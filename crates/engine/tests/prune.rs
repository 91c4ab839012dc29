//! Executions that ended long ago are removed: what goes, what stays, and who notices.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

use std::time::Duration;

use pyoco_core::command::{CreateExecution, ForeignStatus, ImportSnapshot, Issuer, Request};
use pyoco_core::ids::{EventSeq, ExecutionId, Version};
use pyoco_core::json::Object;
use pyoco_core::outcome::{Reason, Rejection};
use pyoco_core::time::Timestamp;
use pyoco_engine::{Ask, Clock as _, Engine, EngineError, Flow, Prune, Pruned, Retry, Submission, Submitted};
use pyoco_ports::{
    Blobs as _, EndedPlace, EventLog as _, IndexRow, Removal, Retention as _, RunIndex as _, TaskLogs as _,
};
use pyoco_testing_deployment::Deployment;
use pyoco_testkit::{archive, caller, cancel, create, key};

const DAY: i64 = 86_400_000;

async fn submit(engine: &Engine, name: Option<&str>, flow: &str) -> Result<Submitted, EngineError> {
    let submission = Submission {
        command: CreateExecution { graph_id: flow.to_owned(), start: true, ..create() },
        flow: Flow::Given,
        issuer: caller(),
        endpoint: "POST /runs".into(),
        key: name.map(key),
        is_key_made_up: false,
        digest: None,
        correlation_id: None,
    };
    engine.submit(submission).await
}

async fn ask(engine: &Engine, execution: &ExecutionId, command: impl Into<pyoco_core::command::Command>) {
    let ask = Ask { command: command.into(), issuer: caller(), key: None, correlation_id: None };
    engine.ask(execution, ask).await.unwrap();
}

/// An execution that has ended.
async fn ended(engine: &Engine, name: Option<&str>) -> ExecutionId {
    let execution = submit(engine, name, "main").await.unwrap().execution;
    ask(engine, &execution, cancel()).await;
    execution
}

fn before(at: Timestamp) -> Prune {
    Prune { before: at, is_foreign_too: false, most: 1_000, after: None }
}

/// Everything that ended more than a day ago goes.
async fn prune(deployment: &Deployment, engine: &Engine) -> Pruned {
    let now = deployment.hands.now().as_micros();
    engine.prune(&before(Timestamp::from_micros(now - DAY * 1000))).await.unwrap()
}

async fn is_there(engine: &Engine, execution: &ExecutionId) -> bool {
    engine.look(execution, |_| ()).await.unwrap().is_some()
}

fn reason(error: EngineError) -> Reason {
    let text = error.to_string();
    let EngineError::Rejected(Rejection { reason, .. }) = error else { panic!("{text}") };
    reason
}

#[tokio::test(start_paused = true)]
async fn what_ended_long_ago_goes_and_every_process_notices() {
    let deployment = Deployment::new();
    let (engine, other) = (deployment.engine(), deployment.engine());
    let old = ended(&engine, None).await;
    let running = submit(&engine, None, "main").await.unwrap().execution;
    deployment.hands.forward(2 * DAY);
    let young = ended(&engine, None).await;
    // The other process has all of them in its memory.
    for execution in [&old, &running, &young] {
        assert!(is_there(&other, execution).await);
    }
    assert_eq!(prune(&deployment, &engine).await, Pruned { removed: 1, left: 0, next: None });
    for engine in [&engine, &other] {
        assert!(!is_there(engine, &old).await);
        assert!(is_there(engine, &running).await && is_there(engine, &young).await);
        assert!(engine.events(&old, EventSeq(0), 9).await.unwrap().is_none());
    }
    assert_eq!(deployment.store.read_lines(&old, 0, 9).await.unwrap(), []);
    let late = other.command(&old, &Request::new(caller(), deployment.hands.now(), archive())).await;
    assert_eq!(reason(late.unwrap_err()), Reason::UnknownExecution(old));
    assert_eq!(prune(&deployment, &other).await, Pruned::default());
}

#[tokio::test(start_paused = true)]
async fn a_repeated_submission_is_recognised_when_its_execution_is_gone() {
    let deployment = Deployment::new();
    let (engine, other) = (deployment.engine(), deployment.engine());
    let execution = ended(&engine, Some("k")).await;
    assert!(submit(&other, Some("k"), "main").await.unwrap().is_repeat);
    deployment.hands.forward(2 * DAY);
    assert_eq!(prune(&deployment, &engine).await.removed, 1);
    for engine in [&engine, &other, &deployment.engine()] {
        let again = submit(engine, Some("k"), "main").await.unwrap();
        assert_eq!(again, Submitted { execution: execution.clone(), is_repeat: true });
        let changed = submit(engine, Some("k"), "another").await.unwrap_err();
        assert_eq!(reason(changed), Reason::KeyReused);
        assert!(!is_there(engine, &execution).await);
        assert!(!submit(engine, None, "main").await.unwrap().is_repeat);
    }
    // Once the tombstone is gone the key is new.
    assert_eq!(deployment.store.drop_tombstones(deployment.hands.now(), 9).await.unwrap(), 0);
    deployment.hands.forward(1);
    assert_eq!(deployment.store.drop_tombstones(deployment.hands.now(), 9).await.unwrap(), 1);
    let anew = submit(&engine, Some("k"), "main").await.unwrap();
    assert_eq!(anew, Submitted { execution: execution.clone(), is_repeat: false });
    assert!(is_there(&engine, &execution).await && is_there(&other, &execution).await);
}

#[tokio::test(start_paused = true)]
async fn archived_ones_stay_and_those_of_others_go_only_when_asked_for() {
    let deployment = Deployment::new();
    let engine = deployment.engine();
    let archived = ended(&engine, None).await;
    ask(&engine, &archived, archive()).await;
    let foreign = ExecutionId::new("foreign").unwrap();
    let import = ImportSnapshot {
        status: ForeignStatus::Completed,
        input: Object::default(),
        worker: None,
        error: None,
        graph_id: "main".to_owned(),
        tag: None,
        labels: Vec::new(),
        tenant_id: None,
        api_key_id: None,
        workflow: None,
    };
    let issuer = Issuer::Foreign { id: None };
    engine.command(&foreign, &Request::new(issuer, deployment.hands.now(), import)).await.unwrap();
    // One that only its row tells of.
    let row = deployment.store.get(&foreign).await.unwrap().unwrap();
    assert!(row.is_foreign && !row.is_archived);
    let bare = ExecutionId::new("bare").unwrap();
    let bare_row = IndexRow { execution: bare.clone(), version: Version(0), ..row };
    deployment.store.put(bare_row).await.unwrap();
    deployment.hands.forward(2 * DAY);
    assert_eq!(prune(&deployment, &engine).await, Pruned::default());
    let now = deployment.hands.now();
    let too = Prune { is_foreign_too: true, ..before(now) };
    assert_eq!(engine.count_prunable(&too).await.unwrap().removed, 2);
    assert_eq!(engine.prune(&too).await.unwrap(), Pruned { removed: 2, left: 0, next: None });
    assert!(!is_there(&engine, &foreign).await && is_there(&engine, &archived).await);
    assert_eq!(deployment.store.get(&bare).await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_row_that_is_older_than_its_log_removes_nothing() {
    let deployment = Deployment::new();
    let engine = deployment.engine();
    let execution = ended(&engine, None).await;
    let row = deployment.store.get(&execution).await.unwrap().unwrap();
    ask(&engine, &execution, archive()).await;
    // Whoever archived it died before its row said so.
    deployment.store.forget(&execution).await.unwrap();
    deployment.store.put(row).await.unwrap();
    deployment.hands.forward(2 * DAY);
    assert_eq!(prune(&deployment, &engine).await, Pruned { removed: 0, left: 1, next: None });
    assert!(is_there(&engine, &execution).await);
    assert!(deployment.store.get(&execution).await.unwrap().unwrap().is_archived, "the row was put right");
    assert_eq!(deployment.store.tombstone(&execution).await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn what_was_left_half_way_is_removed_the_next_time() {
    let deployment = Deployment::new();
    let engine = deployment.engine();
    let execution = ended(&engine, Some("k")).await;
    deployment.hands.forward(2 * DAY);
    let row = deployment.store.get(&execution).await.unwrap().unwrap();
    assert_eq!(prune(&deployment, &engine).await.removed, 1);
    let tombstone = deployment.store.tombstone(&execution).await.unwrap().unwrap();
    // As if the process had died before it came to the row.
    deployment.store.put(row).await.unwrap();
    deployment.hands.forward(10);
    assert_eq!(prune(&deployment, &deployment.engine()).await.removed, 1);
    assert_eq!(deployment.store.get(&execution).await.unwrap(), None);
    assert_eq!(deployment.store.tombstone(&execution).await.unwrap(), Some(tombstone));
}

#[tokio::test(start_paused = true)]
async fn one_that_cannot_be_read_stays_and_keeps_nobody_from_going() {
    let deployment = Deployment::new();
    let engine = deployment.engine();
    let broken = ended(&engine, None).await;
    let mut whole = Vec::new();
    for _ in 0..40 {
        deployment.hands.forward(1);
        whole.push(ended(&engine, None).await);
    }
    let head = deployment.store.read(&broken, Version(0)).await.unwrap().len() as u64;
    let nonsense = pyoco_ports::Append::new(broken.clone(), Version(head), b"nonsense".to_vec());
    deployment.store.append(nonsense).await.unwrap();
    deployment.hands.forward(2 * DAY);
    let engine = deployment.engine();
    // In small orders, each from where the last one ended.
    let (mut removed, mut left, mut after): (usize, usize, Option<EndedPlace>) = (0, 0, None);
    loop {
        let now = deployment.hands.now();
        let pruned = engine.prune(&Prune { most: 7, after, ..before(now) }).await.unwrap();
        assert!(pruned.removed + pruned.left <= 7);
        (removed, left) = (removed + pruned.removed, left + pruned.left);
        after = pruned.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!((removed, left), (40, 1));
    assert!(deployment.store.get(&broken).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn what_ended_just_now_stays_whatever_is_asked() {
    let deployment = Deployment::new();
    let engine = deployment.engine();
    let execution = ended(&engine, None).await;
    let later = Timestamp::from_micros(deployment.hands.now().as_micros() + DAY * 1000);
    assert_eq!(engine.prune(&before(later)).await.unwrap(), Pruned::default());
    deployment.hands.forward(5_001);
    assert_eq!(engine.prune(&before(later)).await.unwrap().removed, 1);
    assert!(!is_there(&engine, &execution).await);
}

#[tokio::test(start_paused = true)]
async fn whoever_follows_one_that_is_removed_comes_to_an_end() {
    let deployment = Deployment::new();
    let (engine, other) = (deployment.engine(), deployment.engine());
    let execution = ended(&engine, None).await;
    deployment.hands.forward(2 * DAY);
    let mut here = engine.follow(&execution, EventSeq(0)).await.unwrap().unwrap();
    let mut there = other.follow(&execution, EventSeq(0)).await.unwrap().unwrap();
    let mut lines = engine.follow_log(&execution, 0).await.unwrap();
    let mut watcher = engine.watch(&execution);
    assert_eq!(prune(&deployment, &engine).await.removed, 1);
    let over = Duration::from_secs(5);
    for follower in [&mut here, &mut there] {
        let told = tokio::time::timeout(over, async { while follower.next().await.unwrap().is_some() {} });
        told.await.unwrap();
    }
    let told = tokio::time::timeout(over, async { while lines.next().await.unwrap().is_some() {} });
    told.await.unwrap();
    tokio::time::timeout(over, watcher.changed()).await.unwrap();
    assert!(engine.follow(&execution, EventSeq(0)).await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_repeat_of_one_that_another_process_removed_is_refused() {
    let deployment = Deployment::new();
    let (engine, other) = (deployment.engine(), deployment.engine());
    let execution = ended(&engine, None).await;
    assert!(is_there(&other, &execution).await);
    let version = other.state(&execution).await.unwrap().version;
    let tombstone =
        pyoco_ports::Tombstone { execution: execution.clone(), at: deployment.hands.now(), digest: None };
    let removal = Removal { tombstone, version };
    let own = deployment.store.put_blob(&execution, b"value").await.unwrap();
    assert_eq!(deployment.store.remove(vec![removal]).await.unwrap().len(), 1);
    assert_eq!(deployment.store.get_blob(&own).await.unwrap(), None);
    let retry = Retry {
        input: None,
        from: None,
        issuer: caller(),
        api_key_id: None,
        traceparent: None,
        key: Some(key("again")),
        correlation_id: None,
    };
    let refused = other.retry(&execution, retry).await.unwrap_err();
    assert_eq!(reason(refused), Reason::UnknownExecution(execution));
}
