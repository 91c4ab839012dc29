//! Dead letters, in the order in which they came.

use async_trait::async_trait;
use pyoco_core::time::Timestamp;
use pyoco_ports::{DeadLetterRecord, DeadLetters, Durability, StoreError};
use rusqlite::Connection;

use crate::SqliteStore;
use crate::command::Terms;

#[async_trait]
impl DeadLetters for SqliteStore {
    async fn publish(&self, letter: DeadLetterRecord) -> Result<(), StoreError> {
        let terms = Terms { operation: "keep a dead letter", durability: Durability::Full, wakes: None };
        self.write(terms, move |connection| publish(connection, &letter)).await
    }

    async fn count_letters(&self) -> Result<u64, StoreError> {
        self.read("count dead letters", |connection| {
            connection.prepare_cached("SELECT count(*) FROM dead_letters")?.query_row((), |row| row.get(0))
        })
        .await
    }

    async fn letters(&self, limit: usize) -> Result<Vec<DeadLetterRecord>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.read("list dead letters", move |connection| {
            let mut statement = connection
                .prepare_cached("SELECT key, tag, at, body FROM dead_letters ORDER BY id DESC LIMIT ?1")?;
            let letters = statement.query_map([limit], |row| {
                let at = Timestamp::from_micros(row.get(2)?);
                Ok(DeadLetterRecord { key: row.get(0)?, tag: row.get(1)?, at, body: row.get(3)? })
            })?;
            letters.collect()
        })
        .await
    }
}

/// Keeps a letter, once for each key.
pub(crate) fn publish(connection: &Connection, letter: &DeadLetterRecord) -> rusqlite::Result<()> {
    let sql =
        "INSERT INTO dead_letters (key, tag, at, body) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (key) DO NOTHING";
    let values = (&letter.key, &letter.tag, letter.at.as_micros(), &letter.body);
    connection.prepare_cached(sql)?.execute(values).map(|_| ())
}
