//! What other processes and other implementations write about a run, as the engine asks for it. How it is heard is in `feed`.

use async_trait::async_trait;
use pyoco_core::ids::ExecutionId;
use pyoco_core::time::Timestamp;
use pyoco_ports::{Heard, Listening, News, Peers, StoreError};
use serde_json::Value;

use crate::NatsStore;
use crate::feed::Hearing;

#[async_trait]
impl Peers for NatsStore {
    async fn listen(
        &self,
        execution: &ExecutionId,
        now: Timestamp,
    ) -> Result<Option<Box<dyn Listening>>, StoreError> {
        Ok(Some(Box::new(self.hear(execution, now))))
    }

    async fn snapshot(&self, execution: &ExecutionId) -> Result<Option<News>, StoreError> {
        Self::snapshot(self, execution).await
    }

    async fn snapshot_body(&self, execution: &ExecutionId) -> Result<Option<Value>, StoreError> {
        self.index.body(execution).await
    }

    fn settle(&self, execution: &ExecutionId, revision: u64) {
        Self::settle(self, execution, revision);
    }
}

#[async_trait]
impl Listening for Hearing {
    async fn next(&mut self) -> Option<Heard> {
        Self::next(self).await
    }
}
