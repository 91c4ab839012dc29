//! Records of API keys: a row for each, made anew whenever it is written.

use async_trait::async_trait;
use pyoco_core::ids::KeyId;
use pyoco_ports::{Durability, KeyRecords, StoreError, StoredKey};
use rusqlite::{Connection, OptionalExtension as _, Row};

use crate::command::Terms;
use crate::{SqliteStore, error};

const ONE: &str = "SELECT revision, record FROM api_keys WHERE id = ?1";

#[async_trait]
impl KeyRecords for SqliteStore {
    async fn key(&self, id: &KeyId) -> Result<Option<StoredKey>, StoreError> {
        let id = id.clone();
        let one = move |connection: &Connection| {
            connection.prepare_cached(ONE)?.query_row([id.as_str()], decode).optional()
        };
        // One row of a small table, before every request of somebody unknown.
        self.main().read_briefly("get an API key", one).await
    }

    async fn put_key(&self, id: &KeyId, record: Vec<u8>, over: Option<u64>) -> Result<bool, StoreError> {
        let terms = Terms { operation: "put an API key", durability: Durability::Full, wakes: None };
        let id = id.clone();
        self.write(terms, move |connection| put(connection, &id, &record, over)).await
    }

    async fn keys(&self) -> Result<Vec<(KeyId, StoredKey)>, StoreError> {
        self.read("list API keys", |connection| {
            let mut all =
                connection.prepare_cached("SELECT revision, record, id FROM api_keys ORDER BY id")?;
            let named = |row: &Row<'_>| {
                let id: String = row.get(2)?;
                Ok((KeyId::new(&id).map_err(|why| error::unreadable(2, why))?, decode(row)?))
            };
            all.query_map((), named)?.collect()
        })
        .await
    }
}

/// Writes over the named writing, or where there is none. The writer is alone, so nothing comes in between.
fn put(connection: &Connection, id: &KeyId, record: &[u8], over: Option<u64>) -> rusqlite::Result<bool> {
    if let Some(over) = over {
        // No writing has a number beyond what SQLite can count, so there is nothing to write over.
        let Ok(over) = i64::try_from(over) else { return Ok(false) };
        let removed = connection
            .prepare_cached("DELETE FROM api_keys WHERE id = ?1 AND revision = ?2")?
            .execute((id.as_str(), over))?;
        if removed == 0 {
            return Ok(false);
        }
    }
    let written = connection
        .prepare_cached("INSERT INTO api_keys (id, record) VALUES (?1, ?2) ON CONFLICT (id) DO NOTHING")?
        .execute((id.as_str(), record))?;
    Ok(written == 1)
}

fn decode(row: &Row<'_>) -> rusqlite::Result<StoredKey> {
    Ok(StoredKey { revision: row.get(0)?, record: row.get(1)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_looked_up_along_its_id() {
        let connection = crate::list::tests::empty();
        let plan = crate::list::tests::plan(&connection, ONE);
        assert!(plan.contains("SEARCH api_keys USING INDEX"), "{plan}");
    }

    #[test]
    fn a_revision_is_never_given_twice_also_when_the_newest_row_is_removed() {
        let connection = crate::list::tests::empty();
        let id = KeyId::new("somebody").unwrap();
        let revision = || connection.query_row(ONE, [id.as_str()], decode).unwrap().revision;
        assert!(put(&connection, &id, b"1", None).unwrap());
        let first = revision();
        connection.execute("DELETE FROM api_keys", ()).unwrap();
        assert!(put(&connection, &id, b"2", None).unwrap());
        assert_ne!(revision(), first);
        assert!(!put(&connection, &id, b"3", Some(first)).unwrap(), "that writing is gone");
    }
}
