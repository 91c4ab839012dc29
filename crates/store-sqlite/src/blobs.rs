//! Values beside the log, by fingerprint.

use async_trait::async_trait;
use pyoco_core::digest::Digest;
use pyoco_core::ids::ExecutionId;
use pyoco_ports::{Blobs, Durability, StoreError};
use rusqlite::{Connection, OptionalExtension as _};

use crate::command::Terms;
use crate::{SqliteStore, error};

#[async_trait]
impl Blobs for SqliteStore {
    async fn put_blob(&self, execution: &ExecutionId, bytes: &[u8]) -> Result<Digest, StoreError> {
        let digest = Digest::of_bytes(bytes);
        let (execution, bytes) = (execution.clone(), bytes.to_vec());
        let terms = Terms { operation: "put a blob", durability: Durability::Full, wakes: None };
        self.write(terms, move |connection| {
            connection
                .prepare_cached(
                    "INSERT INTO blobs (digest, bytes) VALUES (?1, ?2) ON CONFLICT (digest) DO NOTHING",
                )?
                .execute((digest.to_string(), &bytes))?;
            used(connection, &execution, &digest)
        })
        .await?;
        Ok(digest)
    }

    async fn share_blob(&self, execution: &ExecutionId, digest: &Digest) -> Result<bool, StoreError> {
        let (execution, digest) = (execution.clone(), *digest);
        let terms = Terms { operation: "share a blob", durability: Durability::Full, wakes: None };
        self.write(terms, move |connection| {
            let sql = "SELECT 1 FROM blobs WHERE digest = ?1";
            let is_there = connection.prepare_cached(sql)?.exists([digest.to_string()])?;
            if is_there {
                used(connection, &execution, &digest)?;
            }
            Ok(is_there)
        })
        .await
    }

    async fn get_blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        let digest = *digest;
        self.read("get a blob", move |connection| {
            let bytes: Option<Vec<u8>> = connection
                .prepare_cached("SELECT bytes FROM blobs WHERE digest = ?1")?
                .query_row([digest.to_string()], |row| row.get(0))
                .optional()?;
            match bytes {
                Some(bytes) if Digest::of_bytes(&bytes) != digest => {
                    Err(error::unreadable(0, format!("the bytes of blob {digest} are not those it names")))
                }
                other => Ok(other),
            }
        })
        .await
    }
}

/// An execution uses a blob.
fn used(connection: &Connection, execution: &ExecutionId, digest: &Digest) -> rusqlite::Result<()> {
    let sql = "INSERT INTO blob_uses (execution, digest) VALUES (?1, ?2) ON CONFLICT (execution, digest) DO NOTHING";
    connection.prepare_cached(sql)?.execute((execution.as_str(), digest.to_string())).map(|_| ())
}
