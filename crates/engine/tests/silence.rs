//! A store that says nothing: whoever asks is told in time that nobody knows, however many ask at once.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and measures time"
)]

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use pyoco_core::ids::{ExecutionId, Version};
use pyoco_engine::{EngineError, Submission};
use pyoco_ports::ErrorKind;
use pyoco_testing_deployment::Deployment;
use pyoco_testkit::{caller, create};

/// An answer must have come by then.
const SOON: Duration = Duration::from_secs(2);

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

fn is_time_out(error: &EngineError) -> bool {
    matches!(error, EngineError::Store(error) if error.kind == ErrorKind::Timeout)
}

#[tokio::test]
async fn a_submission_is_refused_in_time_and_leaves_nothing() {
    let d = Deployment::new();
    let engine = d.engine();
    d.store.silent.store(true, Ordering::SeqCst);
    let since = Instant::now();
    let error = engine.submit(submission()).await.unwrap_err();
    assert!(is_time_out(&error) && since.elapsed() < SOON, "{error} after {:?}", since.elapsed());
    d.store.silent.store(false, Ordering::SeqCst);
    engine.sweep(&[], 10).await.unwrap();
    let rows = pyoco_ports::RunIndex::list(&d.store.inner, &Default::default(), 10).await.unwrap().rows;
    assert!(rows.is_empty(), "{rows:?}");
}

#[tokio::test]
async fn those_who_look_behind_others_are_answered_in_time_too() {
    let d = Deployment::new();
    let engine = d.engine();
    let run: ExecutionId = engine.submit(submission()).await.unwrap().execution;
    d.store.silent.store(true, Ordering::SeqCst);
    let since = Instant::now();
    let looks: Vec<_> = (0..8)
        .map(|_| {
            let (engine, run) = (engine.clone(), run.clone());
            tokio::spawn(async move { engine.look(&run, |state| state.version).await })
        })
        .collect();
    for look in looks {
        let error = look.await.unwrap().unwrap_err();
        assert!(is_time_out(&error), "{error}");
    }
    assert!(since.elapsed() < SOON, "{:?}", since.elapsed());
    d.store.silent.store(false, Ordering::SeqCst);
    assert_eq!(engine.look(&run, |state| state.version).await.unwrap(), Some(Version(1)));
}
