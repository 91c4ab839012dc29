//! A store made of a backup: only where there is none, all or nothing, and checked before anybody may use it.

use std::fs::File;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use pyoco_access::Keys;
use pyoco_core::ids::{ExecutionId, Version};
use pyoco_engine::{Clock as _, Engine, Finding};
use pyoco_figures::Figures;
use pyoco_ports::{ErrorKind, Filter, Heard, Removal, StoreError};
use pyoco_store_nats::{Listener, backup as streams};
use pyoco_store_sqlite::{Check, Options, SqliteStore};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::backup::private_folder;
use super::manifest::{self, Kind, Manifest, create};
use super::order::AdminError;
use crate::storage::{self, Role, Storage};
use crate::{Config, SystemClock, backend};

/// What a folder is called until it is whole, in front of what makes it unique.
const UNFINISHED: &str = ".pyoco-restore-";
/// So many rows of the index are asked for at a time.
const PAGE: usize = 500;
/// So many executions are looked at at a time.
const AT_ONCE: usize = 16;
/// So many broken executions are named.
const NAMED: usize = 10;

/// Makes a store of a backup where the configuration says. `is_checked`: every execution is looked at before it is done.
pub async fn restore(config: &Config, from: &Path, is_checked: bool) -> Result<Value, AdminError> {
    match config.nats_url {
        Some(_) => to_nats(config, from, is_checked).await,
        None => to_folder(config, from, is_checked).await,
    }
}

async fn to_folder(config: &Config, from: &Path, is_checked: bool) -> Result<Value, AdminError> {
    let target = std::path::absolute(&config.data_dir).map_err(|error| failed(&config.data_dir, &error))?;
    is_free(&target)?;
    let parent = target.parent().unwrap_or(&target).to_owned();
    let copy = Copy::find(from, Kind::Embedded)?;
    let source = from.to_owned();
    let placed = parent.clone();
    let stage = blocking(from, move || copy.into_folder(&source, &placed)).await?;
    let (stage, manifest) = stage?;
    let folder = stage.path().to_owned();
    let opened = blocking(from, move || {
        SqliteStore::open(&folder, Options { check: Check::Always, ..Default::default() })
    });
    let store =
        opened.await?.map_err(|error| AdminError::Refused(format!("the backup cannot be used: {error}")))?;
    let storage = Storage::Embedded(store);
    let keys = keys_that_open(&storage).await;
    let checked = if is_checked {
        let engine = backend::engine_on(&storage, config, Figures::default());
        let audited = async {
            wheels_are_whole(&storage).await?;
            audit(&engine, Vec::new()).await
        };
        let audited = audited.await;
        engine.lines().flush().await;
        Some(audited)
    } else {
        None
    };
    storage.close().await?;
    let checked = checked.transpose()?.map(Audited::sound).transpose()?;
    let keys = keys?;
    let named = target.clone();
    let placed = blocking(&target, move || {
        // Where there is nothing, or an empty folder. Whatever somebody has put there since stays.
        std::fs::rename(stage.path(), &named)?;
        let _ = stage.keep();
        File::open(&parent)?.sync_all()
    });
    placed.await?.map_err(|error| failed(&target, &error))?;
    Ok(said(&manifest, &target.to_string_lossy(), checked.as_ref(), Some(keys)))
}

async fn to_nats(config: &Config, from: &Path, is_checked: bool) -> Result<Value, AdminError> {
    let settings = storage::nats_settings(config, &Role::Admin);
    let copy = Copy::find(from, Kind::Nats)?;
    let source = from.to_owned();
    let (folder, manifest, _stage) =
        blocking(from, move || copy.in_place(&source, &std::env::temp_dir())).await??;
    streams::restore(&settings, &manifest.streams(), &folder).await.map_err(|error| match error {
        streams::BackupError::Exists(_) | streams::BackupError::NotNamed(_) => {
            AdminError::Refused(error.to_string())
        }
        streams::BackupError::Open(_)
        | streams::BackupError::Store(_)
        | streams::BackupError::Nothing
        | streams::BackupError::File { .. } => AdminError::Failed(error.to_string()),
    })?;
    let checked = if is_checked { Some(check_nats(config).await) } else { None };
    let checked = match checked.transpose().and_then(|checked| checked.map(Audited::sound).transpose()) {
        Ok(checked) => checked,
        Err(error) => {
            // Nothing of ours was there before.
            if let Err(reason) = streams::take_back(&settings).await {
                tracing::warn!(%reason, "what was restored could not be removed");
            }
            return Err(error);
        }
    };
    let keys = async {
        let storage = Storage::open(config, &Role::Admin, &Figures::default()).await?;
        let keys = keys_that_open(&storage).await;
        storage.close().await?;
        keys
    };
    // Everything is there: that nobody could count them takes nothing back.
    let keys = match keys.await {
        Ok(keys) => Some(keys),
        Err(error) => {
            tracing::warn!(%error, "all is restored, but its API keys could not be counted");
            None
        }
    };
    let servers = settings.servers.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    Ok(said(&manifest, &servers, checked.as_ref(), keys))
}

/// Looks at every execution as a gateway sees them.
async fn check_nats(config: &Config) -> Result<Audited, AdminError> {
    /// What others have written since is another's business.
    struct Nobody;
    #[async_trait]
    impl Listener for Nobody {
        async fn heard(&self, _heard: Heard) {}
    }
    let storage = Storage::open(config, &Role::Gateway, &Figures::default()).await?;
    let Storage::Nats(store) = &storage else {
        return Err(AdminError::Failed("the store is not in NATS".to_owned()));
    };
    let engine = backend::engine_on(&storage, config, Figures::default());
    let audited = async {
        store
            .follow(Arc::new(Nobody))
            .map_err(|error| AdminError::Failed(error.to_string()))?
            .caught_up()
            .await;
        let mut audited = audit(&engine, store.unseen().await?).await?;
        if audited.broken == 0 {
            let taken = engine.take_from_all().await;
            audited.resumed = taken.map_err(|error| AdminError::Failed(error.to_string()))?;
        }
        Ok(audited)
    };
    let audited = audited.await;
    engine.lines().flush().await;
    storage.close().await?;
    audited
}

/// Reads every wheel to its end, which finds what is missing or changed.
async fn wheels_are_whole(storage: &Storage) -> Result<(), AdminError> {
    let store = storage.shared();
    for wheel in store.wheels().await? {
        let read = async {
            // Nobody else has the store: what is listed is there.
            let Some(mut bytes) = store.read_wheel(&wheel, 0).await? else { return Ok(()) };
            while bytes.next().await?.is_some() {}
            Ok::<_, StoreError>(())
        };
        read.await.map_err(|error| {
            let why = "is not whole, so nothing was restored; --no-check restores all the same";
            AdminError::Refused(format!("the wheel {} {why}: {error}", wheel.name))
        })?;
    }
    Ok(())
}

/// How many API keys open what was restored, also such as were revoked since the backup was made.
async fn keys_that_open(storage: &Storage) -> Result<usize, AdminError> {
    let now = SystemClock.now();
    let keys = Keys::new(storage.shared(), None).list().await?;
    Ok(keys.iter().filter(|key| !key.is_over(now)).count())
}

fn said(manifest: &Manifest, target: &str, checked: Option<&Audited>, keys: Option<usize>) -> Value {
    json!({
        "restored": target,
        "store": manifest.store.as_str(),
        "backup_created_at": manifest.created_at.as_unix_seconds(),
        "bytes": manifest.bytes(),
        "checked": checked.map(|audited| json!({
            "executions": audited.looked_at,
            "repaired": audited.repaired,
            "removed": audited.removed,
            "left": audited.left,
            "resumed": audited.resumed,
        })),
        "keys": keys,
    })
}

/// A folder can be made of nothing or of an empty one.
fn is_free(folder: &Path) -> Result<(), AdminError> {
    let mut entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(AdminError::Refused(format!("{}: {error}", folder.display()))),
    };
    if entries.next().is_some() {
        let why =
            "something is there already, and nothing that exists is written over; give a new --data-dir";
        return Err(AdminError::Refused(format!("{}: {why}", folder.display())));
    }
    Ok(())
}

/// A backup as it was found.
enum Copy {
    /// A folder, with its list.
    Folder(Manifest),
    /// One file, and the kind of store that it must be of.
    Packed(Kind),
}

impl Copy {
    fn find(from: &Path, wanted: Kind) -> Result<Self, AdminError> {
        if from.is_dir() {
            let manifest = Manifest::read(from).map_err(AdminError::Refused)?;
            return Ok(Self::Folder(of_kind(manifest, wanted)?));
        }
        if from.is_file() {
            return Ok(Self::Packed(wanted));
        }
        Err(AdminError::Refused(format!("there is no backup at {}", from.display())))
    }

    /// Copies or unpacks the files into a new folder, and looks whether they are whole there.
    fn into_folder(self, from: &Path, parent: &Path) -> Result<(TempDir, Manifest), AdminError> {
        std::fs::create_dir_all(parent).map_err(|error| failed(parent, &error))?;
        let stage = private_folder(UNFINISHED, parent).map_err(|error| failed(parent, &error))?;
        let manifest = match self {
            Self::Folder(manifest) => {
                for entry in &manifest.files {
                    let path = from.join(&entry.name);
                    let copied = File::open(&path).and_then(|mut file| keep(&mut file, &stage, &entry.name));
                    copied.map_err(|error| failed(&path, &error))?;
                }
                manifest
            }
            Self::Packed(wanted) => unpack(from, &stage, wanted)?,
        };
        manifest.check(stage.path()).map_err(AdminError::Refused)?;
        File::open(stage.path())
            .and_then(|folder| folder.sync_all())
            .map_err(|error| failed(from, &error))?;
        Ok((stage, manifest))
    }

    /// The folder with the files, where they are or unpacked, after a look whether they are whole. What was unpacked goes with the
    /// third.
    fn in_place(
        self,
        from: &Path,
        parent: &Path,
    ) -> Result<(PathBuf, Manifest, Option<TempDir>), AdminError> {
        if let Self::Folder(manifest) = self {
            manifest.check(from).map_err(AdminError::Refused)?;
            return Ok((from.to_owned(), manifest, None));
        }
        let (stage, manifest) = self.into_folder(from, parent)?;
        Ok((stage.path().to_owned(), manifest, Some(stage)))
    }
}

/// Unpacks a backup of one file, without its list, and gives that.
fn unpack(from: &Path, stage: &TempDir, wanted: Kind) -> Result<Manifest, AdminError> {
    let unpack = || -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in tar::Archive::new(File::open(from)?).entries()? {
            let mut entry = entry?;
            let path = entry.path()?.into_owned();
            let name = path.to_str().filter(|name| manifest::is_of_backup(name));
            match name.filter(|_| entry.header().entry_type().is_file()) {
                Some(name) => {
                    keep(&mut entry, stage, name)?;
                    names.push(name.to_owned());
                }
                None => {
                    let why = format!("{} is in it, which is in no backup", path.display());
                    return Err(io::Error::new(io::ErrorKind::InvalidData, why));
                }
            }
        }
        Ok(names)
    };
    let unpacked =
        unpack().map_err(|error| AdminError::Refused(format!("{} is no backup: {error}", from.display())))?;
    let manifest = of_kind(Manifest::read(stage.path()).map_err(AdminError::Refused)?, wanted)?;
    std::fs::remove_file(stage.path().join(manifest::NAME)).map_err(|error| failed(from, &error))?;
    if let Some(other) = unpacked.iter().find(|name| *name != manifest::NAME && !manifest.lists(name)) {
        return Err(AdminError::Refused(format!("{other} is in it and not in its list")));
    }
    Ok(manifest)
}

/// Writes a file of the new folder, on the disk.
fn keep(from: &mut impl io::Read, stage: &TempDir, name: &str) -> io::Result<()> {
    let path = stage.path().join(name);
    let folder = path.parent().filter(|folder| *folder != stage.path());
    if let Some(folder) = folder.filter(|folder| !folder.exists()) {
        std::fs::DirBuilder::new().mode(0o700).create(folder)?;
    }
    let mut file = create(&path)?;
    io::copy(from, &mut file)?;
    file.sync_all()?;
    folder.map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

fn of_kind(manifest: Manifest, wanted: Kind) -> Result<Manifest, AdminError> {
    match (manifest.store, wanted) {
        (Kind::Embedded, Kind::Embedded) | (Kind::Nats, Kind::Nats) => Ok(manifest),
        (Kind::Embedded, Kind::Nats) => Err(AdminError::Refused(
            "the backup is of an embedded store: restore it with --data-dir".to_owned(),
        )),
        (Kind::Nats, Kind::Embedded) => Err(AdminError::Refused(
            "the backup is of a store in NATS: restore it with --nats-url".to_owned(),
        )),
    }
}

/// What the auditor found in all executions.
#[derive(Debug, Default)]
struct Audited {
    looked_at: u64,
    repaired: u64,
    /// They were being removed while the backup was made, and are gone.
    removed: u64,
    /// They were, too, and what is left of them stays.
    left: u64,
    /// A worker had them in hand when the backup was made; the next one that is free goes on.
    resumed: usize,
    broken: u64,
    named: Vec<String>,
}

impl Audited {
    /// Refuses what cannot be trusted.
    fn sound(self) -> Result<Self, AdminError> {
        if self.broken == 0 {
            return Ok(self);
        }
        Err(AdminError::Refused(format!(
            "{} of {} executions are not whole, so nothing was restored; --no-check restores all the same: {}",
            self.broken,
            self.looked_at,
            self.named.join("; ")
        )))
    }

    fn add(&mut self, execution: &ExecutionId, findings: &[Finding]) {
        self.looked_at += 1;
        let (mut is_repaired, mut is_broken) = (false, false);
        for finding in findings {
            match finding {
                Finding::RowRepaired => is_repaired = true,
                Finding::BrokenLog(_) | Finding::TailLost { .. } => {
                    is_broken = true;
                    if self.named.len() < NAMED {
                        self.named.push(format!("{execution}: {finding:?}"));
                    }
                }
            }
        }
        self.repaired += u64::from(is_repaired);
        self.broken += u64::from(is_broken);
    }
}

/// Has the auditor look at all executions of the index and at those that it does not show. What is derived is put right.
async fn audit(engine: &Engine, unseen: Vec<ExecutionId>) -> Result<Audited, AdminError> {
    let mut audited = Audited::default();
    audit_some(engine, unseen, &mut audited).await?;
    let mut filter = Filter::default();
    loop {
        let page = engine.store().list(&filter, PAGE).await?;
        let executions = page.rows.into_iter().map(|row| row.execution).collect();
        audit_some(engine, executions, &mut audited).await?;
        match page.next {
            Some(next) => filter.cursor = Some(next),
            None => return Ok(audited),
        }
    }
}

async fn audit_some(
    engine: &Engine,
    executions: Vec<ExecutionId>,
    audited: &mut Audited,
) -> Result<(), AdminError> {
    let look = |execution: ExecutionId| async move {
        let audit = engine.audit(&execution).await?;
        if let Some(is_gone) = remove_rest(engine, &execution, &audit.findings).await? {
            return Ok((execution, Vec::new(), Some(is_gone)));
        }
        if audit.findings.contains(&Finding::RowRepaired) {
            // Others read it too.
            engine.show_again(&execution).await?;
        }
        Ok::<_, pyoco_engine::EngineError>((execution, audit.findings, None))
    };
    let mut looks = futures_util::stream::iter(executions).map(look).buffer_unordered(AT_ONCE);
    while let Some(look) = looks.next().await {
        let (execution, findings, is_gone) = look.map_err(|error| AdminError::Failed(error.to_string()))?;
        audited.add(&execution, &findings);
        audited.removed += u64::from(is_gone == Some(true));
        audited.left += u64::from(is_gone == Some(false));
    }
    Ok(())
}

/// Removes what is left of an execution that was being removed while the backup was made; says whether it is gone. Nothing if it is
/// none of these.
async fn remove_rest(
    engine: &Engine,
    execution: &ExecutionId,
    findings: &[Finding],
) -> Result<Option<bool>, StoreError> {
    let store = engine.store();
    let version = if findings.iter().any(is_log_gone) {
        Version(0)
    } else if findings.iter().any(|finding| matches!(finding, Finding::BrokenLog(_))) {
        // An execution that ended shows its last record. If there is another one behind it, it stays.
        store.get(execution).await?.map_or(Version(0), |row| row.version)
    } else {
        return Ok(None);
    };
    let Some(tombstone) = store.tombstone(execution).await? else { return Ok(None) };
    match store.remove(vec![Removal { tombstone, version }]).await {
        Ok(removed) => Ok(Some(!removed.is_empty())),
        Err(error) if error.kind == ErrorKind::Corrupt => Ok(Some(false)),
        Err(error) => Err(error),
    }
}

/// Whether there is a row and no record at all.
const fn is_log_gone(finding: &Finding) -> bool {
    matches!(finding, Finding::TailLost { has: Version(0), .. })
}

/// Does something that takes a while where nobody waits for it.
async fn blocking<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, AdminError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| failed(path, &error))
}

fn failed(path: &Path, why: &dyn std::fmt::Display) -> AdminError {
    AdminError::Failed(format!("{}: {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use pyoco_core::time::Timestamp;
    use pyoco_ports::{NewWheel, Store, WheelBytes, WheelRecord};
    use sha2::{Digest as _, Sha256};

    use super::*;
    use crate::admin::backup;
    use crate::admin::desk::Desk;

    /// More than is read at a time.
    const LENGTH: usize = 2 << 20;

    struct Sent(Option<Vec<u8>>);

    #[async_trait]
    impl WheelBytes for Sent {
        async fn next(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
            Ok(self.0.take())
        }
    }

    async fn put(store: &dyn Store, name: &str, byte: u8) -> WheelRecord {
        let bytes = vec![byte; LENGTH];
        let hash: [u8; 32] = Sha256::digest(&bytes).into();
        let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        let wheel = NewWheel {
            name: name.parse().unwrap(),
            size_bytes: LENGTH as u64,
            sha256: hash.try_into().unwrap(),
            at: Timestamp::from_micros(7),
            tags: vec!["gpu".to_owned()],
            content_type: "application/zip".to_owned(),
        };
        store.put_wheel(wheel, &mut Sent(Some(bytes))).await.unwrap().unwrap()
    }

    async fn read(store: &dyn Store, wheel: &WheelRecord) -> Vec<u8> {
        let (mut stream, mut bytes) = (store.read_wheel(wheel, 0).await.unwrap().unwrap(), Vec::new());
        while let Some(piece) = stream.next().await.unwrap() {
            bytes.extend(piece);
        }
        bytes
    }

    /// A folder for a store, one with a backup in it, and the wheel that both have.
    async fn backed_up(home: &Path) -> (Config, [PathBuf; 2], [WheelRecord; 2]) {
        let config = Config { data_dir: home.join("data"), ..Config::default() };
        let storage = Storage::open(&config, &Role::Admin, &Figures::default()).await.unwrap();
        let store = storage.shared();
        let one = put(&*store, "one-1.0-py3-none-any.whl", 1).await;
        let two = put(&*store, "two-1.0-py3-none-any.whl", 2).await;
        let desk = Desk::alone(&config, storage.clone());
        let backups = [home.join("monday"), home.join("monday.tar")];
        for backup in &backups {
            let said = backup::make(&desk, backup).await.unwrap();
            assert!(said["bytes"].as_u64().unwrap() > 2 * LENGTH as u64, "{said}");
        }
        drop(store);
        storage.close().await.unwrap();
        (config, backups, [one, two])
    }

    #[tokio::test]
    async fn a_backup_with_wheels_restores_them() {
        use std::os::unix::fs::PermissionsExt as _;
        let home = tempfile::tempdir().unwrap();
        let (config, backups, wheels) = backed_up(home.path()).await;
        for backup in backups {
            std::fs::remove_dir_all(&config.data_dir).unwrap();
            restore(&config, &backup, true).await.unwrap();
            let folder = config.data_dir.join("wheel-files");
            let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(&folder), 0o700);
            let storage = Storage::open(&config, &Role::Admin, &Figures::default()).await.unwrap();
            let store = storage.shared();
            assert_eq!(store.wheels().await.unwrap(), wheels);
            for (wheel, byte) in wheels.iter().zip([1, 2]) {
                assert!(read(&*store, wheel).await == vec![byte; LENGTH], "{}", wheel.name);
                assert_eq!(mode(&folder.join(format!("{}.whl", wheel.sha256))), 0o600);
            }
            drop(store);
            storage.close().await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_backup_whose_wheel_was_changed_or_taken_away_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let (config, [backup, _], [wheel, _]) = backed_up(home.path()).await;
        std::fs::remove_dir_all(&config.data_dir).unwrap();
        let refused = async || match restore(&config, &backup, true).await {
            Err(error) => error.to_string(),
            Ok(said) => panic!("it was restored: {said}"),
        };
        let path = backup.join(format!("wheel-files/{}.whl", wheel.sha256));
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[LENGTH / 2] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        let said = refused().await;
        assert!(said.contains("is not as it was"), "{said}");
        // Also when the list is made to agree: the table says which wheels there are.
        std::fs::remove_file(&path).unwrap();
        let list = std::fs::read(backup.join(manifest::NAME)).unwrap();
        let mut list: Value = serde_json::from_slice(&list).unwrap();
        let is_kept = |entry: &Value| !entry["name"].as_str().unwrap().contains(wheel.sha256.as_str());
        list["files"].as_array_mut().unwrap().retain(is_kept);
        std::fs::write(backup.join(manifest::NAME), list.to_string()).unwrap();
        let said = refused().await;
        assert!(said.contains(wheel.name.as_str()) && said.contains("--no-check"), "{said}");
        assert!(!config.data_dir.exists());
        restore(&config, &backup, false).await.unwrap();
    }
}
