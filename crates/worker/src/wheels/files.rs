//! Wheels as they were fetched, by their hash. A file is believed only when its bytes were hashed just now.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use pyoco_ports::{ErrorKind, StoreError};
use pyoco_wheels::{PinnedWheel, Sha256Digest};
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncWriteExt as _;

use super::Wheelhouse;
use super::error::WheelError;
use super::folders::{Folders, Making, blocking};

impl Wheelhouse {
    /// The file of a wheel: the one that is here if it is sound, else fetched.
    pub(super) async fn file_of(
        &self,
        folders: &Folders,
        making: &Making,
        wheel: &PinnedWheel,
    ) -> Result<PathBuf, WheelError> {
        let (path, wanted) = (folders.file(wheel.sha256.as_str()), wheel.sha256.clone());
        let known = path.clone();
        let is_sound = blocking(move || {
            Ok(match hash(&known) {
                Ok(found) => found == wanted,
                Err(error) if error.kind() == io::ErrorKind::NotFound => false,
                Err(error) => return Err(WheelError::disk("cannot read the wheel", &known)(error)),
            })
        });
        if is_sound.await? {
            return Ok(path);
        }
        if path.exists() {
            tracing::warn!(wheel_name = %wheel.name, path = %path.display(), "the file of a wheel is damaged and is fetched again");
        }
        self.fetch(folders, making, wheel).await
    }

    async fn fetch(
        &self,
        folders: &Folders,
        making: &Making,
        wheel: &PinnedWheel,
    ) -> Result<PathBuf, WheelError> {
        let gone = || WheelError::Gone(format!("{} (sha256 {})", wheel.name, wheel.sha256));
        let of_store = |error: StoreError| match error.kind {
            ErrorKind::Corrupt => WheelError::Damaged(wheel.name.to_string()),
            ErrorKind::Unavailable
            | ErrorKind::Timeout
            | ErrorKind::Full
            | ErrorKind::Closed
            | ErrorKind::TooLarge
            | ErrorKind::Internal => WheelError::Store(error),
        };
        let record = self.store.wheel(&wheel.name).await.map_err(of_store)?;
        // The same name with other bytes is another wheel.
        let record = record.filter(|record| record.sha256 == wheel.sha256).ok_or_else(gone)?;
        let mut bytes = self.store.read_wheel(&record, 0).await.map_err(of_store)?.ok_or_else(gone)?;
        let fetched = making.path().join(format!("{}.whl", wheel.sha256));
        let cannot = || WheelError::disk("cannot write the wheel", &fetched);
        let mut file = tokio::fs::File::create_new(&fetched).await.map_err(cannot())?;
        let mut hash = Sha256::new();
        while let Some(piece) = bytes.next().await.map_err(of_store)? {
            hash.update(&piece);
            file.write_all(&piece).await.map_err(cannot())?;
        }
        file.flush().await.map_err(cannot())?;
        file.sync_all().await.map_err(cannot())?;
        if Sha256Digest::of_bytes(hash.finalize().into()) != wheel.sha256 {
            return Err(WheelError::Damaged(wheel.name.to_string()));
        }
        folders.keep_file(fetched, wheel.sha256.as_str()).await
    }
}

fn hash(path: &Path) -> io::Result<Sha256Digest> {
    let (mut file, mut hash) = (File::open(path)?, Sha256::new());
    let mut piece = vec![0; 256 * 1024];
    loop {
        let size = file.read(&mut piece)?;
        if size == 0 {
            return Ok(Sha256Digest::of_bytes(hash.finalize().into()));
        }
        hash.update(piece.get(..size).unwrap_or_default());
    }
}
