//! A disk that lies: a record that was changed, or is not there any more, is found by the auditor wherever it stands, and is never
//! shown as if it were true.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::path::Path;
use std::sync::Arc;

use pyoco_chaos::scenes::{label, submit};
use pyoco_core::ids::ExecutionId;
use pyoco_engine::{Engine, Finding, Settings};
use pyoco_server::{RandomIds, SystemClock};
use pyoco_store_sqlite::SqliteStore;
use rusqlite::Connection;

/// So many records each execution has.
const RECORDS: i64 = 6;

fn engine(folder: &Path) -> (Engine, SqliteStore) {
    let store = SqliteStore::open(folder, Default::default()).unwrap();
    let shared = Arc::new(store.clone());
    (Engine::new(shared, Arc::new(SystemClock), Arc::new(RandomIds), Settings::default()), store)
}

/// An execution with some records, in a store that is closed again.
async fn execution(folder: &Path) -> ExecutionId {
    let (engine, store) = engine(folder);
    let execution = submit(&engine).await;
    for number in 1..RECORDS {
        label(&engine, &execution, &format!("label-{number}")).await.unwrap();
    }
    drop(engine);
    store.close().await.unwrap();
    execution
}

/// Changes the file behind the store's back, and asks the auditor.
async fn audited(lie: impl FnOnce(&Connection)) -> Vec<Finding> {
    let folder = tempfile::tempdir().unwrap();
    let execution = execution(folder.path()).await;
    let connection = Connection::open(folder.path().join("pyoco.db")).unwrap();
    lie(&connection);
    connection.close().unwrap();
    let (engine, _store) = engine(folder.path());
    engine.audit(&execution).await.unwrap().findings
}

/// Turns one bit of a record, here and there.
async fn flipped(version: i64) {
    for place in 0..10 {
        let findings = audited(|connection| {
            let wanted = "SELECT bytes FROM records WHERE version = ?1";
            let mut bytes: Vec<u8> = connection.query_row(wanted, [version], |row| row.get(0)).unwrap();
            let place = bytes.len() * place / 10;
            bytes[place] ^= 1;
            let changed =
                connection.execute("UPDATE records SET bytes = ?1 WHERE version = ?2", (bytes, version));
            assert_eq!(changed, Ok(1));
        })
        .await;
        assert_ne!(findings, [], "record {version}, {place} tenths into it");
    }
}

#[tokio::test]
async fn a_bit_that_was_turned_at_the_beginning_or_in_the_middle_is_found() {
    flipped(1).await;
    flipped(RECORDS / 2).await;
}

#[tokio::test]
async fn a_record_that_is_gone_is_found_wherever_it_stood() {
    for version in 1..=RECORDS {
        let findings = audited(|connection| {
            let gone = connection.execute("DELETE FROM records WHERE version = ?1", [version]);
            assert_eq!(gone, Ok(1));
        })
        .await;
        let is_found = findings
            .iter()
            .any(|finding| matches!(finding, Finding::BrokenLog(_) | Finding::TailLost { .. }));
        assert!(is_found, "record {version}: {findings:?}");
    }
}

#[tokio::test]
async fn what_nobody_has_touched_is_sound() {
    assert_eq!(audited(|_| {}).await, []);
}
