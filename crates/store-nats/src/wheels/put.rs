//! An upload: the pieces once, then the description as often as others describe something in between.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesOrdered;
use pyoco_ports::{ErrorKind, NewWheel, StoreError, WheelBytes, WheelRecord};
use pyoco_wheels::{Refused, Sha256Digest};
use sha2::{Digest as _, Sha256};

use super::object::{self, Pieces};
use super::{PUT, Shelf};
use crate::error::{self, PublishError};
use crate::message::Headers;
use crate::resources;

/// The size of a piece, if the server takes that much: what other implementations send.
const PIECE: usize = 128 * 1024;
/// What the protocol needs beside a piece.
const ROOM: usize = 1024;
/// So many pieces are under way at once.
const AT_ONCE: usize = 8;
/// Each lost race means that somebody else has described something; more than these mean something else.
const ATTEMPTS: u32 = 60;
const PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

pub(super) async fn put(
    shelf: &Arc<Shelf>,
    wheel: NewWheel,
    bytes: &mut dyn WheelBytes,
) -> Result<Result<WheelRecord, Refused>, StoreError> {
    let there = shelf.look(PUT).await?;
    if !there.is_made {
        resources::ensure_wheels(&shelf.connection, &shelf.settings).await?;
    }
    // Nothing is sent of one that is hopeless. What decides is asked again.
    if let Err(refused) = there.may_upload(&wheel.name) {
        return Ok(Err(refused));
    }
    let mut upload = Upload::new(shelf);
    let described = match upload.send(&wheel, bytes).await {
        Ok(pieces) => upload.describe(&wheel, pieces).await,
        Err(error) => Err(error),
    };
    if !matches!(described, Ok(Ok(_))) && upload.is_ours {
        upload.is_ours = false;
        shelf.forget_pieces(PUT, &upload.nuid).await;
    }
    described
}

/// Pieces under a name of their own. If nobody waits for the upload any more they go, as far as anybody can see to it.
struct Upload {
    shelf: Arc<Shelf>,
    nuid: String,
    /// No description names the pieces, and none that does is under way.
    is_ours: bool,
}

impl Upload {
    fn new(shelf: &Arc<Shelf>) -> Self {
        Self { shelf: Arc::clone(shelf), nuid: shelf.connection.unused_name(), is_ours: true }
    }

    /// Stores the pieces. When it fails none of them is under way any more.
    async fn send(&self, wheel: &NewWheel, bytes: &mut dyn WheelBytes) -> Result<Pieces, StoreError> {
        let shelf = &self.shelf;
        let size = PIECE.min(shelf.connection.max_payload().saturating_sub(ROOM)).max(1);
        let subject = shelf.settings.wheel_chunks(&self.nuid);
        let mut cut = Cut::new(wheel, size);
        let mut under_way = FuturesOrdered::new();
        let (mut count, mut behind, mut failed, mut is_end) = (0, 0, None, false);
        loop {
            while failed.is_none() && !is_end && under_way.len() < AT_ONCE {
                match cut.next(bytes).await {
                    Ok(Some(piece)) => {
                        if let Err(error) = pyoco_faults::at("upload.mid_chunk", PUT) {
                            failed = Some(error);
                            break;
                        }
                        count += 1;
                        under_way.push_back(shelf.store_piece(&subject, piece));
                    }
                    Ok(None) => is_end = true,
                    Err(error) => failed = Some(error),
                }
            }
            // Whoever is told to let others go first, as a task may be, would send behind those that follow.
            let Some(stored) = tokio::task::unconstrained(under_way.next()).await else { break };
            match stored {
                Ok(sequence) if sequence > behind => behind = sequence,
                Ok(_) => failed = failed.or_else(|| Some(unordered())),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        if let Some(error) = failed {
            return Err(error);
        }
        // All of them, each once. A server may have been restored from a copy, or somebody swept too eagerly.
        let info = shelf.connection.info(PUT, &shelf.stream, Some(&subject)).await?;
        let stored = info.and_then(|info| info.state.subjects?.get(&subject).copied()).unwrap_or(0);
        pyoco_faults::at("upload.after_object", PUT)?;
        if stored == count { Ok(Pieces { count, size }) } else { Err(unordered()) }
    }

    /// Describes the wheel, behind the last description of all: whoever else describes one in between makes us look again.
    async fn describe(
        &mut self,
        wheel: &NewWheel,
        pieces: Pieces,
    ) -> Result<Result<WheelRecord, Refused>, StoreError> {
        let shelf = Arc::clone(&self.shelf);
        let (all, subject) = (shelf.settings.all_wheels(), shelf.settings.wheel(wheel.name.as_str()));
        let description =
            Bytes::from(object::describe(&shelf.settings.wheels_bucket, wheel, &self.nuid, pieces));
        // It may be stored, now or later: nobody has answered.
        let mut is_open = false;
        for attempt in 1..=ATTEMPTS {
            let there = match shelf.look(PUT).await {
                Ok(there) => there,
                Err(error) if is_open => return Err(StoreError::new(ErrorKind::Timeout, PUT, error)),
                Err(error) => return Err(error),
            };
            if let Some(record) = there.upload(&self.nuid) {
                self.is_ours = false;
                return Ok(Ok(record.clone()));
            }
            if let Err(refused) = there.may_upload(&wheel.name) {
                // It will not be stored any more: it was to follow what is not the last one now.
                self.is_ours = true;
                return Ok(Err(refused));
            }
            let headers = Headers::new().word("Nats-Rollup", "sub").after_all(&all, there.last);
            // From here on it may be seen, also when nobody waits for us any more.
            self.is_ours = false;
            let published =
                shelf.connection.publish(PUT, &shelf.stream, &subject, headers, description.clone()).await;
            match published {
                Ok(_) => {
                    pyoco_faults::at("upload.after_record", PUT)?;
                    return Ok(Ok(self.record(wheel)));
                }
                Err(PublishError::Store(error)) if error.kind == ErrorKind::Timeout => is_open = true,
                Err(PublishError::WrongLastSequence) => self.is_ours = !is_open,
                Err(error) => {
                    self.is_ours = !is_open;
                    return Err(error.into_store(PUT));
                }
            }
            tokio::time::sleep(PAUSE.saturating_mul(attempt).min(LONGEST_PAUSE)).await;
        }
        let kind = if is_open { ErrorKind::Timeout } else { ErrorKind::Unavailable };
        Err(StoreError::new(kind, PUT, "others were always faster"))
    }

    fn record(&self, wheel: &NewWheel) -> WheelRecord {
        WheelRecord {
            name: wheel.name.clone(),
            nuid: self.nuid.clone(),
            size_bytes: wheel.size_bytes,
            sha256: wheel.sha256.clone(),
            modified: wheel.at,
            tags: wheel.tags.clone(),
        }
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if !self.is_ours {
            return;
        }
        let (shelf, nuid) = (Arc::clone(&self.shelf), std::mem::take(&mut self.nuid));
        // Without a runtime the process is about to end; a sweep finds them.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                shelf.forget_pieces(PUT, &nuid).await;
                // Those that were still under way.
                tokio::time::sleep(shelf.connection.patience()).await;
                if !shelf.connection.closing().is_cancelled() {
                    shelf.forget_pieces(PUT, &nuid).await;
                }
            });
        }
    }
}

impl Shelf {
    async fn store_piece(&self, subject: &str, piece: Bytes) -> Result<u64, StoreError> {
        let stored = self.connection.publish(PUT, &self.stream, subject, Headers::new(), piece).await;
        stored.map(|stored| stored.sequence).map_err(|error| error.into_store(PUT))
    }
}

/// Cuts what comes into pieces of one size, and sees to it that it is what was said.
struct Cut<'a> {
    wheel: &'a NewWheel,
    size: usize,
    held: BytesMut,
    came: u64,
    hash: Sha256,
    is_end: bool,
}

impl<'a> Cut<'a> {
    fn new(wheel: &'a NewWheel, size: usize) -> Self {
        Self { wheel, size, held: BytesMut::new(), came: 0, hash: Sha256::new(), is_end: false }
    }

    /// The next piece; only the last is shorter, and it is the last only if all of it was right.
    async fn next(&mut self, bytes: &mut dyn WheelBytes) -> Result<Option<Bytes>, StoreError> {
        while !self.is_end && self.held.len() < self.size {
            match bytes.next().await? {
                Some(more) => {
                    self.came = self.came.saturating_add(u64::try_from(more.len()).unwrap_or(u64::MAX));
                    self.check(self.came <= self.wheel.size_bytes, "more bytes came than were said")?;
                    self.hash.update(&more);
                    self.held.extend_from_slice(&more);
                }
                None => {
                    self.check(self.came == self.wheel.size_bytes, "fewer bytes came than were said")?;
                    let hash = Sha256Digest::of_bytes(self.hash.clone().finalize().into());
                    self.check(hash == self.wheel.sha256, "the bytes do not hash to what was said")?;
                    self.is_end = true;
                }
            }
        }
        let length = self.size.min(self.held.len());
        Ok((length > 0).then(|| self.held.split_to(length).freeze()))
    }

    fn check(&self, is_so: bool, why: &'static str) -> Result<(), StoreError> {
        if is_so { Ok(()) } else { Err(error::corrupt(PUT, format!("{why} of {}", self.wheel.name))) }
    }
}

/// The pieces are not as they were sent: the same may go well later.
fn unordered() -> StoreError {
    StoreError::new(ErrorKind::Unavailable, PUT, "the pieces were not stored as they were sent")
}
