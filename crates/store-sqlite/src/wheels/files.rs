//! The bytes of wheels: a folder with a file for each hash. A file has its name when it is whole and on the disk; until then it
//! has another, and goes unless it gets there. Everything that touches the disk runs where it may block.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use pyoco_ports::{ErrorKind, StoreError, WheelBytes, WheelRecord};
use pyoco_wheels::Sha256Digest;
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

use crate::{error, open};

/// What the folder is called in that of a store. Not `wheels`: a worker beside it may install its own there.
pub(crate) const FOLDER: &str = "wheel-files";
/// What a file is called until it is whole, in front of what makes it unique.
const UNFINISHED: &str = ".upload-";
/// So much of a file is read at a time. Any thread may read the next piece, and the allocator keeps memory for larger ones in each.
const PIECE: u64 = 64 * 1024;

pub(super) const PUT: &str = "put a wheel";
const READ: &str = "read a wheel";
const SWEEP: &str = "remove files of wheels";
const COPY: &str = "copy the files of wheels";

/// A file that is being written.
pub(super) struct Writing {
    folder: PathBuf,
    file: NamedTempFile,
    hash: Sha256,
    bytes: u64,
}

impl Writing {
    pub(super) async fn begin(folder: Arc<Path>) -> Result<Self, StoreError> {
        blocking(PUT, move || {
            let refused = |error: io::Error| error::io(PUT, &folder, &error);
            make_folder(&folder).map_err(refused)?;
            let file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(&folder).map_err(refused)?;
            Ok(Self { folder: folder.to_path_buf(), file, hash: Sha256::new(), bytes: 0 })
        })
        .await
    }

    pub(super) async fn add(mut self, bytes: Vec<u8>) -> Result<Self, StoreError> {
        blocking(PUT, move || {
            let written = self.file.as_file_mut().write_all(&bytes);
            written.map_err(|error| error::io(PUT, self.file.path(), &error))?;
            self.hash.update(&bytes);
            self.bytes = self.bytes.saturating_add(bytes.len() as u64);
            Ok(self)
        })
        .await
    }

    /// Nothing more comes: it is what was announced and on the disk, or nothing.
    pub(super) async fn finish(self, size: u64, sha256: &Sha256Digest) -> Result<Self, StoreError> {
        if self.bytes != size {
            return Err(not_announced(format!("{} bytes came of {size} that were announced", self.bytes)));
        }
        let came = Sha256Digest::of_bytes(self.hash.clone().finalize().into());
        if came != *sha256 {
            return Err(not_announced(format!("what came hashes to {came}, and {sha256} was announced")));
        }
        blocking(PUT, move || {
            let synced = self.file.as_file().sync_all();
            synced.map_err(|error| error::io(PUT, self.file.path(), &error))?;
            Ok(self)
        })
        .await
    }

    /// Gives it its name. One that has it already holds the same bytes.
    pub(super) async fn place(self, sha256: &Sha256Digest) -> Result<(), StoreError> {
        let path = path_in(&self.folder, sha256.as_str());
        blocking(PUT, move || {
            self.file.persist(&path).map_err(|refused| error::io(PUT, &path, &refused.error))?;
            open::keep_names(&self.folder).map_err(|error| error::io(PUT, &self.folder, &error))
        })
        .await
    }
}

/// A file that is being read.
pub(super) struct Reading(Option<Open>);

struct Open {
    file: File,
    path: PathBuf,
    at: u64,
    size: u64,
    /// Of what was read, if that is all there is.
    hash: Option<Sha256>,
    sha256: Sha256Digest,
}

impl Reading {
    pub(super) async fn open(folder: &Path, wheel: &WheelRecord, from: u64) -> Result<Self, StoreError> {
        let path = path_in(folder, wheel.sha256.as_str());
        let (size, sha256) = (wheel.size_bytes, wheel.sha256.clone());
        blocking(READ, move || {
            let refused = |error: io::Error| {
                if error.kind() == io::ErrorKind::NotFound {
                    return damaged(&path, "it is not there");
                }
                error::io(READ, &path, &error)
            };
            let mut file = File::open(&path).map_err(refused)?;
            let length = file.metadata().map_err(refused)?.len();
            if length != size {
                return Err(damaged(&path, &format!("it has {length} bytes and should have {size}")));
            }
            file.seek(SeekFrom::Start(from.min(size))).map_err(refused)?;
            let hash = (from == 0).then(Sha256::new);
            Ok(Self(Some(Open { file, path, at: from.min(size), size, hash, sha256 })))
        })
        .await
    }
}

#[async_trait]
impl WheelBytes for Reading {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        // After an error, or a call that was given up, nobody knows where it stands.
        let Some(mut open) = self.0.take() else {
            return Err(StoreError::new(ErrorKind::Internal, READ, "it was given up before"));
        };
        let (open, piece) = blocking(READ, move || {
            let piece = open.piece()?;
            Ok((open, piece))
        })
        .await?;
        self.0 = Some(open);
        Ok(Some(piece).filter(|piece| !piece.is_empty()))
    }
}

impl Open {
    /// The next piece; an empty one at the end. The last one only if all of it is what it was.
    fn piece(&mut self) -> Result<Vec<u8>, StoreError> {
        let wanted = PIECE.min(self.size.saturating_sub(self.at));
        // At once as long as it will be: a vector that grows leaves pieces of every length behind.
        let mut piece = Vec::with_capacity(usize::try_from(wanted).unwrap_or_default());
        let read = (&mut self.file).take(wanted).read_to_end(&mut piece);
        read.map_err(|error| error::io(READ, &self.path, &error))?;
        if piece.len() as u64 != wanted {
            return Err(damaged(&self.path, "it ends early"));
        }
        self.at = self.at.saturating_add(wanted);
        if let Some(hash) = &mut self.hash {
            hash.update(&piece);
            if self.at == self.size && Sha256Digest::of_bytes(hash.clone().finalize().into()) != self.sha256 {
                return Err(damaged(&self.path, "it does not hash to its name"));
            }
        }
        Ok(piece)
    }
}

/// Removes the files that no row names. Uploads may be under way: what is not whole yet stays.
pub(super) async fn sweep(folder: Arc<Path>, named: HashSet<String>) -> Result<(), StoreError> {
    blocking(SWEEP, move || {
        remove(&folder, |name| hash_of(name).is_some_and(|hash| !named.contains(hash)))
            .map(drop)
            .map_err(|error| error::io(SWEEP, &folder, &error))
    })
    .await
}

/// What an earlier process left, before anybody uses the store: files that no row names, and those that are not whole. Says how many
/// files are missing that a row names. Blocks.
pub(crate) fn sweep_at_start(store: &Path, named: &HashSet<String>) -> io::Result<usize> {
    let is_left =
        |name: &str| name.starts_with(UNFINISHED) || hash_of(name).is_some_and(|hash| !named.contains(hash));
    let there = remove(&store.join(FOLDER), is_left)?;
    Ok(named.iter().filter(|hash| !there.contains(hash.as_str())).count())
}

/// Removes what is to go, and gives the hashes of the files that stay.
fn remove(folder: &Path, is_to_go: impl Fn(&str) -> bool) -> io::Result<HashSet<String>> {
    let mut stay = HashSet::new();
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(stay),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        // Whatever has another name is not ours.
        let Ok(name) = entry.file_name().into_string() else { continue };
        if is_to_go(&name) {
            match std::fs::remove_file(entry.path()) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        } else if let Some(hash) = hash_of(&name) {
            stay.insert(hash.to_owned());
        }
    }
    Ok(stay)
}

/// Copies files into the folder of a backup, on the disk, and looks whether they are whole. Gives their names there.
pub(crate) async fn copy(
    from: Arc<Path>,
    to: PathBuf,
    named: HashSet<String>,
    is_over: impl Fn() -> bool + Send + 'static,
) -> Result<Vec<String>, StoreError> {
    blocking(COPY, move || {
        let mut hashes: Vec<String> = named.into_iter().collect();
        if hashes.is_empty() {
            return Ok(Vec::new());
        }
        hashes.sort_unstable();
        let folder = to.join(FOLDER);
        make_folder(&folder).map_err(|error| error::io(COPY, &folder, &error))?;
        for hash in &hashes {
            let (source, target) = (path_in(&from, hash), path_in(&folder, hash));
            copy_one(&source, &target, hash, &is_over)?;
        }
        open::keep_names(&folder).map_err(|error| error::io(COPY, &folder, &error))?;
        Ok(hashes.iter().map(|hash| format!("{FOLDER}/{hash}{END}")).collect())
    })
    .await
}

fn copy_one(from: &Path, to: &Path, hash: &str, is_over: &impl Fn() -> bool) -> Result<(), StoreError> {
    let mut source = match File::open(from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(damaged(from, "it is not there"));
        }
        source => source.map_err(|error| error::io(COPY, from, &error))?,
    };
    let target = open::private(OpenOptions::new().write(true).create_new(true)).open(to);
    let mut target = target.map_err(|error| error::io(COPY, to, &error))?;
    let (mut hasher, mut piece) = (Sha256::new(), Vec::new());
    loop {
        if is_over() {
            let why = "the process that makes it is about to end";
            return Err(StoreError::new(ErrorKind::Unavailable, COPY, why));
        }
        piece.clear();
        let read = (&mut source).take(PIECE).read_to_end(&mut piece);
        if read.map_err(|error| error::io(COPY, from, &error))? == 0 {
            break;
        }
        hasher.update(&piece);
        target.write_all(&piece).map_err(|error| error::io(COPY, to, &error))?;
    }
    if Sha256Digest::of_bytes(hasher.finalize().into()).as_str() != hash {
        return Err(damaged(from, "it does not hash to its name"));
    }
    target.sync_all().map_err(|error| error::io(COPY, to, &error))
}

/// Makes the folder, for its owner only, if it is missing.
fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    open::make_folder(folder)?;
    folder.parent().map_or(Ok(()), open::keep_names)
}

/// How the name of a file ends.
const END: &str = ".whl";

fn path_in(folder: &Path, hash: &str) -> PathBuf {
    folder.join(format!("{hash}{END}"))
}

/// The hash that a file is named after; nothing if it is named otherwise.
fn hash_of(name: &str) -> Option<&str> {
    name.strip_suffix(END).filter(|hash| Sha256Digest::parse(hash).is_ok())
}

/// The hash that a file of a backup is named after, if it is one of a wheel.
pub(crate) fn hash_of_copy(name: &str) -> Option<&str> {
    hash_of(name.strip_prefix(FOLDER)?.strip_prefix('/')?)
}

pub(super) fn not_announced(why: String) -> StoreError {
    StoreError::new(ErrorKind::Corrupt, PUT, why)
}

fn damaged(path: &Path, why: &str) -> StoreError {
    StoreError::new(ErrorKind::Corrupt, READ, format!("{} is damaged: {why}", path.display()))
}

async fn blocking<T: Send + 'static>(
    operation: &'static str,
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(StoreError::new(ErrorKind::Internal, operation, error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_full_disk_is_said_to_be_full_and_what_was_written_goes() {
        let home = tempfile::tempdir().unwrap();
        let folder: Arc<Path> = home.path().join(FOLDER).into();
        let mut writing = Writing::begin(Arc::clone(&folder)).await.unwrap();
        // The disk is this one from here on.
        *writing.file.as_file_mut() = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let refused = writing.add(vec![7; 100_000]).await.err().unwrap();
        assert_eq!(refused.kind, ErrorKind::Full, "{refused}");
        assert!(refused.to_string().contains(FOLDER), "it says where: {refused}");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    }

    #[test]
    fn only_names_of_hashes_are_files_of_wheels() {
        let hash = "0a".repeat(32);
        assert_eq!(hash_of(&format!("{hash}.whl")), Some(hash.as_str()));
        assert_eq!(hash_of_copy(&format!("wheel-files/{hash}.whl")), Some(hash.as_str()));
        for other in
            [hash.clone(), format!("{}.whl", hash.to_uppercase()), format!("x{hash}.whl"), ".whl".to_owned()]
        {
            assert_eq!(hash_of(&other), None, "{other}");
        }
        for other in [
            format!("{hash}.whl"),
            format!("wheel-files{hash}.whl"),
            format!("wheel-files/../{hash}.whl"),
            format!("wheel-files/x/{hash}.whl"),
            format!("/wheel-files/{hash}.whl"),
        ] {
            assert_eq!(hash_of_copy(&other), None, "{other}");
        }
    }
}
