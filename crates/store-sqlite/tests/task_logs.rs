//! The file of lines: made anew when it is missing, set aside when it is damaged, and never a reason not to start.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use std::path::Path;

use pyoco_core::ids::{Attempt, ExecutionId, NodeId, Version};
use pyoco_core::time::Timestamp;
use pyoco_ports::{Append, ErrorKind, EventLog, LogLine, LogStream, LogTerms, TaskLogs};
use pyoco_store_sqlite::{Check, OpenError, Options, SqliteStore};
use tempfile::{TempDir, tempdir};

fn open(folder: &Path) -> SqliteStore {
    SqliteStore::open(folder, Options::default()).unwrap()
}

const OPEN: LogTerms = LogTerms { max_bytes: 1_000_000, closes: false };

fn id() -> ExecutionId {
    ExecutionId::new("e").unwrap()
}

fn lines(count: usize) -> Vec<LogLine> {
    let line = |number| LogLine {
        node: Some(NodeId::new("node").unwrap()),
        attempt: Attempt(1),
        stream: LogStream::Stdout,
        at: Timestamp::from_micros(7),
        text: format!("line {number} {}", "x".repeat(80)),
    };
    (1..=count).map(line).collect()
}

async fn count(store: &SqliteStore) -> usize {
    store.read_lines(&id(), 0, usize::MAX).await.unwrap().len()
}

/// A folder with a record and 500 lines, closed.
async fn used() -> TempDir {
    let folder = tempdir().unwrap();
    let store = open(folder.path());
    store.append(Append::new(id(), Version(0), b"x".to_vec())).await.unwrap();
    store.write_lines(&id(), lines(500), OPEN).await.unwrap();
    store.close().await.unwrap();
    folder
}

/// The names of what was set aside.
fn aside(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name.contains("damaged"));
    names.sort();
    names
}

async fn starts_anew(folder: &Path, options: Options) {
    let store = SqliteStore::open(folder, options).unwrap();
    assert_eq!(EventLog::read(&store, &id(), Version(0)).await.unwrap().len(), 1, "the truth is untouched");
    assert_eq!(count(&store).await, 0);
    store.write_lines(&id(), lines(3), OPEN).await.unwrap();
    assert_eq!(count(&store).await, 3);
    store.close().await.unwrap();
}

#[tokio::test]
async fn closing_leaves_one_file_with_every_line_in_it() {
    let folder = used().await;
    let left = std::fs::metadata(folder.path().join("pyoco-logs.db-wal")).map_or(0, |data| data.len());
    assert_eq!(left, 0);
    let alone = tempdir().unwrap();
    std::fs::copy(folder.path().join("pyoco-logs.db"), alone.path().join("pyoco-logs.db")).unwrap();
    assert_eq!(count(&open(alone.path())).await, 500);
}

#[tokio::test]
async fn a_closed_store_takes_no_lines_and_gives_none() {
    let folder = tempdir().unwrap();
    let store = open(folder.path());
    store.close().await.unwrap();
    let written = store.write_lines(&id(), lines(1), OPEN).await.unwrap_err();
    let read = store.read_lines(&id(), 0, 1).await.unwrap_err();
    for error in [written, read] {
        assert!(error.to_string().contains("the store was closed"), "{error}");
    }
}

#[tokio::test]
async fn a_missing_file_of_lines_is_made_anew() {
    let folder = used().await;
    std::fs::remove_file(folder.path().join("pyoco-logs.db")).unwrap();
    starts_anew(folder.path(), Options::default()).await;
    assert_eq!(aside(folder.path()), [""; 0]);
}

type Spoil = fn(&mut Vec<u8>);

#[tokio::test]
async fn a_file_of_lines_that_cannot_be_used_is_set_aside_and_kept_as_it_was() {
    let spoilt: [(&str, Spoil); 6] = [
        ("empty", Vec::clear),
        ("no database", |bytes| bytes[..16].fill(b'?')),
        ("cut short", |bytes| bytes.truncate(bytes.len() / 2)),
        ("of another program", |bytes| bytes[68..72].copy_from_slice(&77_i32.to_be_bytes())),
        ("newer", |bytes| bytes[60..64].copy_from_slice(&9_i32.to_be_bytes())),
        ("a damaged page", |bytes| {
            let page = bytes.len() - 3 * 4096;
            bytes[page..page + 64].fill(0xff);
        }),
    ];
    for (what, spoil) in spoilt {
        let folder = used().await;
        let file = folder.path().join("pyoco-logs.db");
        let mut bytes = std::fs::read(&file).unwrap();
        spoil(&mut bytes);
        std::fs::write(&file, &bytes).unwrap();
        starts_anew(folder.path(), Options { check: Check::Always, ..Options::default() }).await;
        let kept = std::fs::read(folder.path().join("pyoco-logs.db.damaged-1")).unwrap();
        assert!(kept == bytes, "{what}: what was set aside is not what was there");
    }
}

#[tokio::test]
async fn what_was_set_aside_before_stays_when_it_happens_again() {
    let folder = used().await;
    for round in [&b"first"[..], b"second", b"third"] {
        std::fs::write(folder.path().join("pyoco-logs.db"), round).unwrap();
        starts_anew(folder.path(), Options::default()).await;
    }
    let names = ["pyoco-logs.db.damaged-1", "pyoco-logs.db.damaged-2", "pyoco-logs.db.damaged-3"];
    assert_eq!(aside(folder.path()), names);
    for (name, bytes) in names.into_iter().zip([&b"first"[..], b"second", b"third"]) {
        assert_eq!(std::fs::read(folder.path().join(name)).unwrap(), bytes);
    }
}

#[tokio::test]
async fn a_write_ahead_log_whose_file_is_gone_is_set_aside_too() {
    // So it looks when the process dies while it sets the file aside.
    let folder = used().await;
    std::fs::rename(folder.path().join("pyoco-logs.db"), folder.path().join("pyoco-logs.db.damaged-1"))
        .unwrap();
    std::fs::write(folder.path().join("pyoco-logs.db-wal"), b"left").unwrap();
    starts_anew(folder.path(), Options::default()).await;
    assert_eq!(aside(folder.path()), ["pyoco-logs.db.damaged-1", "pyoco-logs.db.damaged-2-wal"]);
    assert_eq!(std::fs::read(folder.path().join("pyoco-logs.db.damaged-2-wal")).unwrap(), b"left");
}

#[tokio::test]
async fn damage_that_is_met_at_work_stops_no_command_and_is_mended_by_the_next_start() {
    for is_read in [true, false] {
        let folder = used().await;
        let file = folder.path().join("pyoco-logs.db");
        let mut bytes = std::fs::read(&file).unwrap();
        // All pages behind the roots of the tables.
        bytes[10 * 4096..].fill(0xff);
        std::fs::write(&file, &bytes).unwrap();
        let store = open(folder.path());
        if is_read {
            let met = store.read_lines(&id(), 0, usize::MAX).await.unwrap_err();
            assert_eq!(met.kind, ErrorKind::Corrupt, "{met}");
        } else {
            store.write_lines(&id(), lines(1), OPEN).await.unwrap_err();
        }
        store.append(Append::new(ExecutionId::new("f").unwrap(), Version(0), b"x".to_vec())).await.unwrap();
        drop(store);
        starts_anew(folder.path(), Options::default()).await;
        assert_eq!(aside(folder.path()), ["pyoco-logs.db.damaged-1"]);
        // The mark is gone with what it was about.
        assert_eq!(count(&open(folder.path())).await, 3);
    }
}

#[tokio::test]
async fn damage_to_the_main_file_is_not_hidden_by_a_good_file_of_lines() {
    let folder = used().await;
    std::fs::write(folder.path().join("pyoco.db"), b"garbage").unwrap();
    let refused = SqliteStore::open(folder.path(), Options::default()).unwrap_err();
    assert!(matches!(refused, OpenError::Corrupt { .. }), "{refused}");
    assert_eq!(aside(folder.path()), [""; 0]);
}
