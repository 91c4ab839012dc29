//! The suite that every store passes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use pyoco_conformance::Subject;
use pyoco_ports::{Store, WheelRecord};
use pyoco_store_sqlite::{Options, SqliteStore};
use tempfile::TempDir;

/// Folders of the stores it made; the newest is the one that a case loses.
#[derive(Default)]
struct Folders(Mutex<Vec<TempDir>>);

#[async_trait]
impl Subject for Folders {
    async fn fresh(&self) -> Arc<dyn Store> {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(folder.path(), Options::default()).unwrap();
        self.0.lock().unwrap().push(folder);
        Arc::new(store)
    }

    async fn lose_and_reopen(&self, store: Arc<dyn Store>) -> Option<Arc<dyn Store>> {
        // Not closed: gone, as with its process.
        drop(store);
        let folders = self.0.lock().unwrap();
        Some(Arc::new(SqliteStore::open(folders.last().unwrap().path(), Options::default()).unwrap()))
    }

    async fn spoil(&self, _store: &Arc<dyn Store>, wheel: &WheelRecord) -> bool {
        let folders = self.0.lock().unwrap();
        let path = folders.last().unwrap().path().join("wheel-files").join(format!("{}.whl", wheel.sha256));
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        true
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_embedded_store_keeps_every_promise_of_the_ports() {
    pyoco_conformance::run(&Folders::default()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_embedded_store_answers_like_the_reference() {
    for seed in 1..=8 {
        let folders = Folders::default();
        let store = folders.fresh().await;
        pyoco_conformance::differ(&pyoco_store_memory::MemoryStore::new(), store.as_ref(), seed, 400).await;
    }
}
