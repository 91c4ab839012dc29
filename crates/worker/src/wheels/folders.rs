//! The folder of wheels on the disk, which several workers may share and any of them may be killed in.
//!
//! ```text
//! sets/<key>/         an installed set; it comes as a whole, by a rename, and never changes
//! sets/<key>.lock     locked by everybody who uses the set; its time says when that was last
//! files/<sha256>.whl  a wheel as it was fetched
//! making/             what is not finished; whatever is found there when nobody makes anything is left over
//! making.lock         locked by everybody who makes something, and alone by whoever tidies up
//! ```

use std::collections::HashSet;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use pyoco_core::time::Timestamp;
use pyoco_core::wheels::UsedWheel;
use tempfile::TempDir;

use super::error::WheelError;
use super::sets::{self, WheelFolder};

/// So many sets stay that nobody uses: going back to one of them takes no installation.
const KEPT: usize = 3;

/// Where the wheels of a worker are.
#[derive(Debug, Clone)]
pub(super) struct Folders {
    dir: PathBuf,
}

/// Something in the making. Letting go of it removes it.
#[derive(Debug)]
pub(super) struct Making {
    folder: TempDir,
    /// Nobody tidies up as long as this is held.
    _lock: File,
}

impl Making {
    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn subfolder(&self, name: &str) -> Result<PathBuf, WheelError> {
        let path = self.folder.path().join(name);
        fs::create_dir(&path).map_err(WheelError::disk("cannot make the folder", &path))?;
        Ok(path)
    }
}

impl Folders {
    /// Opens the folder, and removes what was left over in it.
    pub(super) async fn open(dir: PathBuf) -> Result<Self, WheelError> {
        blocking(move || {
            let is_usable = dir.to_str().is_some_and(|text| !text.contains(':'));
            if !is_usable {
                // It becomes a part of PATH and PYTHONPATH.
                let source =
                    io::Error::new(io::ErrorKind::InvalidInput, "its name must be UTF-8 without ':'");
                return Err(WheelError::disk("cannot keep wheels in", &dir)(source));
            }
            for folder in ["sets", "files", "making"] {
                let path = dir.join(folder);
                let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
                made.map_err(WheelError::disk("cannot make the folder", &path))?;
            }
            let folders = Self { dir };
            folders.tidy_up();
            Ok(folders)
        })
        .await
    }

    fn sets(&self) -> PathBuf {
        self.dir.join("sets")
    }

    fn set(&self, key: &str) -> PathBuf {
        self.sets().join(key)
    }

    fn lock_of(&self, key: &str) -> PathBuf {
        self.sets().join(format!("{key}.lock"))
    }

    /// Where the file of a wheel is, if it is here.
    pub(super) fn file(&self, sha256: &str) -> PathBuf {
        self.dir.join("files").join(format!("{sha256}.whl"))
    }

    /// Where what is installed for the next run is written down.
    pub(super) fn manifest(&self) -> PathBuf {
        self.dir.join(".installed.json")
    }

    /// An installed set, held; nothing if it is not here.
    pub(super) async fn hold(&self, key: &str, now: Timestamp) -> Result<Option<WheelFolder>, WheelError> {
        let (folders, key) = (self.clone(), key.to_owned());
        blocking(move || {
            if !folders.set(&key).is_dir() {
                return Ok(None);
            }
            let lock = folders.use_lock(&key, now)?;
            // It may have been removed before it was locked.
            let path = folders.set(&key);
            Ok(path.is_dir().then(|| WheelFolder::new(path, lock)))
        })
        .await
    }

    fn use_lock(&self, key: &str, now: Timestamp) -> Result<File, WheelError> {
        let path = self.lock_of(key);
        let locked = lock_shared(&path).and_then(|file| file.set_modified(as_system(now)).map(|()| file));
        locked.map_err(WheelError::disk("cannot lock", &path))
    }

    /// A folder to make something in.
    pub(super) async fn begin(&self) -> Result<Making, WheelError> {
        let dir = self.dir.clone();
        blocking(move || {
            let (lock, making) = (dir.join("making.lock"), dir.join("making"));
            let lock = lock_shared(&lock).map_err(WheelError::disk("cannot lock", &lock))?;
            let folder = tempfile::Builder::new().prefix("one-").tempdir_in(&making);
            let folder = folder.map_err(WheelError::disk("cannot make a folder in", &making))?;
            Ok(Making { folder, _lock: lock })
        })
        .await
    }

    /// Puts a finished set where it is found, and holds it. Somebody else may have been faster; theirs is the same.
    pub(super) async fn keep(
        &self,
        making: Making,
        key: &str,
        used: Arc<[UsedWheel]>,
        now: Timestamp,
    ) -> Result<WheelFolder, WheelError> {
        let (folders, key) = (self.clone(), key.to_owned());
        blocking(move || {
            let (made, path) = (making.path().join("set"), folders.set(&key));
            let cannot = || WheelError::disk("cannot keep the wheels in", &path);
            sets::describe(&made, &used).map_err(cannot())?;
            sync_tree(&made).map_err(cannot())?;
            let lock = folders.use_lock(&key, now)?;
            match fs::rename(&made, &path) {
                Ok(()) => {}
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists
                    ) => {}
                Err(error) => return Err(cannot()(error)),
            }
            sync_folder(&folders.sets()).map_err(cannot())?;
            Ok(WheelFolder::new(path, lock))
        })
        .await
    }

    /// Puts a fetched wheel where it is found.
    pub(super) async fn keep_file(&self, fetched: PathBuf, sha256: &str) -> Result<PathBuf, WheelError> {
        let path = self.file(sha256);
        blocking(move || {
            let kept = fs::rename(&fetched, &path).and_then(|()| sync_folder(path.parent().unwrap_or(&path)));
            kept.map_err(WheelError::disk("cannot keep the wheel", &path))?;
            Ok(path)
        })
        .await
    }

    /// Removes what nobody needs: sets but the ones in use and the last few, files of no set, and what was left over. Does nothing
    /// while somebody makes something; there will be another time.
    pub(super) async fn tidy(&self) {
        let folders = self.clone();
        let _ = tokio::task::spawn_blocking(move || folders.tidy_up()).await;
    }

    fn tidy_up(&self) {
        let Ok(Some(_alone)) = try_lock_alone(&self.dir.join("making.lock")) else { return };
        if let Err(error) = self.remove_unused() {
            // Nothing depends on it but room on the disk.
            tracing::warn!(dir = %self.dir.display(), reason = %error, "old wheels could not be removed");
        }
    }

    fn remove_unused(&self) -> io::Result<()> {
        let making = self.dir.join("making");
        for left in fs::read_dir(&making)? {
            let path = left?.path();
            // One that cannot be removed keeps nobody from the others.
            if let Err(error) = remove(&path) {
                tracing::warn!(path = %path.display(), reason = %error, "what is left of an installation cannot be removed");
            }
        }
        let mut sets: Vec<(SystemTime, String)> = Vec::new();
        for entry in fs::read_dir(self.sets())? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let key = name.strip_suffix(".lock").unwrap_or(&name).to_owned();
            if sets.iter().any(|(_, known)| *known == key) {
                continue;
            }
            let used_at = fs::metadata(self.lock_of(&key)).and_then(|lock| lock.modified());
            sets.push((used_at.unwrap_or(SystemTime::UNIX_EPOCH), key));
        }
        sets.sort_by(|one, other| other.cmp(one));
        let mut unused = 0;
        let mut needed = HashSet::new();
        for (_, key) in sets {
            let path = self.set(&key);
            let Some(lock) = try_lock_alone(&self.lock_of(&key))? else {
                needed.extend(sets::files_of(&path));
                continue;
            };
            unused += usize::from(path.is_dir());
            if path.is_dir() && unused <= KEPT {
                needed.extend(sets::files_of(&path));
                continue;
            }
            // Out of sight in one step; a removal that is interrupted leaves nothing half there.
            let aside = making.join(&key);
            if path.is_dir() {
                fs::rename(&path, &aside)?;
            }
            fs::remove_file(self.lock_of(&key))?;
            drop(lock);
            remove(&aside)?;
        }
        for file in fs::read_dir(self.dir.join("files"))? {
            let path = file?.path();
            let is_needed =
                path.file_stem().and_then(|stem| stem.to_str()).is_some_and(|sha| needed.contains(sha));
            if !is_needed {
                remove(&path)?;
            }
        }
        Ok(())
    }
}

/// One more name for a file, or a copy where there can be none.
pub(super) async fn link(file: &Path, name: &Path) -> Result<(), WheelError> {
    let (file, name) = (file.to_owned(), name.to_owned());
    blocking(move || {
        let linked = fs::hard_link(&file, &name).or_else(|_| fs::copy(&file, &name).map(drop));
        linked.map_err(WheelError::disk("cannot use the wheel", &file))
    })
    .await
}

/// Runs something that waits for the disk where nobody else waits for it.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, WheelError> + Send + 'static,
) -> Result<T, WheelError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|stopped| {
        Err(WheelError::Install(format!("the work on wheels was stopped: {stopped}")))
    })
}

fn as_system(at: Timestamp) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_micros(u64::try_from(at.as_micros()).unwrap_or_default())
}

fn remove(path: &Path) -> io::Result<()> {
    let removed =
        if path.is_dir() && !path.is_symlink() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn open_lock(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

/// Whether a lock is still the one that others see: whoever removes a set removes its lock too.
fn is_seen(file: &File, path: &Path) -> io::Result<bool> {
    let held = file.metadata()?;
    match fs::metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (held.dev(), held.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Waits for whoever tidies up, which is a matter of a moment.
fn lock_shared(path: &Path) -> io::Result<File> {
    loop {
        let file = open_lock(path)?;
        file.lock_shared()?;
        if is_seen(&file, path)? {
            return Ok(file);
        }
    }
}

/// Nothing if somebody holds it.
fn try_lock_alone(path: &Path) -> io::Result<Option<File>> {
    loop {
        let file = open_lock(path)?;
        match file.try_lock() {
            Ok(()) if is_seen(&file, path)? => return Ok(Some(file)),
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Everything in a folder is on the disk before the folder is seen.
fn sync_tree(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            sync_tree(&entry.path())?;
        } else if kind.is_file() {
            File::open(entry.path())?.sync_all()?;
        }
    }
    sync_folder(folder)
}
