//! Graphs among several processes: what is heard, what is asked, and what becomes of it when things are not as they should be.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and the ground measures time"
)]

mod ground;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ground::{Other, open, server, settings};
use pyoco_core::ids::TenantId;
use pyoco_core::time::Timestamp;
use pyoco_ports::{ErrorKind, GraphFormat, GraphRecord, GraphSource, Graphs as _, Heard};
use pyoco_store_nats::{Listener, NatsStore};
use pyoco_store_sqlite::SqliteStore;
use pyoco_testing_nats::NatsServer;
use serde_json::{Value, json};

struct Nobody;

#[async_trait]
impl Listener for Nobody {
    async fn heard(&self, _heard: Heard) {}
}

/// A gateway's store: it hears of graphs.
async fn gateway(server: &NatsServer) -> Arc<NatsStore> {
    let index = SqliteStore::scratch(&std::env::temp_dir()).unwrap();
    let store = NatsStore::open(settings(server), Some(Arc::new(index))).await.unwrap();
    store.follow(Arc::new(Nobody)).unwrap().caught_up().await;
    store
}

fn graph(id: &str, version: u64) -> GraphRecord {
    GraphRecord {
        tenant: None,
        id: id.to_owned(),
        version,
        at: Timestamp::from_micros(1_700_000_000_000_001),
        by: None,
        source: Some(GraphSource { format: GraphFormat::Yaml, text: format!("version: {version}") }),
    }
}

/// Waits until a process has heard of a version, which it must within ten seconds.
async fn heard(store: &NatsStore, wanted: &GraphRecord) {
    let known = async {
        while store.known_graph(wanted.tenant.as_ref(), &wanted.id).await.unwrap().as_ref() != Some(wanted) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), known).await.expect("it is heard");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_gateway_puts_another_sees_at_once_and_hears_soon() {
    let server = server();
    let (one, other, worker) = (gateway(&server).await, gateway(&server).await, open(&server).await);
    let large = GraphRecord {
        tenant: Some(TenantId::new("team").unwrap()),
        source: Some(GraphSource { format: GraphFormat::Yaml, text: "# ünï\n".repeat(300_000) }),
        ..graph("large", 1)
    };
    for put in [graph("g", 1), graph("g", 2), GraphRecord { source: None, ..graph("g", 3) }, large.clone()] {
        assert!(one.put_graph(put.clone()).await.unwrap());
        for store in [&one, &other, &worker] {
            assert!(store.graph(put.tenant.as_ref(), &put.id, None).await.unwrap().as_ref() == Some(&put));
            assert!(!store.put_graph(put.clone()).await.unwrap(), "it is taken");
        }
        heard(&other, &put).await;
        // A process that hears nothing asks.
        assert!(worker.known_graph(put.tenant.as_ref(), &put.id).await.unwrap() == Some(put));
    }
    assert!(one.put_graph(graph("h", 1)).await.unwrap());
    heard(&other, &graph("h", 1)).await;
    for store in [&one, &other, &worker] {
        assert_eq!(store.graphs(None, None, 9).await.unwrap(), [graph("h", 1)]);
        assert!(store.graphs(large.tenant.as_ref(), None, 9).await.unwrap() == [large.clone()]);
    }
    // One that comes later knows everything before it answers.
    let late = gateway(&server).await;
    assert!(late.known_graph(large.tenant.as_ref(), "large").await.unwrap() == Some(large));
    assert_eq!(late.graphs(None, None, 9).await.unwrap(), [graph("h", 1)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn known_graphs_cost_the_servers_nothing_and_are_known_without_them() {
    let mut server = server();
    let store = gateway(&server).await;
    for version in 1..=3 {
        assert!(store.put_graph(graph("g", version)).await.unwrap());
    }
    server.kill();
    assert_eq!(store.known_graph(None, "g").await.unwrap(), Some(graph("g", 3)));
    assert_eq!(store.known_graph(None, "none").await.unwrap(), None);
    assert_eq!(store.graphs(None, None, 9).await.unwrap(), [graph("g", 3)]);
    // Whoever must be right is told that nobody knows.
    assert!(store.graph(None, "g", None).await.unwrap_err().kind.is_retryable());
    assert!(store.put_graph(graph("g", 4)).await.unwrap_err().kind.is_retryable());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_the_stream_was_deleted_nothing_old_is_known_and_graphs_begin_anew() {
    let server = server();
    let store = gateway(&server).await;
    for (id, version) in [("g", 1), ("g", 2), ("h", 1)] {
        assert!(store.put_graph(graph(id, version)).await.unwrap());
    }
    let other = Other::connect(&server).await;
    other.api("STREAM.DELETE.PYOCO_GRAPHS", &Value::Null).await;
    // It is made again by whoever follows it.
    let again = async {
        while !store.put_graph(graph("g", 1)).await.is_ok_and(|was_put| was_put) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), again).await.expect("the stream is there again");
    heard(&store, &graph("g", 1)).await;
    let forgotten = async {
        while store.known_graph(None, "h").await.unwrap().is_some() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), forgotten).await.expect("what is gone is not known");
    assert_eq!(store.graphs(None, None, 9).await.unwrap(), [graph("g", 1)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_is_no_graph_stops_nobody() {
    let server = server();
    let store = gateway(&server).await;
    assert!(store.put_graph(graph("good", 1)).await.unwrap());
    let other = Other::connect(&server).await;
    let stolen =
        json!({"id": "good", "version": 9, "at": "2023-11-14T22:13:20Z", "format": "yaml", "text": "x"});
    for body in ["", "nonsense", "{}", &stolen.to_string()] {
        other.publish("pyoco.graphs.=none.bad", &[("Pyoco-Version", "9")], body).await;
    }
    other.publish("pyoco.graphs.=none.bad", &[], "no version").await;
    assert!(store.put_graph(graph("better", 1)).await.unwrap());
    let late = gateway(&server).await;
    for store in [&store, &late] {
        heard(store, &graph("better", 1)).await;
        assert_eq!(store.graphs(None, None, 9).await.unwrap(), [graph("better", 1), graph("good", 1)]);
        let refused = store.graph(None, "bad", None).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Corrupt);
        let refused = store.put_graph(graph("bad", 1)).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Corrupt);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_that_somebody_removed_is_missed_and_not_taken_for_another() {
    let server = server();
    let other = Other::connect(&server).await;
    // Ours cannot lose a message; an operator's may.
    let config = json!({"name": "PYOCO_GRAPHS", "subjects": ["pyoco.graphs.>"], "discard": "new"});
    other.api("STREAM.CREATE.PYOCO_GRAPHS", &config).await;
    let store = open(&server).await;
    for version in 1..=4 {
        // Others lie between.
        assert!(store.put_graph(graph("g", version)).await.unwrap());
        assert!(store.put_graph(graph("h", version)).await.unwrap());
    }
    for version in 1..=4 {
        assert_eq!(store.graph(None, "g", Some(version)).await.unwrap(), Some(graph("g", version)));
    }
    let removed = other.api("STREAM.MSG.DELETE.PYOCO_GRAPHS", &json!({"seq": 3})).await;
    assert_eq!(removed["success"], json!(true), "{removed}");
    for version in [3, 4] {
        assert_eq!(store.graph(None, "g", Some(version)).await.unwrap(), Some(graph("g", version)));
    }
    for version in [1, 2] {
        let missed = store.graph(None, "g", Some(version)).await.unwrap_err();
        assert!(missed.kind == ErrorKind::Corrupt && missed.to_string().contains("version 2"), "{missed}");
    }
    assert_eq!(store.graph(None, "h", Some(1)).await.unwrap(), Some(graph("h", 1)));
}
