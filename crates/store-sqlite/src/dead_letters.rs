//! Dead letters, in the order in which they came.

use async_trait::async_trait;
use pyoco_core::time::Timestamp;
use pyoco_ports::{DeadLetterRecord, DeadLetters, Durability, LetterPage, StoreError};
use rusqlite::{Connection, OptionalExtension as _, Row};

use crate::SqliteStore;
use crate::command::Terms;

/// One write of a purge looks at so many letters.
const PURGED: u64 = 1_000;

#[async_trait]
impl DeadLetters for SqliteStore {
    async fn publish(&self, letter: DeadLetterRecord) -> Result<(), StoreError> {
        let terms = Terms { operation: "keep a dead letter", durability: Durability::Full, wakes: None };
        self.write(terms, move |connection| publish(connection, &letter)).await
    }

    async fn count_letters(&self) -> Result<u64, StoreError> {
        self.read("count dead letters", |connection| {
            connection.prepare_cached("SELECT letters FROM letter_count")?.query_row((), |row| row.get(0))
        })
        .await
    }

    async fn letter_page(&self, behind: Option<u64>, limit: usize) -> Result<LetterPage, StoreError> {
        let wanted = i64::try_from(limit).unwrap_or(i64::MAX);
        let behind = behind.and_then(|place| i64::try_from(place).ok()).unwrap_or(i64::MAX);
        self.read("list dead letters", move |connection| {
            let sql =
                "SELECT key, tag, at, body, id FROM dead_letters WHERE id < ?1 ORDER BY id DESC LIMIT ?2";
            let mut statement = connection.prepare_cached(sql)?;
            let mut rows = statement.query((behind, wanted))?;
            let (mut letters, mut last) = (Vec::new(), None);
            while let Some(row) = rows.next()? {
                letters.push(letter(row)?);
                last = Some(row.get(4)?);
            }
            let next = last.filter(|_| letters.len() == limit);
            Ok(LetterPage { letters, next })
        })
        .await
    }

    async fn letter(&self, key: &str) -> Result<Option<DeadLetterRecord>, StoreError> {
        let key = key.to_owned();
        self.read("find a dead letter", move |connection| {
            let sql = "SELECT key, tag, at, body FROM dead_letters WHERE key = ?1";
            connection.prepare_cached(sql)?.query_row([&key], letter).optional()
        })
        .await
    }

    async fn remove_letter(&self, key: &str) -> Result<bool, StoreError> {
        let terms = Terms { operation: "remove a dead letter", durability: Durability::Full, wakes: None };
        let key = key.to_owned();
        self.write(terms, move |connection| {
            let removed =
                connection.prepare_cached("DELETE FROM dead_letters WHERE key = ?1")?.execute([&key])?;
            Ok(removed > 0)
        })
        .await
    }

    /// In short writes, so that others can write in between. Letters that come meanwhile are not looked at.
    async fn purge_letters(&self, before: Timestamp) -> Result<u64, StoreError> {
        let last = self
            .read("purge dead letters", |connection| {
                let sql = "SELECT coalesce(max(id), 0) FROM dead_letters";
                connection.prepare_cached(sql)?.query_row((), |row| row.get::<_, u64>(0))
            })
            .await?;
        let (mut after, mut purged) = (0, 0);
        while after < last {
            let terms = Terms { operation: "purge dead letters", durability: Durability::Full, wakes: None };
            let (end, removed) =
                self.write(terms, move |connection| purge(connection, after, last, before)).await?;
            (after, purged) = (end, purged + removed);
        }
        Ok(purged)
    }
}

/// A letter of a row that begins with its columns.
fn letter(row: &Row<'_>) -> rusqlite::Result<DeadLetterRecord> {
    let at = Timestamp::from_micros(row.get(2)?);
    Ok(DeadLetterRecord { key: row.get(0)?, tag: row.get(1)?, at, body: row.get(3)? })
}

/// Looks at some letters behind an id and removes those from before an instant. Says where to go on, and how many it removed.
fn purge(connection: &Connection, after: u64, last: u64, before: Timestamp) -> rusqlite::Result<(u64, u64)> {
    let some =
        "SELECT max(id) FROM (SELECT id FROM dead_letters WHERE id > ?1 AND id <= ?2 ORDER BY id LIMIT ?3)";
    let end = connection.prepare_cached(some)?.query_row((after, last, PURGED), |row| row.get(0))?;
    let Some(end) = end else { return Ok((last, 0)) };
    let sql = "DELETE FROM dead_letters WHERE id > ?1 AND id <= ?2 AND at < ?3";
    let removed = connection.prepare_cached(sql)?.execute((after, end, before.as_micros()))?;
    Ok((end, removed as u64))
}

/// Keeps a letter, once for each key.
pub(crate) fn publish(connection: &Connection, letter: &DeadLetterRecord) -> rusqlite::Result<()> {
    let sql =
        "INSERT INTO dead_letters (key, tag, at, body) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (key) DO NOTHING";
    let values = (&letter.key, &letter.tag, letter.at.as_micros(), &letter.body);
    connection.prepare_cached(sql)?.execute(values).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Check, Options};

    #[tokio::test]
    async fn a_purge_of_more_than_one_write_takes_exactly_those_from_before() {
        let home = tempfile::tempdir().unwrap();
        let store =
            SqliteStore::open(home.path(), Options { check: Check::Never, ..Options::default() }).unwrap();
        // Every fifth is newer than the instant, wherever it stands.
        let terms = Terms { operation: "test", durability: Durability::Full, wakes: None };
        let written = store.write(terms, |connection| {
            for number in 0..2_500_i64 {
                let at = Timestamp::from_micros(if number % 5 == 0 { 9 } else { 1 });
                let (key, tag) = (number.to_string(), "t".to_owned());
                publish(connection, &DeadLetterRecord { key, tag, at, body: vec![7] })?;
            }
            Ok(())
        });
        written.await.unwrap();
        assert_eq!(store.purge_letters(Timestamp::from_micros(9)).await.unwrap(), 2_000);
        assert_eq!(store.count_letters().await.unwrap(), 500);
        let newest = store.letters(1_000).await.unwrap();
        assert!(newest.len() == 500 && newest.iter().all(|letter| letter.at.as_micros() == 9));
    }
}
