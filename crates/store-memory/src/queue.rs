//! The work queue in memory.

use std::time::Duration;

use async_trait::async_trait;
use pyoco_core::ids::{ExecutionId, JobId, Tag, WorkerId};
use pyoco_core::time::{Millis, Timestamp};
use pyoco_ports::{Delivery, ErrorKind, Job, StoreError, WorkQueue};

use crate::MemoryStore;

/// Jobs in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    entries: Vec<Entry>,
    last_id: u64,
}

#[derive(Debug)]
struct Entry {
    id: u64,
    job: Job,
    /// Not given before this: the end of a lease, or of a delay. `None`: waiting since it came.
    available_at: Option<Timestamp>,
    /// In somebody's hand until then, unless it was sent back.
    in_hand: bool,
    delivered: u32,
}

impl Jobs {
    pub(crate) fn add(&mut self, job: Job) {
        self.last_id += 1;
        self.entries.push(Entry { id: self.last_id, job, available_at: None, in_hand: false, delivered: 0 });
    }

    pub(crate) fn drop_waiting(&mut self, execution: &ExecutionId) {
        self.entries.retain(|entry| entry.in_hand || entry.job.execution != *execution);
    }

    pub(crate) fn drop_all(&mut self, execution: &ExecutionId) {
        self.entries.retain(|entry| entry.job.execution != *execution);
    }

    fn take(
        &mut self,
        tags: &[Tag],
        most: usize,
        until: Timestamp,
        now: Timestamp,
    ) -> Result<Vec<Delivery>, StoreError> {
        let is_free = |entry: &&mut Entry| {
            tags.contains(&entry.job.tag) && entry.available_at.is_none_or(|available| available <= now)
        };
        let taken = self.entries.iter_mut().filter(is_free).take(most).map(|entry| {
            entry.available_at = Some(until);
            entry.in_hand = true;
            entry.delivered += 1;
            let id = JobId::new(&entry.id.to_string());
            let id = id.map_err(|error| StoreError::new(ErrorKind::Internal, "take", error))?;
            Ok(Delivery {
                id,
                tag: entry.job.tag.clone(),
                number: entry.delivered,
                body: entry.job.body.clone(),
                receipt: String::new(),
            })
        });
        taken.collect()
    }

    /// The job of a delivery, unless it was delivered again since.
    fn entry(&mut self, delivery: &Delivery) -> Option<&mut Entry> {
        let is_it = |entry: &&mut Entry| {
            entry.id.to_string() == delivery.id.as_str() && entry.delivered == delivery.number
        };
        self.entries.iter_mut().find(is_it)
    }
}

#[async_trait]
impl WorkQueue for MemoryStore {
    async fn enqueue(&self, job: Job, _now: Timestamp) -> Result<(), StoreError> {
        self.inner().jobs.add(job);
        self.bell.notify_waiters();
        Ok(())
    }

    async fn take(
        &self,
        tags: &[Tag],
        _worker: &WorkerId,
        most: usize,
        lease: Millis,
        now: Timestamp,
    ) -> Result<Vec<Delivery>, StoreError> {
        self.inner().jobs.take(tags, most, now.after(lease), now)
    }

    async fn wait(&self, tags: &[Tag], patience: Duration) -> Result<(), StoreError> {
        let ring = self.bell.notified();
        tokio::pin!(ring);
        // Listening before looking, so that a job that comes in between is not missed.
        ring.as_mut().enable();
        let waiting = self
            .inner()
            .jobs
            .entries
            .iter()
            .any(|entry| entry.available_at.is_none() && tags.contains(&entry.job.tag));
        if !waiting {
            let _ = tokio::time::timeout(patience, ring).await;
        }
        Ok(())
    }

    async fn extend(&self, delivery: &Delivery, lease: Millis, now: Timestamp) -> Result<(), StoreError> {
        if let Some(entry) = self.inner().jobs.entry(delivery).filter(|entry| entry.in_hand) {
            entry.available_at = Some(now.after(lease));
        }
        Ok(())
    }

    async fn ack(&self, delivery: &Delivery) -> Result<(), StoreError> {
        self.inner().jobs.entries.retain(|entry| entry.id.to_string() != delivery.id.as_str());
        Ok(())
    }

    async fn nak(&self, delivery: &Delivery, delay: Millis, now: Timestamp) -> Result<(), StoreError> {
        if let Some(entry) = self.inner().jobs.entry(delivery) {
            entry.available_at = Some(now.after(delay));
            entry.in_hand = false;
        }
        self.bell.notify_waiters();
        Ok(())
    }

    async fn drop_waiting(&self, execution: &ExecutionId) -> Result<(), StoreError> {
        self.inner().jobs.drop_waiting(execution);
        Ok(())
    }

    async fn queued(&self, tag: &Tag) -> Result<Vec<ExecutionId>, StoreError> {
        let inner = self.inner();
        let jobs = inner.jobs.entries.iter().filter(|entry| entry.job.tag == *tag);
        Ok(jobs.map(|entry| entry.job.execution.clone()).collect())
    }

    async fn depth(&self, tag: &Tag) -> Result<u64, StoreError> {
        Ok(self.inner().jobs.entries.iter().filter(|entry| entry.job.tag == *tag).count() as u64)
    }
}
