//! A store that nobody opens again: an index that is filled from elsewhere, in a folder of its own that goes with it.
//! Nothing in it is waited for until it is on the disk.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyoco_figures::Figures;

use crate::database::Around;
use crate::database::Settings;
use crate::open::{self, Check, OpenError};
use crate::queue::SharedLines;
use crate::wheels::Shelf;
use crate::{SqliteStore, aside, connection, schema, store};

/// What such folders are called. A folder gets this name when it is locked, so whoever can lock one of that name knows that
/// its owner is gone.
const NAME: &str = "pyoco-index-";
/// Until then.
const NEW: &str = ".pyoco-new-";

impl SqliteStore {
    /// An empty store in a new folder below `parent`, for an index that can be made again. The folder is removed with the
    /// last clone; those of processes that were killed are removed here. Blocks.
    pub fn scratch(parent: &Path) -> Result<Self, OpenError> {
        open::good_sqlite()?;
        remove_left(parent);
        let refused = |error: io::Error| open::io_error(parent, error);
        let new = tempfile::Builder::new().prefix(NEW).tempdir_in(parent).map_err(refused)?;
        let lock = open::lock(new.path())?;
        let unique = new.path().file_name().and_then(|name| name.to_str()?.strip_prefix(NEW));
        let folder = parent.join(format!("{NAME}{}", unique.unwrap_or_default()));
        std::fs::rename(new.path(), &folder).map_err(refused)?;
        // From here on it is removed under its new name.
        let _ = new.keep();
        let own = OwnFolder(folder);
        let (file, writer) = open::open_file(&own.0, &schema::MAIN, Check::Never)?;
        connection::without_disk(&writer).map_err(|error| open::sql_error(&file, error))?;
        let lines = SharedLines::default();
        let alone = || Around { mark: None, figures: Figures::default(), follower: None };
        let around = Around { follower: Some(Arc::new(lines.clone())), ..alone() };
        let main = open::start(&file, writer, store::SCRATCH, around)?;
        let (file, writer) = aside::open_logs(&own.0, Check::Never)?;
        let settings = Settings { syncs: false, ..store::LOGS };
        let logs = open::start(&file, writer, settings, alone())?;
        let shelf = Shelf::new(&own.0, open::WHEEL_HISTORY_TTL);
        Ok(Self::new(main, lines, logs, lock, shelf, Some(own)))
    }
}

/// A folder that is removed with its store.
pub(crate) struct OwnFolder(PathBuf);

impl Drop for OwnFolder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!(folder = %self.0.display(), %error, "a folder that is not needed any more could not be removed");
        }
    }
}

/// Removes the folders of processes that did not live to do it. What cannot be removed is somebody else's.
fn remove_left(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(NAME));
        // Only what has the lock of a store in it, and is a folder itself and no way to another.
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !is_ours || !is_folder || !entry.path().join(open::LOCK).is_file() {
            continue;
        }
        if let Ok(lock) = open::lock(&entry.path()) {
            let _ = std::fs::remove_dir_all(entry.path());
            drop(lock);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders(parent: &Path) -> Vec<String> {
        let names = std::fs::read_dir(parent).unwrap().map(|entry| entry.unwrap().file_name());
        names.map(|name| name.into_string().unwrap()).collect()
    }

    #[test]
    fn a_scratch_folder_goes_with_its_store() {
        let parent = tempfile::tempdir().unwrap();
        let (one, other) =
            (SqliteStore::scratch(parent.path()).unwrap(), SqliteStore::scratch(parent.path()).unwrap());
        assert_eq!(folders(parent.path()).len(), 2, "the second does not take the first for a left one");
        drop(one.clone());
        assert_eq!(folders(parent.path()).len(), 2);
        drop(one);
        assert_eq!(folders(parent.path()).len(), 1);
        drop(other);
        assert_eq!(folders(parent.path()), Vec::<String>::new());
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_nothing_else() {
        let parent = tempfile::tempdir().unwrap();
        let left = parent.path().join(format!("{NAME}left"));
        std::fs::create_dir(&left).unwrap();
        std::fs::write(left.join(open::LOCK), b"").unwrap();
        std::fs::write(left.join("pyoco.db"), b"rows").unwrap();
        let bystander = parent.path().join(format!("{NAME}of-somebody"));
        std::fs::create_dir(&bystander).unwrap();
        std::fs::write(bystander.join("notes"), b"mine").unwrap();
        let store = SqliteStore::scratch(parent.path()).unwrap();
        assert!(!left.exists());
        assert!(bystander.join("notes").exists());
        drop(store);
    }
}
