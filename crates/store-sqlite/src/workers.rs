//! The registry of workers. What was written last is remembered, because every look at a run asks for its worker.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use pyoco_core::ids::WorkerId;
use pyoco_core::time::Timestamp;
use pyoco_ports::{Durability, StoreError, WorkerRecord, WorkerRegistry};
use rusqlite::{Connection, OptionalExtension as _, Row};

use crate::command::Terms;
use crate::{SqliteStore, error};

/// Records as the writer has last written them: nobody else can write, so they are what the file has.
#[derive(Clone, Default)]
pub(crate) struct Written(Arc<Mutex<HashMap<WorkerId, WorkerRecord>>>);

impl Written {
    fn records(&self) -> MutexGuard<'_, HashMap<WorkerId, WorkerRecord>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Called by the writer, one command after the other.
    fn note(&self, connection: &Connection, worker: &WorkerId) -> rusqlite::Result<Option<WorkerRecord>> {
        let found = one(connection, worker)?;
        if let Some(record) = &found {
            self.records().insert(worker.clone(), record.clone());
        }
        Ok(found)
    }
}

#[async_trait]
impl WorkerRegistry for SqliteStore {
    async fn report(&self, record: WorkerRecord) -> Result<(), StoreError> {
        // Reports come every few seconds; one that is lost with the power is followed by the next.
        let terms = Terms { operation: "report a worker", durability: Durability::Process, wakes: None };
        let written = self.written_workers().clone();
        self.write(terms, move |connection| {
            // `hidden` is not in the update: it is somebody else's mark.
            let sql = "INSERT INTO workers (worker, seen_at, hidden, body) VALUES (?1, ?2, ?3, ?4) \
                       ON CONFLICT (worker) DO UPDATE SET seen_at = excluded.seen_at, body = excluded.body";
            let values = (record.worker.as_str(), record.seen_at.as_micros(), record.hidden, &record.body);
            connection.prepare_cached(sql)?.execute(values)?;
            written.note(connection, &record.worker).map(|_| ())
        })
        .await
    }

    async fn worker(&self, worker: &WorkerId) -> Result<Option<WorkerRecord>, StoreError> {
        let known = self.written_workers().records().get(worker).cloned();
        if known.is_some() && self.is_open() {
            return Ok(known);
        }
        let worker = worker.clone();
        self.read("read a worker", move |connection| one(connection, &worker)).await
    }

    async fn workers(&self) -> Result<Vec<WorkerRecord>, StoreError> {
        self.read("list workers", |connection| {
            let sql = "SELECT worker, seen_at, hidden, body FROM workers ORDER BY seen_at DESC, worker DESC";
            connection.prepare_cached(sql)?.query_map((), record)?.collect()
        })
        .await
    }

    async fn hide(&self, worker: &WorkerId, hidden: bool) -> Result<Option<WorkerRecord>, StoreError> {
        let worker = worker.clone();
        let terms = Terms { operation: "hide a worker", durability: Durability::Full, wakes: None };
        let written = self.written_workers().clone();
        self.write(terms, move |connection| {
            connection
                .prepare_cached("UPDATE workers SET hidden = ?2 WHERE worker = ?1")?
                .execute((worker.as_str(), hidden))?;
            written.note(connection, &worker)
        })
        .await
    }
}

fn one(connection: &Connection, worker: &WorkerId) -> rusqlite::Result<Option<WorkerRecord>> {
    connection
        .prepare_cached("SELECT worker, seen_at, hidden, body FROM workers WHERE worker = ?1")?
        .query_row([worker.as_str()], record)
        .optional()
}

fn record(row: &Row<'_>) -> rusqlite::Result<WorkerRecord> {
    let worker: String = row.get(0)?;
    Ok(WorkerRecord {
        worker: WorkerId::new(&worker).map_err(|why| error::unreadable(0, why))?,
        seen_at: Timestamp::from_micros(row.get(1)?),
        hidden: row.get(2)?,
        body: row.get(3)?,
    })
}
