//! Executions that have a log and that nobody sees: found once they are old enough, by whoever looks, and without much ado.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and measures time"
)]

mod ground;
mod runs;

use std::time::{Duration, Instant};

use ground::{Other, append, execution, open, server};
use pyoco_core::ids::ExecutionId;
use pyoco_ports::{EventLog as _, RunIndex as _, Unshown};
use pyoco_store_nats::NatsStore;
use runs::{Gateway, publish, row};
use serde_json::{Value, json};

/// A record must be five seconds old, and everybody answered for ten.
const LATE: Duration = Duration::from_secs(30);

/// Looks until there is something to see that is as it should be.
async fn look(store: &NatsStore, mut is_so: impl FnMut(&Unshown) -> bool) -> Unshown {
    let since = Instant::now();
    loop {
        let found = store.unshown().await.unwrap();
        if is_so(&found) {
            return found;
        }
        assert!(since.elapsed() < LATE, "{found:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn named(names: &[&str]) -> Vec<ExecutionId> {
    names.iter().map(|name| execution(name)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_sees_is_found_by_whoever_looks_first_and_then_by_nobody() {
    let server = server();
    let (one, other) = (Gateway::start_and_catch_up(&server.url()).await, open(&server).await);
    let store = &one.store;
    append(store, "shown", 0, "1").await.unwrap();
    publish(store, row("shown", 1)).await;
    append(&other, "shown-by-another", 0, "1").await.unwrap();
    publish(&other, row("shown-by-another", 1)).await;
    append(store, "taken-out", 0, "1").await.unwrap();
    store.forget(&execution("taken-out")).await.unwrap();
    append(store, "lost", 0, "1").await.unwrap();
    append(store, "lost-further-on", 0, "1").await.unwrap();
    append(store, "lost-further-on", 1, "2").await.unwrap();
    // A row of this process alone is nothing that others see.
    store.put(row("lost", 1)).await.unwrap();
    let lost = named(&["lost", "lost-further-on"]);
    assert_eq!(store.unseen().await.unwrap().len(), 2);
    assert_eq!(store.unshown().await.unwrap(), Unshown::default(), "they are too young");

    let since = Instant::now();
    let found = look(store, |found| found.executions.len() == 2).await;
    assert!(since.elapsed() > Duration::from_secs(4), "{:?}", since.elapsed());
    assert_eq!(found.executions, lost);
    // Nobody has said that they were seen to.
    let until = look(store, |found| found.until.is_some_and(|until| until.0 == 6)).await.until.unwrap();
    assert_eq!(look(&other, |found| found.until == Some(until)).await.executions, lost);
    store.shown_until(until).await.unwrap();
    for store in [store, &other] {
        assert_eq!(store.unshown().await.unwrap(), Unshown::default());
    }
    // Nothing is new: then it is one question.
    let before = store.messages_sent();
    assert_eq!(store.unshown().await.unwrap(), Unshown::default());
    assert_eq!(store.messages_sent() - before, 1);

    append(&other, "lost-later", 0, "1").await.unwrap();
    let found = look(&other, |found| !found.executions.is_empty()).await;
    assert_eq!(found.executions, named(&["lost-later"]));
    for name in ["lost", "lost-further-on", "lost-later"] {
        publish(store, row(name, 2)).await;
    }
    assert_eq!(store.unseen().await.unwrap(), []);
    let state = Other::connect(&server).await.api("STREAM.INFO.PYOCO_EVENTS", &Value::Null).await;
    assert_eq!(state["state"]["consumer_count"], json!(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_records_are_looked_through_with_few_messages_and_a_new_stream_from_its_beginning() {
    const RUNS: u64 = 3_000;
    let server = server();
    let gateway = Gateway::start_and_catch_up(&server.url()).await;
    let store = &gateway.store;
    runs::publish_many(store, (0..RUNS).map(|number| format!("e{number}"))).await;
    for number in 0..RUNS {
        append(store, &format!("e{number}"), 0, "1").await.unwrap();
    }
    append(store, "lost", 0, "1").await.unwrap();
    let mut sent = store.messages_sent();
    let found = look(store, |found| {
        let is_so = !found.executions.is_empty();
        sent = if is_so { store.messages_sent() - sent } else { store.messages_sent() };
        is_so
    })
    .await;
    assert_eq!((found.executions, found.until.map(|until| until.0)), (named(&["lost"]), Some(RUNS + 1)));
    assert!(sent < 20, "{sent} messages");
    store.shown_until(found.until.unwrap()).await.unwrap();

    // Somebody has made it anew: its numbers mean something else now.
    let other = Other::connect(&server).await;
    let config = other.config("PYOCO_EVENTS").await;
    other.api("STREAM.DELETE.PYOCO_EVENTS", &Value::Null).await;
    other.api("STREAM.CREATE.PYOCO_EVENTS", &config).await;
    append(store, "lost-in-the-new-one", 0, "1").await.unwrap();
    let found = look(store, |found| !found.executions.is_empty()).await;
    assert_eq!(found.executions, named(&["lost-in-the-new-one"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_looks_until_everybody_was_answered_for_a_while() {
    let server = server();
    let store = open(&server).await;
    append(&store, "lost", 0, "1").await.unwrap();
    look(&store, |found| !found.executions.is_empty()).await;
    server.pause();
    append(&store, "e", 0, "1").await.unwrap_err();
    server.resume();
    let since = Instant::now();
    look(&store, |found| !found.executions.is_empty()).await;
    assert!(since.elapsed() > Duration::from_secs(8), "{:?}", since.elapsed());
}
