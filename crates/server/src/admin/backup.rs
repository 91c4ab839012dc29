//! A backup: a folder, or one tar file, with copies of everything and a list of them. It has its name when it is whole and on the
//! disk, and not before: whoever finds one can use it.

use std::fs::File;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use pyoco_core::time::Timestamp;
use pyoco_engine::Clock as _;
use pyoco_store_nats::backup as streams;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::desk::Desk;
use super::manifest::{self, Entry, Kind, Manifest};
use super::order::AdminError;
use crate::storage::{self, Storage};
use crate::{Config, SystemClock};

/// What the folder is called until it is whole, in front of what makes it unique.
const UNFINISHED: &str = ".pyoco-backup-";

/// Copies the store of this process.
pub(super) async fn make(desk: &Desk, path: &Path) -> Result<Value, AdminError> {
    let Storage::Embedded(store) = &desk.storage else { return make_of_nats(&desk.config, path).await };
    let Ok(_alone) = desk.backing_up.try_lock() else {
        let why = "another backup is being made; order it again when that one is there";
        return Err(AdminError::Refused(why.to_owned()));
    };
    let place = Place::new(path)?;
    let (began, stopping) = (SystemClock.now(), desk.stopping.clone());
    // What tasks have said until now is in the copy.
    desk.engine.lines().flush().await;
    let copied = store.back_up(place.folder(), move || stopping.is_cancelled()).await?;
    place
        .finish(Kind::Embedded, began, move |folder| {
            copied.into_iter().map(|file| Entry::of_file(folder, file.name, file.schema)).collect()
        })
        .await
}

/// Copies what stands in NATS. Nothing there is changed, and nothing is made.
pub(super) async fn make_of_nats(config: &Config, path: &Path) -> Result<Value, AdminError> {
    let place = Place::new(path)?;
    let began = SystemClock.now();
    let settings = storage::nats_settings(config, &storage::Role::Admin);
    let copied = streams::back_up(&settings, place.folder())
        .await
        .map_err(|error| AdminError::Failed(error.to_string()))?;
    place
        .finish(Kind::Nats, began, move |folder| {
            copied.into_iter().map(|stream| Entry::of_stream(folder, stream)).collect()
        })
        .await
}

/// Where a backup is to stand, and a folder beside it where it is made. The folder goes when it is not finished.
struct Place {
    target: PathBuf,
    parent: PathBuf,
    folder: TempDir,
}

impl Place {
    fn new(target: &Path) -> Result<Self, AdminError> {
        if target.symlink_metadata().is_ok() {
            let why = format!("{} exists already, and nothing that exists is written over", target.display());
            return Err(AdminError::Refused(why));
        }
        let parent = target.parent().filter(|parent| target.is_absolute() && parent.is_dir());
        let Some(parent) = parent else {
            let why = format!("{} cannot be made: there is no such folder to make it in", target.display());
            return Err(AdminError::Refused(why));
        };
        let folder = private_folder(UNFINISHED, parent).map_err(|error| failed(parent, &error))?;
        Ok(Self { target: target.to_owned(), parent: parent.to_owned(), folder })
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Lists what is there, puts all of it on the disk, and only then gives it its name.
    async fn finish(
        self,
        store: Kind,
        began: Timestamp,
        entries: impl FnOnce(&Path) -> io::Result<Vec<Entry>> + Send + 'static,
    ) -> Result<Value, AdminError> {
        let target = self.target.clone();
        let finished = tokio::task::spawn_blocking(move || {
            let manifest = Manifest::new(store, began, entries(self.folder())?);
            manifest.write(self.folder())?;
            File::open(self.folder())?.sync_all()?;
            if self.target.extension().is_some_and(|extension| extension == "tar") {
                self.pack(&manifest)?;
            } else {
                std::fs::rename(self.folder(), &self.target)?;
                // It has another name now: nothing is left to go.
                let _ = self.folder.keep();
            }
            File::open(&self.parent)?.sync_all()?;
            Ok::<_, io::Error>(manifest)
        });
        let finished = finished.await.map_err(|error| failed(&target, &error))?;
        let manifest = finished.map_err(|error| failed(&target, &error))?;
        tracing::info!(path = %target.display(), bytes = manifest.bytes(), "a backup was made");
        let shown = |entry: &Entry| json!({"name": entry.name, "bytes": entry.bytes, "sha256": entry.sha256});
        Ok(json!({
            "path": target,
            "store": store.as_str(),
            "created_at": manifest.created_at.as_unix_seconds(),
            "bytes": manifest.bytes(),
            "files": manifest.files.iter().map(shown).collect::<Vec<_>>(),
        }))
    }

    /// Everything in one file. The list comes first, so that whoever looks into it need not read all of it.
    fn pack(&self, manifest: &Manifest) -> io::Result<()> {
        // Only its owner may read it, as the system makes such files.
        let file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(&self.parent)?;
        let mut archive = tar::Builder::new(io::BufWriter::new(file.as_file()));
        let names = manifest.files.iter().map(|entry| entry.name.as_str());
        for name in std::iter::once(manifest::NAME).chain(names) {
            let mut content = File::open(self.folder().join(name))?;
            let mut header = tar::Header::new_gnu();
            header.set_size(content.metadata()?.len());
            header.set_mode(0o600);
            header.set_mtime(u64::try_from(manifest.created_at.as_micros() / 1_000_000).unwrap_or(0));
            archive.append_data(&mut header, name, &mut content)?;
        }
        archive.into_inner()?.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        file.persist_noclobber(&self.target).map_err(|refused| refused.error)?;
        Ok(())
    }
}

/// A folder that only its owner may enter, and that goes unless it is kept.
pub(super) fn private_folder(prefix: &str, parent: &Path) -> io::Result<TempDir> {
    let mode = std::fs::Permissions::from_mode(0o700);
    tempfile::Builder::new().prefix(prefix).permissions(mode).tempdir_in(parent)
}

fn failed(path: &Path, why: &dyn std::fmt::Display) -> AdminError {
    AdminError::Failed(format!("{}: {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use pyoco_figures::Figures;

    use super::*;
    use crate::storage::Role;

    #[tokio::test]
    async fn a_second_backup_is_refused_while_one_is_made() {
        let home = tempfile::tempdir().unwrap();
        let config = Config { data_dir: home.path().join("data"), ..Config::default() };
        let storage = Storage::open(&config, &Role::Admin, &Figures::default()).await.unwrap();
        let desk = Desk::alone(&config, storage.clone());
        let target = home.path().join("monday");
        // A clone is at the same desk.
        let other = desk.clone();
        let first = other.backing_up.lock().await;
        let refused = make(&desk, &target).await.unwrap_err();
        assert!(matches!(&refused, AdminError::Refused(why) if why.contains("another backup")), "{refused}");
        assert!(!target.exists());
        drop(first);
        make(&desk, &target).await.unwrap();
        assert!(target.join("pyoco.db").exists());
        storage.close().await.unwrap();
    }
}
