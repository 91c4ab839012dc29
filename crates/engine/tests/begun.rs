//! Submissions of which nobody can say whether they arrived: what was refused is taken back and never runs, and what lost its gateway
//! half-way is shown and run.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::sync::atomic::Ordering;

use pyoco_core::ids::{ExecutionId, Tag};
use pyoco_core::state::Phase;
use pyoco_engine::{Engine, EngineError, Submission};
use pyoco_ports::{ErrorKind, LogPlace, RunIndex as _, Unshown, WorkQueue as _};
use pyoco_testing_deployment::Deployment;
use pyoco_testkit::{caller, create};

fn submission() -> Submission {
    let mut command = create();
    command.start = true;
    Submission {
        command,
        issuer: caller(),
        endpoint: "POST /runs".into(),
        flow: pyoco_engine::Flow::Given,
        digest: None,
        is_key_made_up: false,
        key: None,
        correlation_id: None,
    }
}

/// The first execution of a deployment.
fn first() -> ExecutionId {
    ExecutionId::new("e-0").unwrap()
}

/// A store that leaves everything but the log to the engine, as a shared one does.
fn shared() -> Deployment {
    let d = Deployment::new();
    d.store.bare.store(true, Ordering::SeqCst);
    d
}

/// The record is stored, but its answer is lost, and with it the connection.
async fn refused(d: &Deployment, engine: &Engine) {
    d.store.time_out.store(1, Ordering::SeqCst);
    d.store.unreadable.store(true, Ordering::SeqCst);
    let error = engine.submit(submission()).await.unwrap_err();
    assert!(matches!(&error, EngineError::Store(error) if error.kind == ErrorKind::Unavailable), "{error}");
    assert_eq!(d.store.appends.load(Ordering::SeqCst), 1);
    d.store.unreadable.store(false, Ordering::SeqCst);
    assert_eq!(engine.state(&first()).await.unwrap().phase, Phase::Started);
}

async fn jobs(d: &Deployment) -> u64 {
    d.store.depth(&Tag::default()).await.unwrap()
}

#[tokio::test]
async fn what_was_refused_because_nobody_could_look_for_it_is_taken_back() {
    let d = shared();
    let engine = d.engine();
    refused(&d, &engine).await;
    engine.sweep(&[Tag::default()], 10).await.unwrap();
    let state = engine.state(&first()).await.unwrap();
    assert_eq!((state.phase, state.hidden, jobs(&d).await), (Phase::Canceled, true, 0));
    assert_eq!(d.store.get(&first()).await.unwrap(), None);
}

#[tokio::test]
async fn what_never_left_costs_nothing_to_refuse() {
    let d = shared();
    let engine = d.engine();
    d.store.unavailable.store(1, Ordering::SeqCst);
    engine.submit(submission()).await.unwrap_err();
    engine.sweep(&[Tag::default()], 10).await.unwrap();
    assert_eq!(d.store.appends.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn what_this_process_has_refused_is_not_run_by_a_look_either() {
    let d = shared();
    let engine = d.engine();
    refused(&d, &engine).await;
    let found = Unshown { executions: vec![first()], until: Some(LogPlace(1)) };
    d.store.unshown.lock().unwrap().clone_from(&found);
    assert_eq!(engine.finish_the_begun().await.unwrap(), 0);
    // The next look finds it again: whoever has refused it may be lost before it is taken back.
    assert_eq!((jobs(&d).await, d.store.unshown.lock().unwrap().clone()), (0, found));
    engine.sweep(&[Tag::default()], 10).await.unwrap();
    engine.finish_the_begun().await.unwrap();
    assert_eq!(jobs(&d).await, 0);
    assert_eq!(*d.store.unshown.lock().unwrap(), Unshown::default());
    assert_eq!(d.store.get(&first()).await.unwrap(), None);
}

#[tokio::test]
async fn what_lost_its_gateway_behind_its_first_record_is_shown_and_run_by_another() {
    let d = shared();
    {
        let lost = d.engine();
        refused(&d, &lost).await;
    }
    let engine = d.engine();
    *d.store.unshown.lock().unwrap() = Unshown { executions: vec![first()], until: Some(LogPlace(1)) };
    assert_eq!(engine.finish_the_begun().await.unwrap(), 1);
    assert_eq!(jobs(&d).await, 1);
    assert!(d.store.get(&first()).await.unwrap().is_some());
    assert_eq!(*d.store.unshown.lock().unwrap(), Unshown::default());
}
