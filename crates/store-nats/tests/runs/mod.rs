//! Processes that publish and follow runs, and a line between them and the server that can be cut.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use pyoco_core::ids::{Tag, Version};
use pyoco_core::time::{Millis, Timestamp};
use pyoco_core::view::{RunStatus, RunSummary};
use pyoco_ports::{Heard, IndexRow, RunIndex as _};
use pyoco_store_nats::{Following, Listener, NatsStore, Settings};
use pyoco_store_sqlite::SqliteStore;
use pyoco_testing_nats::NatsServer;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};

use crate::ground::{execution, until};

/// Long enough for everything that is to happen.
pub(crate) const SOON: Duration = Duration::from_secs(20);

pub(crate) fn row(name: &str, version: u64) -> IndexRow {
    let updated_at = Timestamp::from_micros(1_700_000_000_000_000).after(Millis(version));
    IndexRow {
        execution: execution(name),
        version: Version(version),
        summary: RunSummary {
            run_id: name.to_owned(),
            flow_name: "main".to_owned(),
            tag: Some(Tag::default()),
            tags: vec!["default".to_owned()],
            tenant_id: None,
            api_key_id: None,
            status: RunStatus::Running,
            updated_at: Some(updated_at.as_unix_seconds()),
            heartbeat_at: None,
            worker_id: None,
            error: None,
        },
        created_at: updated_at,
        updated_at,
        started_at: Some(updated_at),
        ended_at: None,
        cancel_requested_at: None,
        workflow_sha256: None,
        hidden: false,
        next_timer: None,
        wants_job: false,
        waits: Vec::new(),
        has_waited: false,
        is_archived: false,
        is_foreign: false,
    }
}

/// The snapshot of a row, about as large as one of a small run.
pub(crate) fn snapshot(row: &IndexRow) -> Vec<u8> {
    let mut snapshot = serde_json::to_value(&row.summary).unwrap();
    snapshot["params"] = json!({"text": "x".repeat(100)});
    snapshot["tasks"] = json!({"fetch": "SUCCEEDED", "train": "RUNNING"});
    snapshot["task_records"] = json!({"fetch": {"state": "SUCCEEDED", "output": [1, 2.5, null]}});
    snapshot["version"] = json!(row.version);
    serde_json::to_vec(&snapshot).unwrap()
}

pub(crate) async fn publish(store: &NatsStore, row: IndexRow) {
    let snapshot = snapshot(&row);
    store.publish_row(row, snapshot).await.unwrap();
}

/// Publishes many new runs, many at a time.
pub(crate) async fn publish_many(store: &NatsStore, names: impl Iterator<Item = String>) {
    stream::iter(names)
        .for_each_concurrent(200, |name| async move { publish(store, row(&name, 1)).await })
        .await;
}

/// What a process has heard.
struct Ears(mpsc::UnboundedSender<Heard>);

#[async_trait]
impl Listener for Ears {
    async fn heard(&self, heard: Heard) {
        // The test may have heard enough.
        let _ = self.0.send(heard);
    }
}

/// A process with an index that follows the buckets.
pub(crate) struct Gateway {
    pub(crate) store: Arc<NatsStore>,
    pub(crate) following: Following,
    pub(crate) heard: mpsc::UnboundedReceiver<Heard>,
}

impl Gateway {
    pub(crate) async fn start(address: &str) -> Self {
        Self::start_with(Settings::new(&[address])).await
    }

    pub(crate) async fn start_with(settings: Settings) -> Self {
        let index = SqliteStore::scratch(&std::env::temp_dir()).unwrap();
        let store = NatsStore::open(settings, Some(Arc::new(index))).await.unwrap();
        let (ears, heard) = mpsc::unbounded_channel();
        let following = store.follow(Arc::new(Ears(ears))).unwrap();
        Self { store, following, heard }
    }

    pub(crate) async fn start_and_catch_up(address: &str) -> Self {
        let gateway = Self::start(address).await;
        gateway.catch_up().await;
        gateway
    }

    pub(crate) async fn catch_up(&self) {
        tokio::time::timeout(SOON, self.following.caught_up()).await.expect("caught up soon");
    }

    /// Waits until the index has a run at a version.
    pub(crate) async fn has(&self, name: &str, version: u64) {
        let looking = async {
            while self.version(name).await != Some(version) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let found = tokio::time::timeout(SOON, looking).await;
        assert!(found.is_ok(), "{name} is at {:?}, not at {version}", self.version(name).await);
    }

    pub(crate) async fn version(&self, name: &str) -> Option<u64> {
        self.store.get(&execution(name)).await.unwrap().map(|row| row.version.0)
    }

    /// The next thing it hears.
    pub(crate) async fn hears(&mut self) -> Heard {
        tokio::time::timeout(SOON, self.heard.recv()).await.expect("something to hear").unwrap()
    }

    pub(crate) async fn is_connected(&self, connected: bool) {
        until("the connection", || self.store.is_connected() == connected).await;
    }
}

/// The consumers of a bucket, as the server counts them.
pub(crate) fn consumers(server: &NatsServer, bucket: &str) -> Vec<String> {
    let told = server.ask("/jsz?accounts=true&streams=true&consumers=true");
    let list = |value: &Value, member: &str| value[member].as_array().cloned().unwrap_or_default();
    let streams =
        list(&told, "account_details").into_iter().flat_map(|account| list(&account, "stream_detail"));
    let wanted = streams.filter(|stream| stream["name"] == format!("KV_{bucket}"));
    wanted
        .flat_map(|stream| list(&stream, "consumer_detail"))
        .map(|consumer| consumer["name"].as_str().unwrap().to_owned())
        .collect()
}

/// A line to a server that can be cut and made again; the server does not notice more than that.
pub(crate) struct Cable {
    pub(crate) address: String,
    is_whole: watch::Sender<bool>,
}

impl Cable {
    pub(crate) async fn to(server: &NatsServer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("nats://{}", listener.local_addr().unwrap());
        let target = server.url().trim_start_matches("nats://").to_owned();
        let (is_whole, watched) = watch::channel(true);
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let (target, mut watched) = (target.clone(), watched.clone());
                tokio::spawn(async move {
                    if !*watched.borrow() {
                        return;
                    }
                    let mut far = TcpStream::connect(target).await.unwrap();
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                        _ = watched.wait_for(|is_whole| !is_whole) => {}
                    }
                });
            }
        });
        Self { address, is_whole }
    }

    pub(crate) fn cut(&self) {
        self.is_whole.send_replace(false);
    }

    pub(crate) fn mend(&self) {
        self.is_whole.send_replace(true);
    }
}
