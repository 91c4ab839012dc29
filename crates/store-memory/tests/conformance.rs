//! The reference store keeps the contract, and differs from nothing.

use std::sync::Arc;

use pyoco_conformance::{Subject, differ, differ_in_real_time, run};
use pyoco_ports::Store;
use pyoco_store_memory::MemoryStore;

struct Memory;

#[async_trait::async_trait]
impl Subject for Memory {
    async fn fresh(&self) -> Arc<dyn Store> {
        Arc::new(MemoryStore::new())
    }

    async fn lose_and_reopen(&self, _store: Arc<dyn Store>) -> Option<Arc<dyn Store>> {
        None
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_memory_store_conforms() {
    run(&Memory).await;
}

#[tokio::test]
async fn two_memory_stores_give_the_same_answers() {
    for seed in 0..50 {
        differ(&MemoryStore::new(), &MemoryStore::new(), seed, 200).await;
    }
}

#[tokio::test]
async fn two_memory_stores_give_the_same_answers_on_the_terms_of_real_time() {
    for seed in 0..50 {
        differ_in_real_time(&MemoryStore::new(), &MemoryStore::new(), seed, 200).await;
    }
}
