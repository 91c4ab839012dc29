//! Values beside the log, by fingerprint: objects of a bucket that every client of NATS can read.
//!
//! The pieces come first, then the description that names them. If we die in between, the pieces are there for nobody; the next
//! writer of the same bytes stores its own. What was described is never changed.

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use bytes::Bytes;
use pyoco_core::digest::Digest;
use pyoco_ports::{Blobs, ErrorKind, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::connection::Connection;
use crate::error::{self, PublishError};
use crate::message::Headers;
use crate::stream::Most;
use crate::{NatsStore, names};

/// The size of a piece, if the server takes that much.
const PIECE: usize = 512 * 1024;
/// What the protocol needs beside a piece.
const ROOM: usize = 1024;
/// How many pieces are asked for at once.
const PAGE: usize = 64;

const PUT: &str = "put a blob";
const GET: &str = "get a blob";

/// What stands at the name of an object, as all clients of NATS write it.
#[derive(Debug, Serialize, Deserialize)]
struct Description {
    name: String,
    bucket: String,
    /// Where the pieces are.
    nuid: String,
    size: usize,
    chunks: usize,
    digest: String,
    /// Clients take the time of the message instead; some demand that there is one.
    #[serde(default)]
    mtime: String,
    #[serde(default)]
    deleted: bool,
    options: Option<Value>,
}

#[async_trait]
impl Blobs for NatsStore {
    async fn put_blob(&self, bytes: &[u8]) -> Result<Digest, StoreError> {
        let digest = Digest::of_bytes(bytes);
        let stream = names::object_stream(names::BLOBS);
        let subject = names::blob_description(&digest);
        let last = self.connection.last(PUT, &stream, &subject).await?;
        let mut behind = 0;
        if let Some(last) = last {
            behind = last.sequence;
            if description(PUT, &last.payload)?.is_some() {
                return Ok(digest);
            }
        }
        let part = self.connection.unused_name();
        let stored = self.store_blob(bytes, &digest, &part, behind).await;
        if !matches!(stored, Ok(true)) {
            // Somebody else has described the same bytes, or we failed: nobody will ever read our pieces.
            self.forget_pieces(&part).await;
        }
        stored.map(|_| digest)
    }

    async fn get_blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        read(&self.connection, self.resources.is_blobs_direct, digest).await
    }
}

/// The bytes of a blob; `is_direct` where many pieces may be read with one request.
pub(crate) async fn read(
    connection: &Connection,
    is_direct: bool,
    digest: &Digest,
) -> Result<Option<Vec<u8>>, StoreError> {
    let stream = names::object_stream(names::BLOBS);
    let Some(last) = connection.last(GET, &stream, &names::blob_description(digest)).await? else {
        return Ok(None);
    };
    let Some(description) = description(GET, &last.payload)? else { return Ok(None) };
    let subject = names::blob_chunks(&description.nuid);
    let (mut bytes, mut pieces, mut from) = (Vec::new(), 0, 1);
    while pieces < description.chunks && bytes.len() < description.size {
        let most = Most::messages(PAGE.min(description.chunks - pieces));
        let page = connection.page(GET, &stream, &subject, from, most, is_direct).await?;
        let Some(end) = page.last().map(|message| message.sequence) else { break };
        from = end.saturating_add(1);
        pieces += page.len();
        for message in &page {
            bytes.extend_from_slice(&message.payload);
        }
    }
    if Digest::of_bytes(&bytes) != *digest {
        return Err(error::corrupt(GET, format!("the bytes of blob {digest} are not those it names")));
    }
    Ok(Some(bytes))
}

impl NatsStore {
    /// Stores pieces and description; `false` if somebody else has described it in the meantime.
    async fn store_blob(
        &self,
        bytes: &[u8],
        digest: &Digest,
        part: &str,
        behind: u64,
    ) -> Result<bool, StoreError> {
        let stream = names::object_stream(names::BLOBS);
        let subject = names::blob_chunks(part);
        let size = PIECE.min(self.connection.max_payload().saturating_sub(ROOM)).max(1);
        let mut chunks = 0;
        for piece in bytes.chunks(size) {
            let piece = Bytes::copy_from_slice(piece);
            self.connection
                .publish(PUT, &stream, &subject, Headers::new(), piece)
                .await
                .map_err(|error| error.into_store(PUT))?;
            chunks += 1;
        }
        let description = Description {
            name: digest.to_string(),
            bucket: names::BLOBS.to_owned(),
            nuid: part.to_owned(),
            size: bytes.len(),
            chunks,
            digest: format!("SHA-256={}", URL_SAFE.encode(digest.as_bytes())),
            mtime: "0001-01-01T00:00:00Z".to_owned(),
            deleted: false,
            options: Some(json!({"max_chunk_size": size})),
        };
        let description = serde_json::to_vec(&description).map_err(|error| error::internal(PUT, error))?;
        let headers = Headers::new().word("Nats-Rollup", "sub").after(behind);
        let subject = names::blob_description(digest);
        match self.connection.publish(PUT, &stream, &subject, headers, description.into()).await {
            Ok(_) => Ok(true),
            Err(PublishError::WrongLastSequence) => Ok(false),
            Err(error) => Err(error.into_store(PUT)),
        }
    }

    /// Best effort: pieces that stay cost room and nothing else.
    async fn forget_pieces(&self, part: &str) {
        let subject = format!("STREAM.PURGE.{}", names::object_stream(names::BLOBS));
        let which = json!({"filter": names::blob_chunks(part)});
        if let Err(error) = self.connection.api::<Value>(PUT, &subject, &which).await {
            tracing::debug!(%error, "pieces of a blob stay behind");
        }
    }
}

/// The description of an object that is there; `None` if it was deleted.
fn description(operation: &'static str, bytes: &[u8]) -> Result<Option<Description>, StoreError> {
    let description: Description =
        serde_json::from_slice(bytes).map_err(|why| StoreError::new(ErrorKind::Corrupt, operation, why))?;
    Ok((!description.deleted).then_some(description))
}
