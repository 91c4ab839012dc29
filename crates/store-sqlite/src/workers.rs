//! The registry of workers.

use async_trait::async_trait;
use pyoco_core::ids::WorkerId;
use pyoco_core::time::Timestamp;
use pyoco_ports::{Durability, StoreError, WorkerRecord, WorkerRegistry};
use rusqlite::{Connection, OptionalExtension as _, Row};

use crate::command::Terms;
use crate::{SqliteStore, error};

#[async_trait]
impl WorkerRegistry for SqliteStore {
    async fn report(&self, record: WorkerRecord) -> Result<(), StoreError> {
        // Reports come every few seconds; one that is lost with the power is followed by the next.
        let terms = Terms { operation: "report a worker", durability: Durability::Process, wakes: None };
        self.write(terms, move |connection| {
            // `hidden` is not in the update: it is somebody else's mark.
            let sql = "INSERT INTO workers (worker, seen_at, hidden, body) VALUES (?1, ?2, ?3, ?4) \
                       ON CONFLICT (worker) DO UPDATE SET seen_at = excluded.seen_at, body = excluded.body";
            let values = (record.worker.as_str(), record.seen_at.as_micros(), record.hidden, &record.body);
            connection.prepare_cached(sql)?.execute(values).map(|_| ())
        })
        .await
    }

    async fn worker(&self, worker: &WorkerId) -> Result<Option<WorkerRecord>, StoreError> {
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
        self.write(terms, move |connection| {
            connection
                .prepare_cached("UPDATE workers SET hidden = ?2 WHERE worker = ?1")?
                .execute((worker.as_str(), hidden))?;
            one(connection, &worker)
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
