//! A nats-server with jobs: stores on it, and short words for what tests of the queue do again and again.

#![allow(dead_code, reason = "each test uses some of it")]

use std::sync::Arc;
use std::time::Duration;

use pyoco_core::ids::{ExecutionId, Tag, WorkerId};
use pyoco_core::time::{Millis, Timestamp};
use pyoco_ports::{Delivery, Job, StoreError, WorkQueue as _};
use pyoco_store_nats::{NatsStore, Settings};
use pyoco_testing_nats::NatsServer;
use serde_json::{Value, json};

use crate::ground::{self, Other};

/// Long enough for anything that is to happen, short of a lease of the contract.
pub(crate) const SOON: Duration = Duration::from_secs(10);

/// Nobody looks at it: leases and time are the server's.
pub(crate) const LEASE: Millis = Millis(30_000);

/// Nor at this.
pub(crate) fn now() -> Timestamp {
    Timestamp::from_micros(0)
}

pub(crate) struct Site {
    pub(crate) server: NatsServer,
    pub(crate) other: Other,
}

impl Site {
    pub(crate) async fn new() -> Self {
        let server = ground::server();
        let other = Other::connect(&server).await;
        Self { server, other }
    }

    /// A store with the settings of the contract.
    pub(crate) async fn store(&self) -> Arc<NatsStore> {
        self.store_with(|_| {}).await
    }

    pub(crate) async fn store_with(&self, change: impl FnOnce(&mut Settings)) -> Arc<NatsStore> {
        let mut settings = ground::settings(&self.server);
        change(&mut settings);
        NatsStore::open(settings, None).await.unwrap()
    }

    /// How many messages the stream of jobs has.
    pub(crate) async fn messages(&self) -> u64 {
        self.other.messages("PYOCO_WORK").await
    }

    pub(crate) async fn consumer(&self, tag: &str) -> Value {
        self.other.api(&format!("CONSUMER.INFO.PYOCO_WORK.pyoco_workers_{tag}"), &Value::Null).await
    }

    pub(crate) async fn delete_stream(&self, stream: &str) {
        assert_eq!(
            self.other.api(&format!("STREAM.DELETE.{stream}"), &Value::Null).await["success"],
            json!(true)
        );
    }
}

pub(crate) fn tag(name: &str) -> Tag {
    Tag::new(name).unwrap()
}

pub(crate) fn job(execution: &str, tag_name: &str) -> Job {
    let body = json!({"run_id": execution, "flow_name": "f", "tag": tag_name});
    Job {
        execution: ExecutionId::new(execution).unwrap(),
        tag: tag(tag_name),
        body: serde_json::to_vec(&body).unwrap(),
    }
}

pub(crate) async fn enqueue(store: &NatsStore, execution: &str) {
    store.enqueue(job(execution, "default"), now()).await.unwrap();
}

/// Takes jobs of the tag `default`.
pub(crate) async fn take(store: &NatsStore, most: usize) -> Vec<Delivery> {
    try_take(store, most).await.unwrap()
}

pub(crate) async fn try_take(store: &NatsStore, most: usize) -> Result<Vec<Delivery>, StoreError> {
    store.take(&[tag("default")], &WorkerId::new("w").unwrap(), most, LEASE, now()).await
}

/// Takes the one job there is, which may still be on its way.
pub(crate) async fn take_one(store: &NatsStore) -> Delivery {
    let looking = async {
        loop {
            match try_take(store, 1).await {
                Ok(mut taken) => match taken.pop() {
                    Some(delivery) => return delivery,
                    None => {
                        store.wait(&[tag("default")], Duration::from_millis(200)).await.unwrap_or_default()
                    }
                },
                Err(error) => {
                    assert!(error.kind.is_retryable(), "{error}");
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        }
    };
    tokio::time::timeout(SOON, looking).await.expect("a job")
}

/// The run that a job is about.
pub(crate) fn run(delivery: &Delivery) -> String {
    let body: Value = serde_json::from_slice(&delivery.body).unwrap();
    body["run_id"].as_str().unwrap().to_owned()
}

/// Asks again and again until it is as wanted.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, mut is_so: impl FnMut() -> F) {
    let asking = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(SOON, asking).await.unwrap_or_else(|_| panic!("it never happens: {what}"));
}
