//! The bytes of a wheel, a few pieces at a time, with requests and without a consumer: nothing stays behind when whoever reads goes away.

use std::collections::VecDeque;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use pyoco_ports::{ErrorKind, StoreError, WheelBytes, WheelRecord};
use pyoco_wheels::Sha256Digest;
use sha2::{Digest as _, Sha256};

use super::{READ, Shelf};
use crate::error;
use crate::stream::Most;

/// What one request may bring: some pieces of the usual size, or one of any size.
const PAGE: Most = Most { messages: 8, bytes: 1 << 20 };

pub(super) async fn read(
    shelf: &Arc<Shelf>,
    wheel: &WheelRecord,
    from: u64,
) -> Result<Option<Box<dyn WheelBytes>>, StoreError> {
    if !is_there(shelf, wheel).await? {
        return Ok(None);
    }
    Ok(Some(Box::new(Pieces {
        shelf: Arc::clone(shelf),
        subject: shelf.settings.wheel_chunks(&wheel.nuid),
        wheel: wheel.clone(),
        skip: from,
        seen: 0,
        hash: Sha256::new(),
        next: 1,
        held: VecDeque::new(),
    })))
}

/// Whether this very upload is on the shelf.
async fn is_there(shelf: &Shelf, wheel: &WheelRecord) -> Result<bool, StoreError> {
    Ok(shelf.wheel(READ, &wheel.name).await?.is_some_and(|there| there.nuid == wheel.nuid))
}

/// Reads from the first piece on whatever is wanted: nobody knows where in the stream the others are. So also the end of a wheel is
/// handed out only if all of it is right.
struct Pieces {
    shelf: Arc<Shelf>,
    subject: String,
    wheel: WheelRecord,
    /// So many bytes from the beginning are not wanted.
    skip: u64,
    /// So many bytes were seen.
    seen: u64,
    hash: Sha256,
    /// Where to look for the next piece.
    next: u64,
    held: VecDeque<Bytes>,
}

#[async_trait]
impl WheelBytes for Pieces {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        if self.skip >= self.wheel.size_bytes {
            return Ok(None);
        }
        while self.seen < self.wheel.size_bytes {
            let Some(piece) = self.held.pop_front() else {
                self.fetch().await?;
                continue;
            };
            let before = self.seen;
            self.seen = before.saturating_add(u64::try_from(piece.len()).unwrap_or(u64::MAX));
            self.hash.update(&piece);
            self.check()?;
            let unwanted = usize::try_from(self.skip.saturating_sub(before)).unwrap_or(usize::MAX);
            match piece.get(unwanted..) {
                Some(wanted) if !wanted.is_empty() => return Ok(Some(wanted.to_vec())),
                Some(_) | None => {}
            }
        }
        Ok(None)
    }
}

impl Pieces {
    async fn fetch(&mut self) -> Result<(), StoreError> {
        let Shelf { connection, stream, is_direct, .. } = self.shelf.as_ref();
        let page = connection.page(READ, stream, &self.subject, self.next, PAGE, *is_direct).await;
        let page = match page {
            Err(error) if error::is_missing(&error) => Vec::new(),
            page => page?,
        };
        let Some(last) = page.last() else { return Err(self.missing().await) };
        self.next = last.sequence.saturating_add(1);
        self.held.extend(page.into_iter().map(|message| message.payload));
        Ok(())
    }

    /// At the end all must be right, before the last piece is given away.
    fn check(&self) -> Result<(), StoreError> {
        let size = self.wheel.size_bytes;
        let is_right = match self.seen.cmp(&size) {
            std::cmp::Ordering::Less => true,
            std::cmp::Ordering::Equal => {
                Sha256Digest::of_bytes(self.hash.clone().finalize().into()) == self.wheel.sha256
            }
            std::cmp::Ordering::Greater => false,
        };
        if is_right {
            return Ok(());
        }
        Err(error::corrupt(
            READ,
            format!("the bytes of {} are not those it is described with", self.wheel.name),
        ))
    }

    /// There is no further piece. Whoever deletes a wheel says so before its pieces go.
    async fn missing(&self) -> StoreError {
        let name = &self.wheel.name;
        match is_there(&self.shelf, &self.wheel).await {
            Ok(true) => error::corrupt(READ, format!("pieces of {name} are missing")),
            Ok(false) => {
                StoreError::new(ErrorKind::Unavailable, READ, format!("{name} was deleted while it was read"))
            }
            Err(error) => error,
        }
    }
}
