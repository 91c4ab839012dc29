//! Values beside the log, by fingerprint: objects of a bucket that every client of NATS can read.
//!
//! The pieces come first, then the description that names them. If we die in between, the pieces are there for nobody; the next
//! writer of the same bytes stores its own. What was described is never changed.

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use bytes::Bytes;
use pyoco_core::digest::Digest;
use pyoco_core::ids::ExecutionId;
use pyoco_ports::{Blobs, ErrorKind, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::connection::Connection;
use crate::error::{self, PublishError};
use crate::message::Headers;
use crate::stream::Most;
use crate::{NatsStore, names, resources};

/// The size of a piece, if the server takes that much.
const PIECE: usize = 512 * 1024;
/// What the protocol needs beside a piece.
const ROOM: usize = 1024;
/// How many pieces are asked for at once.
const PAGE: usize = 64;

/// How often a description is looked at that others change.
const ATTEMPTS: u32 = 16;
/// Everybody who uses this one has said so.
const USED: &str = "Pyoco-Used";

const PUT: &str = "put a blob";
const GET: &str = "get a blob";
const RELEASE: &str = "release a blob";

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
    async fn put_blob(&self, execution: &ExecutionId, bytes: &[u8]) -> Result<Digest, StoreError> {
        self.put_used_blob(execution.as_str(), bytes).await
    }

    async fn share_blob(&self, execution: &ExecutionId, digest: &Digest) -> Result<bool, StoreError> {
        let user = names::blob_use(execution.as_str(), digest);
        self.use_blob(&user).await?;
        let is_there = self.keep_described(digest, None).await?;
        if !is_there {
            self.connection.purge(PUT, names::RETENTION, &user, None).await?;
        }
        Ok(is_there)
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
    /// Keeps bytes that somebody uses, an execution or the graphs.
    pub(crate) async fn put_used_blob(&self, user: &str, bytes: &[u8]) -> Result<Digest, StoreError> {
        let digest = Digest::of_bytes(bytes);
        self.use_blob(&names::blob_use(user, &digest)).await?;
        if self.keep_described(&digest, Some(bytes)).await? {
            return Ok(digest);
        }
        Err(StoreError::new(ErrorKind::Unavailable, PUT, "others were always faster"))
    }

    /// Writes down who uses a blob, before it is looked at: whoever removes one looks the other way round.
    async fn use_blob(&self, user: &str) -> Result<(), StoreError> {
        let publish = || self.connection.publish(PUT, names::RETENTION, user, Headers::new(), Bytes::new());
        let published = match publish().await {
            // Somebody may have deleted it.
            Err(PublishError::NoStream) => {
                resources::ensure_retention(&self.connection, &self.settings).await?;
                publish().await
            }
            published => published,
        };
        published.map(|_| ()).map_err(|error| error.into_store(PUT))
    }

    /// Sees to it that a blob is described after its use was written down: what was described before may be about to be removed. Stores
    /// it if it is not there and these are its bytes. `false` if it is not there.
    async fn keep_described(&self, digest: &Digest, bytes: Option<&[u8]>) -> Result<bool, StoreError> {
        let stream = names::object_stream(names::BLOBS);
        let subject = names::blob_description(digest);
        let mut is_old = true;
        for _ in 0..ATTEMPTS {
            let last = self.connection.last(PUT, &stream, &subject).await?;
            let behind = last.as_ref().map_or(0, |last| last.sequence);
            let described = match last {
                Some(last) if description(PUT, &last.payload)?.is_some() => Some(last),
                Some(_) | None => None,
            };
            match (described, bytes) {
                (Some(_), _) if !is_old => return Ok(true),
                (Some(last), _) => {
                    let mut headers = Headers::new().word("Nats-Rollup", "sub").after(behind);
                    if last.headers.get(USED).is_some() {
                        headers = headers.word(USED, "1");
                    }
                    match self.connection.publish(PUT, &stream, &subject, headers, last.payload).await {
                        Ok(_) => return Ok(true),
                        // Somebody else has just described or removed it.
                        Err(PublishError::WrongLastSequence) => {}
                        Err(error) => return Err(error.into_store(PUT)),
                    }
                }
                (None, None) => return Ok(false),
                (None, Some(bytes)) => {
                    let part = self.connection.unused_name();
                    match self.store_blob(bytes, digest, &part, behind).await {
                        Ok(true) => return Ok(true),
                        // Somebody else has described the same bytes, or we failed: nobody will ever read our pieces.
                        Ok(false) => self.forget_pieces(&part).await,
                        Err(error) => {
                            self.forget_pieces(&part).await;
                            return Err(error);
                        }
                    }
                }
            }
            is_old = false;
        }
        Ok(false)
    }

    /// An execution uses no blobs any more; those that nobody uses go.
    pub(crate) async fn release_blobs(&self, execution: &ExecutionId) -> Result<(), StoreError> {
        let uses = names::uses_by(execution);
        loop {
            let next = self.connection.next(RELEASE, names::RETENTION, 1, &uses).await;
            let found = match next {
                Err(error) if error::is_missing(&error) => None,
                next => next?,
            };
            let Some(found) = found else { return Ok(()) };
            let digest = found.subject.rsplit_once('.').map(|(_, digest)| Value::from(digest));
            let digest = digest.and_then(|digest| Digest::deserialize(digest).ok());
            if let Some(digest) = &digest {
                self.remove_unused(digest, Some(&found.subject)).await?;
            }
            self.connection.purge(RELEASE, names::RETENTION, &found.subject, None).await?;
            if let Some(digest) = &digest {
                // Of two that let go at the same time each saw the other.
                self.remove_unused(digest, None).await?;
            }
        }
    }

    /// Removes a blob unless somebody else uses it. First what is described, then who uses it: whoever begins to use it does it the
    /// other way round and describes it again, so that it is not the one that is removed here.
    async fn remove_unused(&self, digest: &Digest, but: Option<&str>) -> Result<(), StoreError> {
        let stream = names::object_stream(names::BLOBS);
        let subject = names::blob_description(digest);
        let Some(last) = self.connection.last(RELEASE, &stream, &subject).await? else { return Ok(()) };
        let Some(described) = description(RELEASE, &last.payload)? else { return Ok(()) };
        // Of older ones nobody knows who uses them.
        if last.headers.get(USED).is_none() {
            return Ok(());
        }
        let (uses, mut from) = (names::uses_of(digest), 1);
        while let Some(found) = self.connection.next(RELEASE, names::RETENTION, from, &uses).await? {
            if Some(found.subject.as_str()) != but {
                return Ok(());
            }
            from = found.sequence.saturating_add(1);
        }
        let end = last.sequence.saturating_add(1);
        if self.connection.purge(RELEASE, &stream, &subject, Some(end)).await? > 0 {
            self.forget_pieces(&described.nuid).await;
        }
        Ok(())
    }

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
        let headers = Headers::new().word("Nats-Rollup", "sub").word(USED, "1").after(behind);
        let subject = names::blob_description(digest);
        match self.connection.publish(PUT, &stream, &subject, headers, description.into()).await {
            Ok(_) => Ok(true),
            Err(PublishError::WrongLastSequence) => Ok(false),
            Err(error) => Err(error.into_store(PUT)),
        }
    }

    /// Best effort: pieces that stay cost room and nothing else.
    async fn forget_pieces(&self, part: &str) {
        let stream = names::object_stream(names::BLOBS);
        if let Err(error) = self.connection.purge(PUT, &stream, &names::blob_chunks(part), None).await {
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
