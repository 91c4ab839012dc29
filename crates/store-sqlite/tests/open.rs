//! Which folders are opened, which are refused, and that a refused one is left as it was.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use std::path::Path;

use pyoco_core::ids::{ExecutionId, Version};
use pyoco_ports::{Append, EventLog};
use pyoco_store_sqlite::{Check, OpenError, Options, SqliteStore};
use tempfile::{TempDir, tempdir};

fn open(folder: &Path) -> Result<SqliteStore, OpenError> {
    SqliteStore::open(folder, Options::default())
}

fn append(execution: &str, expected: u64, bytes: &[u8]) -> Append {
    Append::new(ExecutionId::new(execution).unwrap(), Version(expected), bytes.to_vec())
}

async fn versions(store: &SqliteStore, execution: &str) -> Vec<u64> {
    let records = EventLog::read(store, &ExecutionId::new(execution).unwrap(), Version(0)).await.unwrap();
    records.into_iter().map(|record| record.version.0).collect()
}

/// A folder with a store of 200 records, closed.
async fn used() -> TempDir {
    let folder = tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    for version in 0..200 {
        store.append(append("e", version, &[7; 500])).await.unwrap();
    }
    store.close().await.unwrap();
    folder
}

/// Changes the file of a folder, and gives what it has afterwards.
fn spoil(folder: &Path, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let file = folder.join("pyoco.db");
    let mut bytes = std::fs::read(&file).unwrap_or_default();
    change(&mut bytes);
    std::fs::write(&file, &bytes).unwrap();
    bytes
}

fn unchanged(folder: &Path, bytes: &[u8]) {
    assert!(std::fs::read(folder.join("pyoco.db")).unwrap() == bytes, "the file was changed");
}

#[tokio::test]
async fn a_second_one_is_refused_until_the_first_is_closed() {
    let folder = tempdir().unwrap();
    let first = open(folder.path()).unwrap();
    let clone = first.clone();
    let refused = open(folder.path()).unwrap_err();
    assert!(matches!(refused, OpenError::Locked { .. }), "{refused}");
    first.close().await.unwrap();
    first.close().await.unwrap();
    let second = open(folder.path()).unwrap();
    let late = clone.append(append("e", 0, b"late")).await.unwrap_err();
    assert!(late.to_string().contains("the store was closed"), "{late}");
    second.append(append("e", 0, b"x")).await.unwrap();
}

#[tokio::test]
async fn closing_leaves_one_file_with_everything_in_it() {
    let folder = used().await;
    let left = std::fs::metadata(folder.path().join("pyoco.db-wal")).map_or(0, |data| data.len());
    assert_eq!(left, 0);
    let alone = tempdir().unwrap();
    std::fs::copy(folder.path().join("pyoco.db"), alone.path().join("pyoco.db")).unwrap();
    assert_eq!(versions(&open(alone.path()).unwrap(), "e").await.len(), 200);
}

#[tokio::test]
async fn records_survive_a_store_that_was_only_dropped() {
    let folder = tempdir().unwrap();
    for round in 0..5 {
        let store = open(folder.path()).unwrap();
        assert_eq!(versions(&store, "e").await.len(), round);
        store.append(append("e", round as u64, b"x")).await.unwrap();
    }
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_may_look_into_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let above = tempdir().unwrap();
    let folder = above.path().join("data");
    let store = open(&folder).unwrap();
    store.append(append("e", 0, b"x")).await.unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    for name in ["pyoco.db", "pyoco.db-wal", "pyoco.db-shm", "pyoco-logs.db", "pyoco.lock"] {
        assert_eq!(mode(&folder.join(name)), 0o600, "{name}");
    }
}

#[tokio::test]
async fn a_file_of_another_program_is_refused_and_left_untouched() {
    let folder = used().await;
    let bytes = spoil(folder.path(), |bytes| bytes[68..72].copy_from_slice(&77_i32.to_be_bytes()));
    let refused = open(folder.path()).unwrap_err();
    assert!(matches!(refused, OpenError::NotOurs { .. }), "{refused}");
    unchanged(folder.path(), &bytes);
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_left_untouched() {
    let folder = used().await;
    let bytes = spoil(folder.path(), |bytes| bytes[60..64].copy_from_slice(&99_i32.to_be_bytes()));
    let refused = open(folder.path()).unwrap_err();
    assert!(matches!(refused, OpenError::Newer { found: 99, supported: 11 }), "{refused}");
    unchanged(folder.path(), &bytes);
}

#[test]
fn a_file_that_is_empty_or_no_database_is_refused_and_left_untouched() {
    for garbage in [&b""[..], b"SQLite", &[0; 4096], &b"hello, this is a text file\n".repeat(200)] {
        let folder = tempdir().unwrap();
        std::fs::write(folder.path().join("pyoco.db"), garbage).unwrap();
        let refused = open(folder.path()).unwrap_err();
        assert!(matches!(refused, OpenError::Corrupt { .. }), "{refused}");
        unchanged(folder.path(), garbage);
    }
}

#[tokio::test]
async fn a_file_that_was_cut_short_is_refused_and_left_untouched() {
    let folder = used().await;
    let bytes = spoil(folder.path(), |bytes| bytes.truncate(bytes.len() / 2));
    let refused = open(folder.path()).unwrap_err();
    assert!(matches!(refused, OpenError::Corrupt { .. }), "{refused}");
    unchanged(folder.path(), &bytes);
}

#[tokio::test]
async fn a_damaged_page_is_found_when_the_whole_file_is_checked() {
    let folder = used().await;
    let bytes = spoil(folder.path(), |bytes| {
        let page = bytes.len() - 3 * 4096;
        bytes[page..page + 64].fill(0xff);
    });
    let refused =
        SqliteStore::open(folder.path(), Options { check: Check::Always, ..Options::default() }).unwrap_err();
    assert!(matches!(refused, OpenError::Corrupt { .. }), "{refused}");
    unchanged(folder.path(), &bytes);
}

#[tokio::test]
async fn a_write_ahead_log_without_its_file_is_refused() {
    let folder = used().await;
    std::fs::rename(folder.path().join("pyoco.db"), folder.path().join("pyoco.db-wal")).unwrap();
    let refused = open(folder.path()).unwrap_err();
    assert!(matches!(refused, OpenError::Corrupt { .. }), "{refused}");
    assert!(!folder.path().join("pyoco.db").exists());
}

#[tokio::test]
async fn a_store_that_was_half_made_is_made_again() {
    let folder = tempdir().unwrap();
    std::fs::write(folder.path().join("pyoco.db.new"), b"half").unwrap();
    let store = open(folder.path()).unwrap();
    store.append(append("e", 0, b"x")).await.unwrap();
    assert!(!folder.path().join("pyoco.db.new").exists());
}

#[test]
fn a_folder_that_cannot_be_one_is_said_so() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, b"x").unwrap();
    let refused = open(&file).unwrap_err();
    assert!(matches!(refused, OpenError::Io { .. }), "{refused}");
    assert!(refused.to_string().contains("file"), "{refused}");
}
