//! Wheels in a folder: what is left of those that never came, what damage is said to be, and what a backup has of them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use pyoco_core::time::Timestamp;
use pyoco_ports::{ErrorKind, NewWheel, StoreError, WheelBytes, WheelRecord, Wheels as _};
use pyoco_store_sqlite::{Options, SqliteStore};
use pyoco_wheels::{Refused, Sha256Digest, WheelName};
use sha2::{Digest as _, Sha256};

/// More than is read or written at a time.
const LARGE: usize = 3 << 20;

fn open(folder: &Path) -> SqliteStore {
    SqliteStore::open(folder, Options::default()).unwrap()
}

fn name(text: &str) -> WheelName {
    WheelName::parse(&format!("{text}-py3-none-any.whl")).unwrap()
}

fn at(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros)
}

fn content(seed: u8, length: usize) -> Vec<u8> {
    (0..length).map(|place| seed.wrapping_add(u8::try_from(place % 251).unwrap())).collect()
}

fn hash(bytes: &[u8]) -> Sha256Digest {
    Sha256Digest::of_bytes(Sha256::digest(bytes).into())
}

/// All at once, and then nothing: an end, or silence.
struct Sent(Option<Vec<u8>>, bool);

#[async_trait]
impl WheelBytes for Sent {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        match self.0.take() {
            None if self.1 => std::future::pending().await,
            piece => Ok(piece),
        }
    }
}

fn new(wheel: &str, bytes: &[u8]) -> NewWheel {
    NewWheel {
        name: name(wheel),
        size_bytes: bytes.len() as u64,
        sha256: hash(bytes),
        at: at(7),
        tags: Vec::new(),
        content_type: "application/zip".to_owned(),
    }
}

async fn try_put(
    store: &SqliteStore,
    wheel: &str,
    bytes: &[u8],
) -> Result<Result<WheelRecord, Refused>, StoreError> {
    store.put_wheel(new(wheel, bytes), &mut Sent(Some(bytes.to_vec()), false)).await
}

async fn put(store: &SqliteStore, wheel: &str, bytes: &[u8]) -> WheelRecord {
    try_put(store, wheel, bytes).await.unwrap().unwrap()
}

async fn read(store: &SqliteStore, wheel: &WheelRecord) -> Result<Vec<u8>, StoreError> {
    let mut stream = store.read_wheel(wheel, 0).await?.expect("the wheel is there");
    let mut bytes = Vec::new();
    while let Some(piece) = stream.next().await? {
        bytes.extend(piece);
    }
    Ok(bytes)
}

fn file(folder: &Path, bytes: &[u8]) -> PathBuf {
    folder.join("wheel-files").join(format!("{}.whl", hash(bytes)))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> =
        std::fs::read_dir(folder.join("wheel-files")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[tokio::test]
async fn what_a_killed_process_left_is_gone_after_the_next_start_and_nothing_else() {
    let home = tempfile::tempdir().unwrap();
    let (kept, orphan) = (content(1, 1_000), content(2, 1_000));
    let store = open(home.path());
    let wheel = put(&store, "tool-1", &kept).await;
    drop(store);
    let folder = home.path().join("wheel-files");
    // Killed while it wrote, and killed between the file and its row.
    std::fs::write(folder.join(".upload-Xy12ab"), &orphan[..500]).unwrap();
    std::fs::write(file(home.path(), &orphan), &orphan).unwrap();
    // Somebody's own.
    std::fs::write(folder.join("notes.txt"), "mine").unwrap();
    let store = open(home.path());
    let mut left = vec![file(home.path(), &kept), folder.join("notes.txt")];
    left.sort();
    assert_eq!(files(home.path()), left);
    assert_eq!(store.wheels().await.unwrap(), std::slice::from_ref(&wheel));
    assert_eq!(read(&store, &wheel).await.unwrap(), kept);
    // Whoever sends goes away in the middle: nothing is left, even now.
    let half = content(3, LARGE);
    let (mut silent, whole) = (Sent(Some(half.clone()), true), new("other-1", &half));
    let given_up = tokio::time::timeout(Duration::from_millis(500), store.put_wheel(whole, &mut silent));
    assert!(given_up.await.is_err(), "it waits for the end");
    until(|| files(home.path()) == left).await;
}

/// Waits for what another thread does.
async fn until(is_so: impl Fn() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), wait).await.expect("it comes to that");
}

#[tokio::test]
async fn a_refused_or_torn_upload_leaves_no_file() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let bytes = content(1, LARGE);
    put(&store, "tool-2", &bytes).await;
    for refused in ["tool-2", "tool-1", "tool-2.0"] {
        assert!(try_put(&store, refused, &content(9, 1_000)).await.unwrap().is_err(), "{refused}");
        // The same bytes as those of a wheel that stays.
        assert!(try_put(&store, refused, &bytes).await.unwrap().is_err(), "{refused}");
    }
    let mut torn = Sent(Some(content(4, LARGE)), false);
    let refused = store.put_wheel(new("other-1", &content(5, LARGE)), &mut torn).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Corrupt);
    assert_eq!(files(home.path()), [file(home.path(), &bytes)]);
}

#[tokio::test]
async fn two_names_share_a_file_and_the_last_one_takes_it_along() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let bytes = content(1, 1_000);
    let one = put(&store, "one-1", &bytes).await;
    let two = put(&store, "two-1", &bytes).await;
    assert_eq!(files(home.path()), [file(home.path(), &bytes)]);
    store.delete_wheel(&one.name, at(8)).await.unwrap();
    assert_eq!(read(&store, &two).await.unwrap(), bytes);
    store.delete_wheel(&two.name, at(9)).await.unwrap();
    assert_eq!(files(home.path()), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn whoever_reads_a_wheel_reads_it_to_its_end_though_it_is_deleted() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let bytes = content(1, LARGE);
    let wheel = put(&store, "tool-1", &bytes).await;
    let mut stream = store.read_wheel(&wheel, 0).await.unwrap().unwrap();
    let mut found = stream.next().await.unwrap().unwrap();
    store.delete_wheel(&wheel.name, at(8)).await.unwrap();
    assert_eq!(files(home.path()), Vec::<PathBuf>::new());
    while let Some(piece) = stream.next().await.unwrap() {
        found.extend(piece);
    }
    assert!(found == bytes);
}

#[tokio::test]
async fn a_file_that_was_changed_cut_or_lost_is_damage_before_its_last_piece() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let bytes = content(1, LARGE);
    let wheel = put(&store, "tool-1", &bytes).await;
    let path = file(home.path(), &bytes);
    type Change = fn(&mut Vec<u8>);
    let changes: [(&str, Change); 4] = [
        ("flipped at the beginning", |bytes| bytes[0] ^= 1),
        ("flipped at the end", |bytes| *bytes.last_mut().unwrap() ^= 0x80),
        ("cut", |bytes| bytes.truncate(LARGE / 2)),
        ("longer", |bytes| bytes.push(0)),
    ];
    for (case, change) in changes {
        let mut changed = bytes.clone();
        change(&mut changed);
        std::fs::write(&path, &changed).unwrap();
        let found = async {
            let mut stream = store.read_wheel(&wheel, 0).await?.expect("the wheel is there");
            let mut read = 0;
            while let Some(piece) = stream.next().await? {
                read += piece.len();
                assert!(read < LARGE, "{case}: all of it was given out");
            }
            Ok::<_, StoreError>(())
        };
        let found = found.await.unwrap_err();
        assert_eq!(found.kind, ErrorKind::Corrupt, "{case}");
        assert!(found.to_string().contains("wheel-files"), "{case} says where: {found}");
        let away = tempfile::tempdir().unwrap();
        let refused = store.back_up(away.path(), || false).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Corrupt, "{case} is in no backup: {refused}");
    }
    std::fs::remove_file(&path).unwrap();
    assert_eq!(read(&store, &wheel).await.unwrap_err().kind, ErrorKind::Corrupt);
    // It does not keep the store from starting, and whoever uploads the bytes again mends it.
    drop(store);
    let store = open(home.path());
    put(&store, "again-1", &bytes).await;
    assert!(read(&store, &wheel).await.unwrap() == bytes);
}

#[tokio::test]
async fn a_folder_that_takes_no_files_is_said_so_and_nothing_shows() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    // As good as a disk that cannot be written, for any user.
    let folder = home.path().join("wheel-files");
    std::fs::write(&folder, "in the way").unwrap();
    let refused = try_put(&store, "tool-1", &content(1, 1_000)).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Unavailable);
    assert!(refused.to_string().contains("wheel-files"), "{refused}");
    assert_eq!(store.wheels().await.unwrap(), []);
    std::fs::remove_file(&folder).unwrap();
    put(&store, "tool-1", &content(1, 1_000)).await;
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_may_read_the_files_of_wheels() {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let (above, away) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let home = above.path().join("data");
    let store = open(&home);
    let bytes = content(1, 1_000);
    put(&store, "tool-1", &bytes).await;
    store.back_up(away.path(), || false).await.unwrap();
    for folder in [home.as_path(), away.path()] {
        assert_eq!(mode(&folder.join("wheel-files")), 0o700);
        assert_eq!(mode(&file(folder, &bytes)), 0o600);
    }
    std::fs::set_permissions(file(&home, &bytes), std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::set_permissions(home.join("wheel-files"), std::fs::Permissions::from_mode(0o750)).unwrap();
    let open = SqliteStore::open_to_others(&home).unwrap();
    let open: Vec<_> = open.into_iter().map(|found| (found.path, found.is_folder)).collect();
    assert_eq!(open, [(home.join("wheel-files"), true), (file(&home, &bytes), false)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_has_the_files_of_its_wheels_whoever_deletes_them_meanwhile() {
    let (home, away) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = open(home.path());
    let (one, two, late) = (content(1, LARGE), content(2, 1_000), content(3, 1_000));
    let wheel = put(&store, "one-1", &one).await;
    put(&store, "two-1", &two).await;
    put(&store, "three-1", &two).await;
    // It is held at its first step until the wheels are deleted.
    let (held, go) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (holding, going) = (held.clone(), go.clone());
    let is_over = move || {
        holding.store(true, Ordering::SeqCst);
        while !going.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        false
    };
    let (copying, folder) = (store.clone(), away.path().to_owned());
    let backup = tokio::spawn(async move { copying.back_up(&folder, is_over).await });
    // The first to come is the copy of lines; the rows of wheels are read before the second comes.
    until(|| held.load(Ordering::SeqCst) && away.path().join("pyoco.db.pages").exists()).await;
    for name in ["one-1", "two-1", "three-1"] {
        assert!(store.delete_wheel(&self::name(name), at(8)).await.unwrap().is_some());
    }
    let fresh = put(&store, "late-1", &late).await;
    assert_eq!(store.wheels().await.unwrap(), std::slice::from_ref(&fresh));
    assert!(store.read_wheel(&wheel, 0).await.unwrap().is_none());
    go.store(true, Ordering::SeqCst);
    let copied = backup.await.unwrap().unwrap();
    let mut wanted = vec!["pyoco-logs.db".to_owned(), "pyoco.db".to_owned()];
    let mut hashes = [hash(&one), hash(&two)];
    hashes.sort();
    wanted.extend(hashes.iter().map(|hash| format!("wheel-files/{hash}.whl")));
    assert_eq!(copied.iter().map(|file| file.name.as_str()).collect::<Vec<_>>(), wanted);
    for (file, hash) in copied[2..].iter().zip(&hashes) {
        assert_eq!((SqliteStore::wheel_in_backup(&file.name), file.schema), (Some(hash.as_str()), None));
    }
    // When it is done what was deleted goes.
    assert_eq!(files(home.path()), [file(home.path(), &late)]);
    let copy = open(away.path());
    assert_eq!(copy.wheels().await.unwrap().len(), 3);
    assert!(read(&copy, &wheel).await.unwrap() == one);
}

#[tokio::test]
async fn a_closed_store_takes_no_wheel_and_tells_those_who_listen() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    put(&store, "tool-1", &content(1, 10)).await;
    let mut listening = store.listen_to_wheels().await.unwrap();
    let waiting = tokio::spawn(async move { (listening.changed().await, listening.changed().await) });
    tokio::task::yield_now().await;
    store.close().await.unwrap();
    assert_eq!(waiting.await.unwrap(), (false, false));
    assert_eq!(try_put(&store, "tool-2", &content(2, 10)).await.unwrap_err().kind, ErrorKind::Closed);
    let mut late = store.listen_to_wheels().await.unwrap();
    assert!(!late.changed().await);
    let store = open(home.path());
    assert_eq!(files(home.path()), [file(home.path(), &content(1, 10))]);
    assert_eq!(store.wheels().await.unwrap().len(), 1);
}
