//! The writer when something goes wrong, seen from inside: callers cannot make these happen.

use pyoco_core::ids::{Attempt, ExecutionId, NodeId, Version};
use pyoco_core::time::Timestamp;
use pyoco_ports::{
    Append, AppendError, Blobs as _, Durability, ErrorKind, EventLog, LogLine, LogStream, LogTerms,
    StoreError, TaskLogs as _,
};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::command::Terms;
use crate::{Options, SqliteStore};

fn store() -> (TempDir, SqliteStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path(), Options::default()).unwrap();
    (folder, store)
}

fn execution(name: &str) -> ExecutionId {
    ExecutionId::new(name).unwrap()
}

fn terms(durability: Durability) -> Terms {
    Terms { operation: "test", durability, wakes: None }
}

fn append(execution: &str, bytes: Vec<u8>) -> Append {
    Append::new(ExecutionId::new(execution).unwrap(), Version(0), bytes)
}

/// Holds the writer until the others have sent their commands, so that they share one transaction.
async fn together<T>(store: &SqliteStore, others: impl Future<Output = T>) -> T {
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let (holding, held) = tokio::sync::oneshot::channel();
    let mut holding = Some(holding);
    let hold = store.write(terms(Durability::Full), move |_| {
        let _ = holding.take().map(|holding| holding.send(()));
        let _ = wait.recv();
        Ok(())
    });
    let rest = async {
        held.await.unwrap();
        // The others are polled first, and have sent their commands by then.
        tokio::join!(biased; others, async { go.send(()).unwrap() }).0
    };
    let (hold, others) = tokio::join!(hold, rest);
    hold.unwrap();
    others
}

#[tokio::test]
async fn a_command_that_fails_takes_only_its_own_work_back() {
    let (_folder, store) = store();
    let bad = store.write(terms(Durability::Full), |connection: &Connection| {
        connection.execute("INSERT INTO blobs (digest, bytes) VALUES ('half', x'00')", ())?;
        connection.execute("INSERT INTO blobs (digest, bytes) VALUES ('half', x'00')", ())
    });
    let (first, bad, last) = together(&store, async {
        tokio::join!(biased; store.append(append("a", vec![1])), bad, store.append(append("b", vec![2])))
    })
    .await;
    first.unwrap();
    last.unwrap();
    assert_eq!(bad.unwrap_err().kind, ErrorKind::Internal);
    let left: i64 = store
        .read("test", |connection| connection.query_row("SELECT count(*) FROM blobs", (), |row| row.get(0)))
        .await
        .unwrap();
    assert_eq!(left, 0);
}

#[tokio::test]
async fn a_full_store_says_so_and_goes_on_when_there_is_room() {
    let (_folder, store) = store();
    let limit = |pages: i64| {
        store.write(terms(Durability::Full), move |connection| {
            connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))
        })
    };
    limit(60).await.unwrap();
    let full = store.append(append("a", vec![0; 1_000_000])).await.unwrap_err();
    assert!(matches!(full, AppendError::Store(StoreError { kind: ErrorKind::Full, .. })), "{full}");
    let full = store.put_blob(&execution("a"), &vec![0; 1_000_000]).await.unwrap_err();
    assert_eq!(full.kind, ErrorKind::Full);
    store.append(append("b", vec![1])).await.unwrap();
    limit(100_000).await.unwrap();
    store.append(append("a", vec![0; 1_000_000])).await.unwrap();
    store.close().await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_put_on_the_disk_is_not_promised_and_nothing_is_written_after_it() {
    let (folder, store) = store();
    // The writer has it open, and so writes go on; who wants to sync it does not find it.
    std::fs::remove_file(folder.path().join("pyoco.db-wal")).unwrap();
    let mut progress = append("a", vec![1]);
    progress.durability = Durability::Process;
    store.append(progress).await.expect("nobody waits for the disk");
    let unsure = store.append(append("b", vec![1])).await.unwrap_err();
    assert!(matches!(&unsure, AppendError::Store(error) if error.kind == ErrorKind::Timeout), "{unsure}");
    let refused = store.append(append("c", vec![1])).await.unwrap_err();
    assert!(
        matches!(&refused, AppendError::Store(error) if error.kind == ErrorKind::Unavailable),
        "{refused}"
    );
    assert!(!store.is_open());
}

#[tokio::test]
async fn what_is_promised_is_given_when_it_is_committed_and_kept_when_it_is_on_the_disk() {
    let (_folder, store) = store();
    let promised = Append { durability: Durability::Promised, ..append("a", vec![1]) };
    let promise = store.append(promised).await.unwrap().promise.expect("one who waits for the disk");
    assert_eq!(EventLog::read(&store, &execution("a"), Version(0)).await.unwrap().len(), 1);
    promise.kept().await.unwrap();
    assert!(store.append(append("b", vec![1])).await.unwrap().promise.is_none());
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_promise_that_cannot_be_kept_is_told_and_nothing_is_written_after_it() {
    let (folder, store) = store();
    std::fs::remove_file(folder.path().join("pyoco.db-wal")).unwrap();
    let promised = Append { durability: Durability::Promised, ..append("a", vec![1]) };
    let promise = store.append(promised).await.unwrap().promise.expect("one who waits for the disk");
    assert_eq!(promise.kept().await.unwrap_err().kind, ErrorKind::Timeout);
    let progress = Append { durability: Durability::Process, ..append("b", vec![1]) };
    let refused = store.append(progress).await.unwrap_err();
    assert!(
        matches!(&refused, AppendError::Store(error) if error.kind == ErrorKind::Unavailable),
        "{refused}"
    );
    assert!(!store.is_open());
}

#[tokio::test]
async fn what_is_small_and_needs_no_disk_is_written_by_who_wants_it_and_otherwise_in_its_turn() {
    let (_folder, store) = store();
    let on_thread = |durability| {
        let (told, heard) = tokio::sync::oneshot::channel();
        let mut told = Some(told);
        let work = move |_: &Connection| {
            let _ = told.take().map(|told| told.send(std::thread::current().id()));
            Ok(())
        };
        let written = store.main().write_briefly(terms(durability), work);
        async move { written.await.map(|_| ()).and(Ok::<_, StoreError>(heard.await.unwrap())).unwrap() }
    };
    let here = std::thread::current().id();
    assert_eq!(on_thread(Durability::Process).await, here);
    assert_ne!(on_thread(Durability::Full).await, here);
    // Somebody writes: nobody waits for that with a thread of its own, and who comes next may find company, too.
    assert_ne!(together(&store, on_thread(Durability::Process)).await, here);
    assert_ne!(on_thread(Durability::Process).await, here);
    store.close().await.unwrap();
}

#[tokio::test]
async fn what_breaks_down_in_the_middle_of_a_transaction_is_not_gone_on_with() {
    let (_folder, store) = store();
    let broken = {
        let store = store.clone();
        tokio::spawn(async move {
            let work = |connection: &Connection| -> rusqlite::Result<()> {
                connection.execute("INSERT INTO blobs (digest, bytes) VALUES ('half', x'00')", ())?;
                panic!("as a test wants it")
            };
            store.main().write_briefly(terms(Durability::Process), work).await.map(|_| ())
        })
    };
    assert!(broken.await.unwrap_err().is_panic());
    let refused = store.append(append("a", vec![1])).await.unwrap_err();
    assert!(refused.to_string().contains("restart"), "{refused}");
    assert!(!store.is_open());
    let left = store.read("test", |connection| {
        connection.query_row("SELECT count(*) FROM blobs", (), |row| row.get::<_, i64>(0))
    });
    assert_eq!(left.await.unwrap(), 0);
}

#[tokio::test]
async fn the_write_ahead_log_is_looked_after_also_when_nobody_needs_the_disk() {
    let (folder, store) = store();
    for version in 0..120_u64 {
        let big = Append {
            durability: Durability::Process,
            expected: Version(version),
            ..append("e", vec![7; 500_000])
        };
        store.append(big).await.unwrap();
    }
    let wal = folder.path().join("pyoco.db-wal");
    let left = std::fs::metadata(&wal).unwrap().len();
    assert!(left < 45_000_000, "{left}");
    let emptied = async {
        while std::fs::metadata(&wal).unwrap().len() > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), emptied).await.unwrap();
}

#[tokio::test]
async fn a_command_that_fails_by_itself_leaves_nothing_and_harms_nobody() {
    let (_folder, store) = store();
    let failing = store.write(terms(Durability::Full), |connection| {
        connection.execute("INSERT INTO blobs (digest, bytes) VALUES ('half', x'00')", ())?;
        connection.execute("INSERT INTO blobs (digest, bytes) VALUES ('half', x'01')", ())
    });
    let (before, failed, after) = together(&store, async {
        tokio::join!(biased; store.append(append("a", vec![1])), failing, store.append(append("b", vec![1])))
    })
    .await;
    assert!(before.is_ok() && failed.is_err() && after.is_ok());
    let count = |sql: &'static str| {
        store.read("count", move |connection| connection.query_row(sql, (), |row| row.get::<_, i64>(0)))
    };
    assert_eq!(count("SELECT count(*) FROM blobs").await.unwrap(), 0);
    assert_eq!(count("SELECT count(*) FROM records").await.unwrap(), 2);
}

#[tokio::test]
async fn after_an_error_of_the_disk_nothing_is_written_any_more() {
    let (_folder, store) = store();
    store.append(append("a", vec![1])).await.unwrap();
    let broken = store.write(terms(Durability::Full), |_| -> rusqlite::Result<()> {
        Err(rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR_FSYNC),
            None,
        ))
    });
    let (before, broken, after) = together(&store, async {
        tokio::join!(biased; store.append(append("b", vec![1])), broken, store.append(append("c", vec![1])))
    })
    .await;
    assert!(before.is_err() && broken.is_err() && after.is_err());
    let later = store.append(append("d", vec![1])).await.unwrap_err();
    assert!(later.to_string().contains("restart"), "{later}");
    for (execution, records) in [("a", 1), ("b", 0), ("c", 0), ("d", 0)] {
        let id = ExecutionId::new(execution).unwrap();
        assert_eq!(EventLog::read(&store, &id, Version(0)).await.unwrap().len(), records, "{execution}");
    }
    assert!(store.close().await.is_err());
}

#[tokio::test]
async fn a_blob_that_was_changed_on_disk_is_not_given_out() {
    let (_folder, store) = store();
    let digest = store.put_blob(&execution("a"), b"what was said").await.unwrap();
    store
        .write(terms(Durability::Full), |connection| connection.execute("UPDATE blobs SET bytes = x'00'", ()))
        .await
        .unwrap();
    assert_eq!(store.get_blob(&digest).await.unwrap_err().kind, ErrorKind::Corrupt);
}

#[tokio::test]
async fn a_log_with_a_hole_is_not_given_out() {
    let (_folder, store) = store();
    let id = ExecutionId::new("e").unwrap();
    for version in 0..3 {
        store.append(Append::new(id.clone(), Version(version), vec![1])).await.unwrap();
    }
    store
        .write(terms(Durability::Full), |connection| {
            connection.execute("DELETE FROM records WHERE version = 2", ())
        })
        .await
        .unwrap();
    assert_eq!(EventLog::read(&store, &id, Version(0)).await.unwrap_err().kind, ErrorKind::Corrupt);
    assert_eq!(EventLog::read(&store, &id, Version(2)).await.unwrap().len(), 1);
}

#[tokio::test]
async fn the_write_ahead_log_is_moved_into_the_file_while_there_is_much_of_it() {
    let (folder, store) = store();
    for round in 0..120_u64 {
        let mut big = append("e", vec![7; 500_000]);
        big.expected = Version(round);
        store.append(big).await.unwrap();
    }
    // 60 MB went through it; what was moved makes room for what comes.
    let left = std::fs::metadata(folder.path().join("pyoco.db-wal")).unwrap().len();
    assert!(left < 30_000_000, "{left}");
}

#[tokio::test]
async fn a_pause_empties_the_write_ahead_log() {
    let (folder, store) = store();
    store.append(append("e", vec![7; 10_000])).await.unwrap();
    let wal = folder.path().join("pyoco.db-wal");
    let emptied = async {
        while std::fs::metadata(&wal).unwrap().len() > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), emptied).await.unwrap();
    store.append(append("f", vec![7])).await.unwrap();
}

#[tokio::test]
async fn somebody_who_reads_for_long_stops_nobody() {
    let (folder, store) = store();
    let reader = crate::connection::reader(&folder.path().join("pyoco.db")).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM records").unwrap();
    for round in 0..12_u64 {
        let mut big = append("e", vec![7; 1_000_000]);
        big.expected = Version(round);
        store.append(big).await.unwrap();
    }
    let seen: i64 = reader.query_row("SELECT count(*) FROM records", (), |row| row.get(0)).unwrap();
    assert_eq!(seen, 0);
    drop(reader);
    store.close().await.unwrap();
}

const OPEN: LogTerms = LogTerms { max_bytes: 1_000_000_000, closes: false };

/// Lines of so many bytes in all.
fn lines(count: usize, bytes: usize) -> Vec<LogLine> {
    let line = LogLine {
        node: Some(NodeId::new("node").unwrap()),
        attempt: Attempt(1),
        stream: LogStream::Stdout,
        at: Timestamp::from_micros(7),
        text: "x".repeat(bytes / count),
    };
    vec![line; count]
}

#[tokio::test]
async fn a_flood_of_lines_delays_no_command_and_whoever_writes_them_waits() {
    let (_folder, store) = store();
    // The writer of lines is held, as by a slow disk.
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let (holding, held) = tokio::sync::oneshot::channel();
    let mut holding = Some(holding);
    let holder = store.clone();
    let hold = tokio::spawn(async move {
        let work = move |_: &Connection| {
            let _ = holding.take().map(|holding| holding.send(()));
            let _ = wait.recv();
            Ok(())
        };
        holder.logs().write(terms(Durability::Process), 1, work).await
    });
    held.await.unwrap();
    let id = ExecutionId::new("e").unwrap();
    // 40 MB and one that is larger than the whole inbox: more than may wait, and nobody is refused.
    let mut floods: tokio::task::JoinSet<_> = (0..20)
        .map(|number| {
            let (store, id) = (store.clone(), id.clone());
            let megabytes = if number == 10 { 20 } else { 2 };
            async move { store.write_lines(&id, lines(100, megabytes * 1_000_000), OPEN).await }
        })
        .collect();
    for version in 0..50 {
        let mut append = append("e", vec![1]);
        append.expected = Version(version);
        store.append(append).await.unwrap();
    }
    assert_eq!(EventLog::read(&store, &id, Version(0)).await.unwrap().len(), 50);
    assert!(floods.try_join_next().is_none(), "nothing can have been written");
    assert_eq!(store.read_lines(&id, 0, 1).await.unwrap(), []);
    go.send(()).unwrap();
    hold.await.unwrap().unwrap();
    while let Some(flood) = floods.join_next().await {
        flood.unwrap().unwrap();
    }
    assert_eq!(store.read_lines(&id, 1_990, usize::MAX).await.unwrap().len(), 10);
    store.close().await.unwrap();
}

#[tokio::test]
async fn lines_do_not_wait_for_the_disk() {
    let (folder, store) = store();
    std::fs::remove_file(folder.path().join("pyoco-logs.db-wal")).unwrap();
    store.write_lines(&ExecutionId::new("e").unwrap(), lines(1, 10), OPEN).await.unwrap();
    store.write_lines(&ExecutionId::new("f").unwrap(), lines(1, 10), OPEN).await.unwrap();
}

#[tokio::test]
async fn a_broken_file_of_lines_stops_no_command() {
    let (_folder, store) = store();
    let id = ExecutionId::new("e").unwrap();
    store.write_lines(&id, lines(3, 30), OPEN).await.unwrap();
    let broken = store.logs().write(terms(Durability::Process), 1, |_| -> rusqlite::Result<()> {
        Err(rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR_WRITE),
            None,
        ))
    });
    broken.await.unwrap_err();
    let refused = store.write_lines(&id, lines(3, 30), OPEN).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Unavailable);
    store.append(append("e", vec![1])).await.unwrap();
    assert_eq!(store.read_lines(&id, 0, 9).await.unwrap().len(), 3);
    // Closing says so, after it has closed both.
    assert!(store.close().await.is_err());
}
