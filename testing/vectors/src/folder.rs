//! A folder of its own for each run: the task module, and what tasks save.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Broken;

/// A folder that is removed with its last owner.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Result<Self, Broken> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("pyoco-vectors-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        // Tasks report real paths, so ours must not lead through a link.
        let path = fs::canonicalize(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that cannot be removed is left to the system's own cleaning.
        drop(fs::remove_dir_all(&self.0));
    }
}
