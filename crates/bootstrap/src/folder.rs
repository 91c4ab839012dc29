//! The folder of a server: what stands where, written so that a crash leaves the old or the new, and readable by its owner only.

use std::fs::{File, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Where a server keeps its things.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder(PathBuf);

/// What a folder has been used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Past {
    /// Nothing.
    Empty,
    /// A server on its own, which has streams here.
    Alone,
    /// A server of a cluster.
    Clustered,
}

impl Folder {
    /// A folder, whether it is there or not. Servers are told where it is, so it is named from the root.
    pub fn new(path: &Path) -> io::Result<Self> {
        std::path::absolute(path).map(Self)
    }

    /// Itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The configuration.
    pub fn conf(&self) -> PathBuf {
        self.0.join("nats-bootstrap.conf")
    }

    /// The passwords.
    pub fn credentials(&self) -> PathBuf {
        self.0.join("credentials.env")
    }

    /// What JetStream stores; the server makes a folder `jetstream` in it.
    pub fn store(&self) -> PathBuf {
        self.0.join("store")
    }

    /// What a server has locked while it runs.
    pub fn lock(&self) -> PathBuf {
        self.0.join("nats-server.lock")
    }

    /// Whether a server runs in it, whoever started that.
    pub fn is_in_use(&self) -> io::Result<bool> {
        match File::open(self.lock()) {
            Ok(file) => match file.try_lock() {
                Ok(()) => Ok(false),
                Err(TryLockError::WouldBlock) => Ok(true),
                Err(TryLockError::Error(error)) => Err(error),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// What the server says, when it runs in the background.
    pub fn log(&self) -> PathBuf {
        self.0.join("nats-server.log")
    }

    /// Makes it, for its owner only, and looks whether something can be written there.
    pub fn make(&self) -> io::Result<()> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.0)?;
        tempfile::tempfile_in(&self.0).map(|_| ())
    }

    /// What it has been used for. A cluster does not see what a server on its own has stored, and the other way round.
    pub fn past(&self) -> Past {
        let accounts = || {
            let store = std::fs::read_dir(self.store().join("jetstream"));
            store.into_iter().flatten().flatten().map(|account| account.path())
        };
        // The system account has what the servers agree on, under whatever name.
        if accounts().any(|account| account.join("_js_").join("_meta_").exists()) {
            return Past::Clustered;
        }
        let mut streams =
            accounts().filter_map(|account| std::fs::read_dir(account.join("streams")).ok()).flatten();
        if streams.next().is_some() { Past::Alone } else { Past::Empty }
    }
}

/// Writes a file as a whole, for its owner only: whoever reads it finds the old or the new.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    let (file, folder) = unfinished(path, text)?;
    file.persist(path)?;
    File::open(folder)?.sync_all()
}

/// The same, where there is none yet.
pub fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let (file, folder) = unfinished(path, text)?;
    file.persist_noclobber(path)?;
    File::open(folder)?.sync_all()
}

fn unfinished(path: &Path, text: &str) -> io::Result<(tempfile::NamedTempFile, PathBuf)> {
    let folder =
        path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let mode = std::fs::Permissions::from_mode(0o600);
    let mut file =
        tempfile::Builder::new().prefix(".nats-bootstrap-").permissions(mode).tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    Ok((file, folder.to_owned()))
}

/// How much room there is where a folder is or would be, in bytes.
pub fn room(folder: &Path) -> Option<u64> {
    let there = folder.ancestors().find(|folder| folder.exists())?;
    let stat = rustix::fs::statvfs(there).ok()?;
    stat.f_bavail.checked_mul(stat.f_frsize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_whole_and_for_its_owner() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a");
        write_new(&path, "one").unwrap();
        assert_eq!(write_new(&path, "two").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one");
        write(&path, "two").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 1);
    }

    #[test]
    fn the_past_of_a_folder_is_seen() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::new(home.path()).unwrap();
        assert_eq!(folder.past(), Past::Empty);
        let store = folder.store().join("jetstream");
        std::fs::create_dir_all(store.join("PYOCO/streams/S")).unwrap();
        assert_eq!(folder.past(), Past::Alone);
        std::fs::create_dir_all(store.join("SYS/_js_/_meta_")).unwrap();
        assert_eq!(folder.past(), Past::Clustered);
    }
}
