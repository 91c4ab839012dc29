//! The suite that every store passes, on a real server.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise"
)]

mod ground;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use ground::Other;
use pyoco_conformance::Subject;
use pyoco_core::time::{Millis, Timestamp};
use pyoco_ports::{Heard, Store, WheelRecord};
use pyoco_store_nats::{Listener, NatsStore, Settings};
use pyoco_store_sqlite::SqliteStore;
use pyoco_testing_nats::{NatsServer, Options};

/// Time is the server's: a lease is its `ack_wait`.
const LEASE: Millis = Millis(2_500);

struct Nobody;

#[async_trait]
impl Listener for Nobody {
    async fn heard(&self, _heard: Heard) {}
}

fn settings(server: &NatsServer, lease: Millis) -> Settings {
    let mut settings = Settings::new(&[&server.url()]);
    settings.name = "pyoco-conformance".to_owned();
    settings.ack_wait = Duration::from_millis(lease.0);
    // Time in the suite is made up; a worker must not vanish meanwhile.
    settings.workers_ttl = Duration::from_secs(3_600);
    settings
}

/// A gateway's store: it has an index and follows the buckets.
async fn open(server: &NatsServer, lease: Millis) -> Arc<NatsStore> {
    let index = SqliteStore::scratch(&std::env::temp_dir()).unwrap();
    let store = NatsStore::open(settings(server, lease), Some(Arc::new(index))).await.unwrap();
    store.follow(Arc::new(Nobody)).unwrap().caught_up().await;
    store
}

/// The server of the newest store; those before it are not used any more.
#[derive(Default)]
struct Servers(Mutex<Option<Arc<NatsServer>>>);

#[async_trait]
impl Subject for Servers {
    async fn fresh(&self) -> Arc<dyn Store> {
        let server = Arc::new(NatsServer::start(&Options::default()));
        let store = open(&server, LEASE).await;
        *self.0.lock().unwrap() = Some(server);
        store
    }

    async fn lose_and_reopen(&self, store: Arc<dyn Store>) -> Option<Arc<dyn Store>> {
        // Not closed: gone, as with its process.
        drop(store);
        let server = self.0.lock().unwrap().clone().unwrap();
        Some(open(&server, LEASE).await)
    }

    fn lease(&self) -> Millis {
        LEASE
    }

    async fn beside(&self, _store: &Arc<dyn Store>) -> Option<Arc<dyn Store>> {
        let server = self.0.lock().unwrap().clone().unwrap();
        // A worker's: it has no index.
        Some(NatsStore::open(settings(&server, LEASE), None).await.unwrap())
    }

    async fn spoil(&self, _store: &Arc<dyn Store>, wheel: &WheelRecord) -> bool {
        let server = self.0.lock().unwrap().clone().unwrap();
        let other = Other::connect(&server).await;
        other.spoil("pyoco_wheels", &wheel.nuid).await;
        true
    }

    fn slack(&self) -> Millis {
        Millis(1_000)
    }

    async fn pass(&self, now: Timestamp, by: Millis) -> Timestamp {
        tokio::time::sleep(Duration::from_millis(by.0)).await;
        now.after(by)
    }

    fn orders_tags_together(&self) -> bool {
        false
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_distributed_store_keeps_every_promise_of_the_ports() {
    pyoco_conformance::run(&Servers::default()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_distributed_store_answers_like_the_reference() {
    for seed in 1..=12 {
        let server = NatsServer::start(&Options::default());
        let store = open(&server, Millis(3_600_000)).await;
        let reference = pyoco_store_memory::MemoryStore::new();
        pyoco_conformance::differ_in_real_time(&reference, store.as_ref(), seed, 400).await;
    }
}
