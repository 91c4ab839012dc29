//! Hears what others write: one consumer a bucket and process, from the first snapshot on for as long as the store is open,
//! and one of the graphs; and, for a worker, the run that it has in hand.
//!
//! `bucket` keeps hearing whatever happens to the connection and the servers, `hear` listens to one run.

mod bucket;
mod hear;

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::try_join_all;
use pyoco_core::ids::ExecutionId;
use pyoco_ports::{ErrorKind, Heard, News, StoreError};
use tokio::sync::watch;

pub use self::hear::Hearing;

use self::bucket::{Bucket, Sink};
use crate::connection::Connection;
use crate::graphs::KnownGraphs;
use crate::index::{Found, LocalIndex};
use crate::message::Stored;
use crate::snapshot::Snapshot;
use crate::workers::Workers;
use crate::{NatsStore, Settings, error, graphs};

/// Whoever wants to know.
#[async_trait]
pub trait Listener: Send + Sync {
    /// Something was written; the index of this process has it already. One is told after the other, in the order of the
    /// bucket, and nothing else is heard before this returns: what takes long is put aside.
    async fn heard(&self, heard: Heard);
}

/// A store that hears.
#[derive(Debug, Clone)]
pub struct Following {
    caught_up: [watch::Receiver<bool>; 3],
}

impl Following {
    /// Returns when everything that stood in the buckets is in the index, every graph is known, and everybody was told. Not at all if the store is
    /// closed before.
    pub async fn caught_up(&self) {
        for receiver in &self.caught_up {
            if receiver.clone().wait_for(|is_caught_up| *is_caught_up).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

impl NatsStore {
    /// Begins to hear what others write, once: a second call is refused, so that a process never has two consumers.
    pub fn follow(&self, listener: Arc<dyn Listener>) -> Result<Following, StoreError> {
        if !self.index.begin_to_follow() {
            return Err(error::internal("follow the buckets", "this store follows them already"));
        }
        let instance = self.connection.unused_name();
        let start = |bucket: &str, sink: Arc<dyn Sink>| {
            Bucket::new(&self.connection, &self.settings, bucket, &instance).follow(sink)
        };
        let runs = Runs { index: self.index.clone(), settings: self.settings.clone(), listener };
        let runs = start(&self.settings.runs_bucket, Arc::new(runs));
        let workers = start(&self.settings.workers_bucket, Arc::new(KnownWorkers(self.workers.clone())));
        let graphs = Graphs {
            known: self.graphs.clone(),
            connection: self.connection.clone(),
            is_blobs_direct: self.resources.is_blobs_direct,
        };
        let graphs = Bucket::graphs(&self.connection, &self.settings, &instance).follow(Arc::new(graphs));
        Ok(Following { caught_up: [runs, workers, graphs] })
    }

    /// What stands in the bucket for a run now, from its leader; nothing if there is no snapshot.
    pub async fn snapshot(&self, execution: &ExecutionId) -> Result<Option<News>, StoreError> {
        Ok(self.index.look(execution).await?.map(|found| heard(found).news))
    }

    /// The log has taken in a foreign snapshot, or has a reason not to. From now on a published row takes its place.
    pub fn settle(&self, execution: &ExecutionId, revision: u64) {
        self.index.settle(execution, revision);
    }
}

fn heard(found: Found) -> Heard {
    let news = match found.snapshot {
        Snapshot::Ours(row) => News::Ours(row.version),
        Snapshot::Changed(_, snapshot) | Snapshot::Foreign(snapshot) => {
            News::Foreign { snapshot, revision: found.revision }
        }
    };
    Heard { execution: found.execution, news }
}

/// The bucket of runs goes into the index.
struct Runs {
    index: LocalIndex,
    settings: Arc<Settings>,
    listener: Arc<dyn Listener>,
}

#[async_trait]
impl Sink for Runs {
    fn begin(&self) {
        self.index.forget_bucket();
    }

    fn written_here(&self, behind: u64) -> u64 {
        self.index.written_here(behind)
    }

    async fn take(&self, messages: Vec<Stored>) -> Result<(), StoreError> {
        // The last one of a run says it all.
        let mut last: HashMap<ExecutionId, Found> = HashMap::new();
        for stored in &messages {
            if let Some(execution) = Found::deleted(&self.settings, stored) {
                last.remove(&execution);
                if self.index.gone(&execution, stored.sequence).await? {
                    self.listener.heard(Heard { execution, news: News::Gone }).await;
                }
                continue;
            }
            if self.index.is_mine(stored).await {
                continue;
            }
            match Found::read(&self.settings, stored) {
                Some(found) => drop(last.insert(found.execution.clone(), found)),
                None => tracing::debug!(subject = stored.subject, "no snapshot of a run"),
            }
        }
        let mut found: Vec<Found> = last.into_values().collect();
        found.sort_unstable_by_key(|found| found.revision);
        let taken = try_join_all(found.iter().map(|found| self.index.take_in(found))).await?;
        for (found, is_new) in found.into_iter().zip(taken) {
            if is_new {
                self.listener.heard(heard(found)).await;
            }
        }
        Ok(())
    }
}

/// The bucket of workers goes into the memory of those that were seen.
struct KnownWorkers(Arc<Workers>);

#[async_trait]
impl Sink for KnownWorkers {
    fn begin(&self) {}

    async fn take(&self, messages: Vec<Stored>) -> Result<(), StoreError> {
        for stored in messages {
            if let Some(record) = self.0.record(&stored) {
                self.0.seen().heard(stored.sequence, record);
            }
        }
        Ok(())
    }

    fn caught_up(&self) {
        self.0.seen().fed();
    }
}

/// The newest versions of graphs go into the memory of those that are known.
struct Graphs {
    known: KnownGraphs,
    connection: Arc<Connection>,
    is_blobs_direct: bool,
}

#[async_trait]
impl Sink for Graphs {
    fn begin(&self) {
        self.known.begin();
    }

    async fn take(&self, messages: Vec<Stored>) -> Result<(), StoreError> {
        for stored in messages {
            match graphs::read(&self.connection, self.is_blobs_direct, &stored).await {
                Ok(graph) => self.known.heard(stored.sequence, graph),
                // It will never be one, and must not keep us from those behind it. Whoever asks for it is told.
                Err(error) if error.kind == ErrorKind::Corrupt => {
                    tracing::warn!(subject = stored.subject, %error, "a graph cannot be read");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn caught_up(&self) {
        self.known.fed();
    }
}
