//! Values beside the log, by fingerprint.

use async_trait::async_trait;
use pyoco_core::digest::Digest;
use pyoco_ports::{Blobs, Durability, StoreError};
use rusqlite::OptionalExtension as _;

use crate::command::Terms;
use crate::{SqliteStore, error};

#[async_trait]
impl Blobs for SqliteStore {
    async fn put_blob(&self, bytes: &[u8]) -> Result<Digest, StoreError> {
        let digest = Digest::of_bytes(bytes);
        let bytes = bytes.to_vec();
        let terms = Terms { operation: "put a blob", durability: Durability::Full, wakes: None };
        self.write(terms, move |connection| {
            connection
                .prepare_cached(
                    "INSERT INTO blobs (digest, bytes) VALUES (?1, ?2) ON CONFLICT (digest) DO NOTHING",
                )?
                .execute((digest.to_string(), &bytes))
        })
        .await?;
        Ok(digest)
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
