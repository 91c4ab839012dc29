//! The same command for many executions, on a store that fails in the middle of it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

use std::sync::atomic::Ordering;

use pyoco_core::command::CreateExecution;
use pyoco_core::ids::ExecutionId;
use pyoco_core::state::Phase;
use pyoco_engine::{Ask, Bulk, BulkAction, BulkResult, Bulked, Create, Engine, EngineError, GraphPut, Skip};
use pyoco_ports::{ErrorKind, Filter, GraphFormat, GraphSource, RunIndex as _};
use pyoco_testing_deployment::Deployment;
use pyoco_testkit::{caller, create, key, start};

const CANCEL: BulkAction = BulkAction::Cancel { reason: None };

async fn started(deployment: &Deployment, engine: &Engine, count: usize) -> Vec<ExecutionId> {
    let text = "version: 2\nflow: {graph: a}\ntasks: {a: {}}\n".to_owned();
    let source = GraphSource { format: GraphFormat::Yaml, text };
    let put = GraphPut { tenant: None, id: "one".to_owned(), source, by: None, expected: None };
    engine.put_graph(put).await.unwrap();
    let mut all = Vec::new();
    for _ in 0..count {
        let command = CreateExecution { graph_id: "one".to_owned(), ..create() };
        let wanted = Create { command, version: None, issuer: caller(), key: None, correlation_id: None };
        let execution = engine.create(wanted).await.unwrap().execution;
        let ask = Ask { command: start().into(), issuer: caller(), key: None, correlation_id: None };
        engine.ask(&execution, ask).await.unwrap();
        deployment.hands.forward(1);
        all.push(execution);
    }
    all
}

fn bulk(action: BulkAction, name: &str) -> Bulk {
    Bulk {
        action,
        filter: Filter::default(),
        limit: 1_000,
        is_dry: false,
        issuer: caller(),
        api_key_id: None,
        key: Some(key(name)),
        correlation_id: None,
        traceparent: None,
    }
}

fn done(bulked: &Bulked) -> usize {
    bulked.results.iter().filter(|(_, result)| matches!(result, BulkResult::Done(_))).count()
}

async fn in_phase(engine: &Engine, all: &[ExecutionId], phase: Phase) -> usize {
    let mut count = 0;
    for execution in all {
        count += usize::from(engine.state(execution).await.unwrap().phase == phase);
    }
    count
}

#[tokio::test]
async fn a_store_that_is_away_is_not_asked_a_thousand_times() {
    let deployment = Deployment::new();
    let engine = deployment.engine();
    let all = started(&deployment, &engine, 60).await;
    deployment.store.unavailable.store(usize::MAX, Ordering::SeqCst);
    let before = deployment.store.appends.load(Ordering::SeqCst);
    let error = engine.bulk(bulk(CANCEL, "k")).await.unwrap_err();
    assert!(matches!(&error, EngineError::Store(error) if error.kind == ErrorKind::Unavailable), "{error}");
    let tried = deployment.store.appends.load(Ordering::SeqCst) - before;
    assert!((1..=20).contains(&tried), "{tried}");
    deployment.store.unavailable.store(0, Ordering::SeqCst);
    assert_eq!(in_phase(&engine, &all, Phase::Canceled).await, 0);
}

#[tokio::test]
async fn when_the_store_fails_half_way_it_says_what_was_done_and_where_to_go_on() {
    let deployment = Deployment::new();
    let engine = deployment.engine();
    let all = started(&deployment, &engine, 60).await;
    deployment.store.unavailable.store(1, Ordering::SeqCst);
    let first = engine.bulk(bulk(CANCEL, "k")).await.unwrap();
    let looked_at = first.results.len();
    assert!((2..30).contains(&looked_at), "{looked_at}");
    assert_eq!(done(&first), looked_at - 1);
    assert_eq!(in_phase(&engine, &all, Phase::Canceled).await, looked_at - 1);
    // Newest change first, without a gap: behind the last of them nothing was begun.
    let seen: Vec<&ExecutionId> = first.results.iter().map(|(execution, _)| execution).collect();
    assert!(seen.iter().copied().eq(all.iter().rev().take(looked_at)));
    let mut rest = bulk(CANCEL, "k");
    rest.filter.cursor = first.next.clone();
    let rest = engine.bulk(rest).await.unwrap();
    assert_eq!((done(&rest), rest.next.is_none()), (60 - looked_at, true));
    // And again from the beginning for the one that failed.
    let again = engine.bulk(bulk(CANCEL, "k")).await.unwrap();
    assert_eq!((again.results.len(), done(&again)), (1, 1));
    assert_eq!(in_phase(&engine, &all, Phase::Canceled).await, 60);
}

#[tokio::test]
async fn retries_whose_appends_are_not_answered_are_made_once() {
    let deployment = Deployment::new();
    let engine = deployment.engine();
    let all = started(&deployment, &engine, 20).await;
    engine.bulk(bulk(CANCEL, "k")).await.unwrap();
    // Applied, and the answer is lost: now and then, then always, then never. Each try is another process, under another key.
    for (number, every) in [3, 1, 0].into_iter().enumerate() {
        deployment.store.time_out_every.store(every, Ordering::SeqCst);
        let tried = deployment.engine().bulk(bulk(BulkAction::Retry, &format!("try {number}"))).await;
        // What it was told does not matter here; what there is does.
        drop(tried);
    }
    let page = deployment.store.list(&Filter::default(), 1_000).await.unwrap();
    assert_eq!(page.rows.len(), 40);
    for execution in &all {
        let new = engine.state(execution).await.unwrap().retried_by.unwrap();
        let origin = engine.state(&new).await.unwrap().origin.unwrap();
        assert_eq!(origin.retry_of.as_ref(), Some(execution));
    }
    let last = engine.bulk(bulk(BulkAction::Retry, "once more")).await.unwrap();
    let is_known = |result: &BulkResult| matches!(result, BulkResult::Skipped(Skip::AlreadyRetried));
    assert!(last.results.len() == 20 && last.results.iter().all(|(_, result)| is_known(result)), "{last:?}");
}
