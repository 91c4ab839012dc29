//! Where a wheel is while it is uploaded: a file without a name, which vanishes with whoever holds it, also when the process is killed.
//!
//! One thread writes it and one reads it, from the first piece to the last: threads that took turns would each keep memory for pieces.

use std::fs::File;
use std::io::{self, ErrorKind as IoKind, Read as _, Seek as _, Write as _};
use std::path::Path;

use async_trait::async_trait;
use axum::body::Bytes;
use axum::http::StatusCode;
use pyoco_core::notice::Notice;
use pyoco_ports::{ErrorKind, StoreError, WheelBytes};
use pyoco_wheels::Sha256Digest;
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::error::Refusal;

/// So much of it is read at once.
const PIECE: u64 = 64 << 10;
/// So many pieces may wait for a thread.
const WAITING: usize = 4;

/// A wheel that is being written.
pub(super) struct Landing {
    pieces: mpsc::Sender<Bytes>,
    written: JoinHandle<io::Result<Landed>>,
}

/// A wheel that has been written.
pub(super) struct Landed {
    pub(super) file: File,
    pub(super) size: u64,
    pub(super) sha256: Sha256Digest,
}

impl Landing {
    pub(super) fn open(folder: &Path) -> Self {
        let folder = folder.to_owned();
        let (pieces, coming) = mpsc::channel(WAITING);
        Self { pieces, written: tokio::task::spawn_blocking(move || land(&folder, coming)) }
    }

    pub(super) async fn write(&mut self, piece: Bytes) -> Result<(), Refusal> {
        if self.pieces.send(piece).await.is_ok() {
            return Ok(());
        }
        // Nobody writes any more: that has a reason.
        match said(&mut self.written).await {
            Ok(_) => Err(unwritten(&IoKind::BrokenPipe.into())),
            Err(error) => Err(unwritten(&error)),
        }
    }

    pub(super) async fn end(self) -> Result<Landed, Refusal> {
        let Self { pieces, mut written } = self;
        drop(pieces);
        said(&mut written).await.map_err(|error| unwritten(&error))
    }
}

async fn said(written: &mut JoinHandle<io::Result<Landed>>) -> io::Result<Landed> {
    written.await.map_err(io::Error::from)?
}

/// Writes what comes, until nothing more does.
fn land(folder: &Path, mut coming: mpsc::Receiver<Bytes>) -> io::Result<Landed> {
    let mut file = tempfile::tempfile_in(folder)?;
    let (mut hash, mut size) = (Sha256::new(), 0);
    while let Some(piece) = coming.blocking_recv() {
        hash.update(&piece);
        size += piece.len() as u64;
        file.write_all(&piece)?;
    }
    Ok(Landed { file, size, sha256: Sha256Digest::of_bytes(hash.finalize().into()) })
}

/// 507 when there is no room, 500 when something else is wrong with the folder.
fn unwritten(error: &io::Error) -> Refusal {
    let is_full = matches!(error.kind(), IoKind::StorageFull | IoKind::QuotaExceeded | IoKind::FileTooLarge);
    let reason = format!("a wheel could not be written to the temporary folder: {error}");
    if is_full {
        let refusal = Refusal::new(StatusCode::INSUFFICIENT_STORAGE, "there is no room for the wheel now");
        return refusal.noticed(Notice::StoreUnavailable).because(reason).for_now();
    }
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "the wheel could not be kept").because(reason)
}

/// What has been written, from its beginning, for the store.
pub(super) struct Taking(mpsc::Receiver<io::Result<Vec<u8>>>);

impl Taking {
    pub(super) fn from(mut file: File) -> Self {
        let (pieces, coming) = mpsc::channel(1);
        tokio::task::spawn_blocking(move || {
            let mut next = file.rewind().and_then(|()| piece(&mut file)).transpose();
            while let Some(piece_or_error) = next {
                let is_last = piece_or_error.is_err();
                // Whoever does not want it has gone.
                if pieces.blocking_send(piece_or_error).is_err() || is_last {
                    return;
                }
                next = piece(&mut file).transpose();
            }
        });
        Self(coming)
    }
}

/// The next piece; nothing at the end.
fn piece(file: &mut File) -> io::Result<Option<Vec<u8>>> {
    let mut piece = Vec::with_capacity(usize::try_from(PIECE).unwrap_or_default());
    file.take(PIECE).read_to_end(&mut piece)?;
    Ok(Some(piece).filter(|piece| !piece.is_empty()))
}

#[async_trait]
impl WheelBytes for Taking {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        let unread = |error| StoreError::new(ErrorKind::Internal, "read an upload", error);
        self.0.recv().await.transpose().map_err(unread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_written_can_be_taken_piece_by_piece_and_leaves_no_name() {
        let folder = tempfile::tempdir().unwrap();
        let mut landing = Landing::open(folder.path());
        let content: Vec<u8> = (0..300_000_u32).map(|number| number.to_le_bytes()[0]).collect();
        for piece in content.chunks(70_000) {
            landing.write(Bytes::copy_from_slice(piece)).await.unwrap();
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "it has no name");
        let landed = landing.end().await.unwrap();
        assert_eq!(landed.size, 300_000);
        assert_eq!(landed.sha256, Sha256Digest::of_bytes(Sha256::digest(&content).into()));
        let mut taking = Taking::from(landed.file);
        let mut taken = Vec::new();
        while let Some(piece) = taking.next().await.unwrap() {
            assert!(piece.len() as u64 <= PIECE);
            taken.extend(piece);
        }
        assert_eq!(taken, content);
    }

    #[tokio::test]
    async fn a_folder_that_is_full_is_told_from_one_that_is_not_there() {
        let full = std::io::Error::from(IoKind::StorageFull);
        assert_eq!(unwritten(&full).status(), StatusCode::INSUFFICIENT_STORAGE);
        let folder = tempfile::tempdir().unwrap();
        let none = folder.path().join("none");
        let missing = Landing::open(&none).end().await.err().unwrap();
        assert_eq!(missing.status(), StatusCode::INTERNAL_SERVER_ERROR);
        // Or at the latest when so much has come that somebody has to have taken it.
        let mut landing = Landing::open(&none);
        let refused = loop {
            match landing.write(Bytes::from_static(b"x")).await {
                Ok(()) => tokio::task::yield_now().await,
                Err(refusal) => break refusal,
            }
        };
        assert_eq!(refused.status(), StatusCode::INTERNAL_SERVER_ERROR);
    }
}
