//! Rows on their way into the index of this process. A row stands in a dozen indexes and counters, and a short run has three rows in a
//! moment; so what is put waits in memory, and many go into the index together: when enough have come, and before somebody looks.
//!
//! Nothing is lost with them: the index is made from the bucket whenever a process starts. How rows are kept is the index's business.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyoco_core::ids::ExecutionId;
use pyoco_ports::{ErrorKind, IndexRow, RunIndex, StoreError};

/// So many rows go into the index without anybody looking. Few, because whoever looks waits for them.
const ENOUGH: usize = 1_024;
/// So many wait at most; whoever brings more waits until they are in the index.
const MOST: usize = 4_096;

/// An index, and the rows that are not in it yet.
pub(crate) struct Gathered {
    index: Arc<dyn RunIndex>,
    waiting: Mutex<Waiting>,
    /// One at a time puts rows into the index, or takes one out.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Waiting {
    /// The newest row of each execution. Rows are large, and a map that grows moves what it holds.
    rows: HashMap<ExecutionId, Box<IndexRow>>,
    /// Somebody will put them into the index.
    is_seen_to: bool,
}

impl Waiting {
    /// Adds a row, unless a newer one waits already. Of two that are as new the one that came last counts: rows of foreign runs have no
    /// version that rises.
    fn add(&mut self, row: IndexRow) {
        if self.rows.get(&row.execution).is_none_or(|known| known.version <= row.version) {
            self.rows.insert(row.execution.clone(), Box::new(row));
        }
    }
}

/// Rows on their way into the index. Those that do not get there wait again, unless one that is as new has come since.
struct Moving<'a> {
    gathered: &'a Gathered,
    rows: Arc<[IndexRow]>,
    has_arrived: bool,
}

impl Drop for Moving<'_> {
    fn drop(&mut self) {
        if self.has_arrived {
            return;
        }
        let mut waiting = self.gathered.waiting();
        for row in &*self.rows {
            if waiting.rows.get(&row.execution).is_none_or(|known| known.version < row.version) {
                waiting.rows.insert(row.execution.clone(), Box::new(row.clone()));
            }
        }
    }
}

impl Gathered {
    pub(crate) fn new(index: Arc<dyn RunIndex>) -> Arc<Self> {
        Arc::new(Self { index, waiting: Mutex::default(), turn: tokio::sync::Mutex::default() })
    }

    /// Puts a row, unless a newer one waits already.
    pub(crate) async fn put(self: &Arc<Self>, row: IndexRow) -> Result<(), StoreError> {
        if self.is_full() {
            Box::pin(self.settle()).await?;
        }
        let mut waiting = self.waiting();
        waiting.add(row);
        if waiting.rows.len() >= ENOUGH && !std::mem::replace(&mut waiting.is_seen_to, true) {
            let gathered = self.clone();
            tokio::spawn(async move {
                let settled = gathered.settle().await;
                gathered.waiting().is_seen_to = false;
                if let Err(error) = settled {
                    // They wait on, and whoever looks is told.
                    tracing::debug!(%error, "rows could not be put into the index");
                }
            });
        }
        Ok(())
    }

    /// Takes a row out of every list.
    pub(crate) async fn forget(&self, execution: &ExecutionId) -> Result<(), StoreError> {
        let _turn = self.turn.lock().await;
        self.waiting().rows.remove(execution);
        self.index.forget(execution).await
    }

    /// The index, with everything in it that was put before.
    pub(crate) async fn settled(&self) -> Result<&dyn RunIndex, StoreError> {
        self.settle().await?;
        Ok(&*self.index)
    }

    /// Whoever gives up on the way leaves nothing undone that the next one would not do.
    async fn settle(&self) -> Result<(), StoreError> {
        // Those that another one is just putting there are waited for.
        let _turn = self.turn.lock().await;
        let mut moving = self.take();
        if moving.rows.is_empty() {
            return Ok(());
        }
        match self.index.put_all(moving.rows.clone()).await {
            // One row that does not fit must not keep the others out.
            Err(error) if error.kind == ErrorKind::Internal => self.put_those_that_fit(&moving.rows).await?,
            put => put?,
        }
        moving.has_arrived = true;
        Ok(())
    }

    /// Everything that waits. Names rise with time, so neighbours stand in the same pages.
    fn take(&self) -> Moving<'_> {
        let rows = std::mem::take(&mut self.waiting().rows);
        let mut rows: Vec<IndexRow> = rows.into_values().map(|row| *row).collect();
        rows.sort_unstable_by(|one, other| one.execution.cmp(&other.execution));
        Moving { gathered: self, rows: rows.into(), has_arrived: false }
    }

    async fn put_those_that_fit(&self, rows: &[IndexRow]) -> Result<(), StoreError> {
        for row in rows {
            match self.index.put(row.clone()).await {
                Err(error) if error.kind == ErrorKind::Internal => {
                    let run_id = &row.execution;
                    tracing::error!(%run_id, %error, "the row of this run cannot be put into the index");
                }
                put => put?,
            }
        }
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.waiting().rows.len() >= MOST
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        // Nothing in here can be left half done.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use pyoco_core::ids::Version;
    use pyoco_store_memory::MemoryStore;
    use serde_json::json;

    use super::*;
    use crate::snapshot;

    fn row(name: &str, version: u64, flow: &str) -> IndexRow {
        let execution = ExecutionId::new(name).unwrap();
        let told =
            json!({"run_id": name, "flow_name": flow, "tags": [], "status": "PENDING", "updated_at": 7.0});
        IndexRow { version: Version(version), ..snapshot::foreign_row(&execution, &told).unwrap() }
    }

    async fn flow(index: &dyn RunIndex, name: &str) -> Option<String> {
        let found = index.get(&ExecutionId::new(name).unwrap()).await.unwrap();
        found.map(|row| row.summary.flow_name)
    }

    #[tokio::test]
    async fn a_row_waits_until_somebody_looks_and_the_newest_of_a_run_counts() {
        let index = Arc::new(MemoryStore::new());
        let gathered = Gathered::new(index.clone());
        for (version, flow) in [(1, "old"), (3, "new"), (2, "older")] {
            gathered.put(row("e", version, flow)).await.unwrap();
        }
        assert_eq!(flow(&*index, "e").await, None, "nobody has looked");
        assert_eq!(flow(gathered.settled().await.unwrap(), "e").await.as_deref(), Some("new"));
        // What is known of a foreign run has no version; what came last counts.
        gathered.put(row("f", 0, "first")).await.unwrap();
        gathered.settled().await.unwrap();
        gathered.put(row("f", 0, "second")).await.unwrap();
        assert_eq!(flow(gathered.settled().await.unwrap(), "f").await.as_deref(), Some("second"));
    }

    #[tokio::test]
    async fn many_rows_go_into_the_index_though_nobody_looks() {
        let index = Arc::new(MemoryStore::new());
        let gathered = Gathered::new(index.clone());
        for number in 0..ENOUGH {
            gathered.put(row(&format!("e-{number}"), 1, "flow")).await.unwrap();
        }
        // The one who puts them there has the turn, or had it.
        while gathered.waiting().is_seen_to {
            tokio::task::yield_now().await;
        }
        assert_eq!(flow(&*index, "e-0").await.as_deref(), Some("flow"));
        assert!(gathered.waiting().rows.is_empty());
    }

    #[tokio::test]
    async fn a_row_that_is_forgotten_does_not_come_back() {
        let gathered = Gathered::new(Arc::new(MemoryStore::new()));
        gathered.put(row("waiting", 1, "flow")).await.unwrap();
        gathered.forget(&ExecutionId::new("waiting").unwrap()).await.unwrap();
        assert_eq!(flow(gathered.settled().await.unwrap(), "waiting").await, None);
    }

    #[tokio::test]
    async fn rows_that_do_not_get_into_the_index_wait_again_unless_newer_ones_have_come() {
        let gathered = Gathered::new(Arc::new(MemoryStore::new()));
        for name in ["a", "b", "c"] {
            gathered.put(row(name, 2, "first")).await.unwrap();
        }
        let moving = gathered.take();
        assert_eq!(moving.rows.len(), 3);
        gathered.put(row("b", 3, "newer")).await.unwrap();
        gathered.put(row("c", 1, "late")).await.unwrap();
        drop(moving);
        let index = gathered.settled().await.unwrap();
        for (name, wanted) in [("a", "first"), ("b", "newer"), ("c", "first")] {
            assert_eq!(flow(index, name).await.as_deref(), Some(wanted), "{name}");
        }
    }

    #[tokio::test]
    async fn a_look_that_is_given_up_half_way_loses_no_row() {
        let gathered = Gathered::new(Arc::new(MemoryStore::new()));
        let turn = gathered.turn.lock().await;
        gathered.put(row("e", 1, "flow")).await.unwrap();
        let given_up = tokio::time::timeout(std::time::Duration::ZERO, gathered.settled()).await;
        assert!(given_up.is_err());
        drop(turn);
        assert_eq!(flow(gathered.settled().await.unwrap(), "e").await.as_deref(), Some("flow"));
    }
}
