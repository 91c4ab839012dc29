//! What the operator is told. Alone in its process: other threads that meet the same message while nobody listens to them
//! would switch it off for this one too.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use std::io;
use std::sync::{Arc, Mutex};

use pyoco_store_sqlite::{Options, SqliteStore};
use tempfile::tempdir;

/// Where what the operator is told goes to.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<u8>>>);

impl io::Write for Told {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn the_operator_is_told_what_was_set_aside_and_where_it_is() {
    let folder = tempdir().unwrap();
    std::fs::write(folder.path().join("pyoco-logs.db"), b"garbage").unwrap();
    let told = Told::default();
    let writer = told.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    tracing::subscriber::with_default(subscriber, || {
        drop(SqliteStore::open(folder.path(), Options::default()).unwrap());
    });
    let told = String::from_utf8(told.0.lock().unwrap().clone()).unwrap();
    for word in ["WARN", "pyoco-logs.db.damaged-1", "it is not an SQLite database"] {
        assert!(told.contains(word), "{word} is not in: {told}");
    }
}
