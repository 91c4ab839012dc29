//! What is in a backup: a list of its files with their fingerprints, in a file of its own.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Component, Path};

use pyoco_core::time::Timestamp;
use pyoco_store_nats::backup::StreamCopy;
use pyoco_store_sqlite::SqliteStore;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// What the file is called.
pub(super) const NAME: &str = "manifest.json";
/// Says that a folder is a backup of ours.
const FORMAT: &str = "pyoco-backup";
/// The only form there is so far.
const FORMAT_VERSION: u32 = 1;
/// More than any list of ours has.
const LONGEST: u64 = 32 << 20;
/// So much of a file is read at a time.
const CHUNK: usize = 1 << 20;

/// The kind of store that a backup is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    /// Files of SQLite.
    Embedded,
    /// Streams of NATS.
    Nats,
}

impl Kind {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Nats => "nats",
        }
    }
}

/// The list.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Manifest {
    format: String,
    format_version: u32,
    /// The version of the program that made it.
    version: String,
    pub(super) created_at: Timestamp,
    pub(super) store: Kind,
    pub(super) files: Vec<Entry>,
}

/// A file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) sha256: String,
    /// The schema of its tables, if it has some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    schema: Option<i32>,
    /// The stream that it is a copy of, if it is of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stream: Option<StreamCopy>,
}

impl Entry {
    /// A file of an embedded store in a folder: one of tables, which have a schema, or a wheel.
    pub(super) fn of_file(folder: &Path, name: String, schema: Option<i32>) -> io::Result<Self> {
        let (bytes, sha256) = fingerprint(&folder.join(&name))?;
        Ok(Self { name, bytes, sha256, schema, stream: None })
    }

    /// The copy of a stream in a folder.
    pub(super) fn of_stream(folder: &Path, stream: StreamCopy) -> io::Result<Self> {
        let name = stream.file();
        let (bytes, sha256) = fingerprint(&folder.join(&name))?;
        Ok(Self { name, bytes, sha256, schema: None, stream: Some(stream) })
    }

    /// What is wrong with the entry itself.
    fn flaw(&self, store: Kind) -> Option<String> {
        if !is_of_backup(&self.name) || self.name == NAME {
            return Some("that is no name of a file of a backup".to_owned());
        }
        match (store, &self.schema, &self.stream) {
            (Kind::Embedded, Some(schema), None) => match SqliteStore::newest_schema(&self.name) {
                None => Some("stores have no such file".to_owned()),
                Some(newest) if *schema > newest => Some(format!(
                    "its schema is {schema} and this program knows up to {newest}; use the program that made it, or a later one"
                )),
                Some(_) => None,
            },
            (Kind::Embedded, None, None) if SqliteStore::wheel_in_backup(&self.name).is_some() => {
                let is_named_after = SqliteStore::wheel_in_backup(&self.name) == Some(self.sha256.as_str());
                (!is_named_after).then(|| "it is not the wheel that it is named after".to_owned())
            }
            (Kind::Nats, None, Some(stream)) if stream.file() == self.name => None,
            (Kind::Embedded | Kind::Nats, _, _) => Some("it does not say what it is a copy of".to_owned()),
        }
    }
}

impl Manifest {
    pub(super) fn new(store: Kind, created_at: Timestamp, files: Vec<Entry>) -> Self {
        let (format, version) = (FORMAT.to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        Self { format, format_version: FORMAT_VERSION, version, created_at, store, files }
    }

    /// Puts it beside the files that it lists, on the disk.
    pub(super) fn write(&self, folder: &Path) -> io::Result<()> {
        let mut file = create(&folder.join(NAME))?;
        file.write_all(&serde_json::to_vec_pretty(self)?)?;
        file.write_all(b"\n")?;
        file.sync_all()
    }

    /// Reads it, and looks whether this program can use what it lists. The files themselves are not looked at.
    pub(super) fn read(folder: &Path) -> Result<Self, String> {
        let unreadable = |error: io::Error| format!("{}: {error}", folder.join(NAME).display());
        let mut text = Vec::new();
        let file = match File::open(folder.join(NAME)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(format!("{} is no backup: it has no {NAME}", folder.display()));
            }
            file => file.map_err(unreadable)?,
        };
        file.take(LONGEST).read_to_end(&mut text).map_err(unreadable)?;
        let manifest: Self =
            serde_json::from_slice(&text).map_err(|error| format!("{NAME} cannot be read: {error}"))?;
        if manifest.format != FORMAT {
            return Err(format!("{NAME} is not one of a backup of ours"));
        }
        if manifest.format_version != FORMAT_VERSION {
            return Err(format!(
                "the backup has form {} and this program knows {FORMAT_VERSION}; use the program that made it ({})",
                manifest.format_version, manifest.version
            ));
        }
        if manifest.files.is_empty() {
            return Err(format!("{NAME} lists nothing"));
        }
        let mut names = HashSet::new();
        for entry in &manifest.files {
            if let Some(flaw) = entry.flaw(manifest.store) {
                return Err(format!("{}: {flaw}", entry.name));
            }
            if !names.insert(&entry.name) {
                return Err(format!("{NAME} lists {} twice", entry.name));
            }
        }
        let tables = manifest.files.iter().filter(|entry| entry.schema.is_some());
        if manifest.store == Kind::Embedded && tables.count() != 2 {
            return Err(format!("{NAME} does not list both files of a store"));
        }
        Ok(manifest)
    }

    /// Looks whether the files in a folder are those that it lists.
    pub(super) fn check(&self, folder: &Path) -> Result<(), String> {
        for entry in &self.files {
            let path = folder.join(&entry.name);
            let (bytes, sha256) =
                fingerprint(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            if bytes != entry.bytes {
                return Err(format!("{} has {bytes} bytes and should have {}", entry.name, entry.bytes));
            }
            if sha256 != entry.sha256 {
                return Err(format!("{} is not as it was when the backup was made", entry.name));
            }
        }
        Ok(())
    }

    /// Whether it lists a file.
    pub(super) fn lists(&self, name: &str) -> bool {
        self.files.iter().any(|entry| entry.name == name)
    }

    /// The streams that it lists.
    pub(super) fn streams(&self) -> Vec<StreamCopy> {
        self.files.iter().filter_map(|entry| entry.stream.clone()).collect()
    }

    /// How much its files are together.
    pub(super) fn bytes(&self) -> u64 {
        self.files.iter().map(|entry| entry.bytes).sum()
    }
}

/// A new file that only its owner may read.
pub(super) fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Whether a name can be that of a file of a backup: none that leads to another folder, but for that of wheels.
pub(super) fn is_of_backup(name: &str) -> bool {
    is_plain(name) || SqliteStore::wheel_in_backup(name).is_some()
}

fn is_plain(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(one)), None) if one == name)
}

/// How long a file is, and its SHA-256 in hexadecimal.
fn fingerprint(path: &Path) -> io::Result<(u64, String)> {
    let mut file = File::open(path)?;
    let (mut hasher, mut bytes) = (Sha256::new(), 0_u64);
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = file.read(&mut chunk)?;
        if read == 0 {
            break;
        }
        hasher.update(chunk.get(..read).unwrap_or_default());
        bytes = bytes.saturating_add(read as u64);
    }
    let digest: [u8; 32] = hasher.finalize().into();
    Ok((bytes, digest.iter().map(|byte| format!("{byte:02x}")).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_leads_elsewhere_is_no_plain_one() {
        assert!(is_plain("pyoco.db") && is_plain("KV_runs.snapshot"));
        for name in ["", ".", "..", "../x", "/x", "a/b", "a/", "./a"] {
            assert!(!is_plain(name), "{name:?}");
        }
    }

    #[test]
    fn a_list_that_this_program_cannot_use_is_refused_and_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let newest = SqliteStore::newest_schema("pyoco.db").unwrap();
        let logs = SqliteStore::newest_schema("pyoco-logs.db").unwrap();
        for (name, content) in [("pyoco.db", "a"), ("pyoco-logs.db", "b")] {
            std::fs::write(folder.path().join(name), content).unwrap();
        }
        let hash: [u8; 32] = Sha256::digest(b"wheel").into();
        let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        let wheel = format!("wheel-files/{hash}.whl");
        std::fs::create_dir(folder.path().join("wheel-files")).unwrap();
        std::fs::write(folder.path().join(&wheel), "wheel").unwrap();
        let good = || {
            let files = [("pyoco.db", newest), ("pyoco-logs.db", logs)];
            let tables = files
                .map(|(name, schema)| Entry::of_file(folder.path(), name.to_owned(), Some(schema)).unwrap());
            let wheel = Entry::of_file(folder.path(), wheel.clone(), None).unwrap();
            let files = tables.into_iter().chain([wheel]).collect();
            Manifest::new(Kind::Embedded, Timestamp::from_micros(1), files)
        };
        let read = |manifest: &Manifest| {
            let _ = std::fs::remove_file(folder.path().join(NAME));
            manifest.write(folder.path()).unwrap();
            Manifest::read(folder.path())
        };
        read(&good()).unwrap().check(folder.path()).unwrap();
        type Change = fn(&mut Manifest);
        let changes: [(&str, Change); 13] = [
            ("ours", |manifest| manifest.format = "zip".to_owned()),
            ("form 2", |manifest| manifest.format_version = 2),
            ("nothing", |manifest| manifest.files.clear()),
            ("both files", |manifest| drop(manifest.files.remove(0))),
            ("named after", |manifest| manifest.files[2].sha256 = "0a".repeat(32)),
            ("no such file", |manifest| manifest.files[2].schema = Some(1)),
            ("no name", |manifest| manifest.files[2].name = "wheel-files/../x.whl".to_owned()),
            ("no name", |manifest| manifest.files[2].name = "other/x.whl".to_owned()),
            ("no name", |manifest| manifest.files[0].name = "../pyoco.db".to_owned()),
            ("no such file", |manifest| manifest.files[0].name = "other.db".to_owned()),
            ("twice", |manifest| manifest.files[0] = manifest.files[1].clone()),
            ("what it is", |manifest| manifest.files[0].schema = None),
            ("a later one", |manifest| manifest.files[0].schema = Some(i32::MAX)),
        ];
        for (word, change) in changes {
            let mut manifest = good();
            change(&mut manifest);
            let why = read(&manifest).unwrap_err();
            assert!(why.contains(word), "{word}: {why}");
        }
        let manifest = good();
        std::fs::write(folder.path().join("pyoco.db"), "A").unwrap();
        assert!(manifest.check(folder.path()).unwrap_err().contains("not as it was"));
        std::fs::write(folder.path().join("pyoco.db"), "aa").unwrap();
        assert!(manifest.check(folder.path()).unwrap_err().contains("2 bytes"));
        std::fs::remove_file(folder.path().join("pyoco.db")).unwrap();
        assert!(manifest.check(folder.path()).is_err());
    }
}
