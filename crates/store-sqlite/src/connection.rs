//! The only place where a `Connection` is made: what holds for the writer and what for readers.
//! Which file may be opened at all is decided in `open`.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::schema::Schema;

/// How long SQLite waits for somebody else's lock, e.g. of a user with `sqlite3`.
const BUSY: Duration = Duration::from_secs(5);
/// A write-ahead log that grew beyond this (because a reader held it) is cut when it starts anew.
const JOURNAL_SIZE_LIMIT: i64 = 64 * 1024 * 1024;
/// Every statement of this crate fits, with the variants of the list that are in use at one time.
const CACHED_STATEMENTS: usize = 96;

/// Opens the file for writing. Never makes one.
pub(crate) fn writer(path: &Path, schema: &Schema) -> rusqlite::Result<Connection> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    // When a commit is on the disk is seen to in `writer`.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    // Elsewhere than on macOS these do nothing; there a plain fsync does not reach the disk.
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "checkpoint_fullfsync", true)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "journal_size_limit", JOURNAL_SIZE_LIMIT)?;
    connection.pragma_update(None, "cache_size", -schema.cache)?;
    Ok(connection)
}

/// Lets the writer wait for no disk: its file is gone with the process.
pub(crate) fn without_disk(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "synchronous", "OFF")
}

/// Opens the file for reading. It must have been opened by the writer, who has recovered it.
pub(crate) fn reader(path: &Path) -> rusqlite::Result<Connection> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

/// Opens a file that nobody writes for looking, and leaves nothing beside it: not even a lock.
pub(crate) fn bystander(path: &Path) -> rusqlite::Result<Connection> {
    let Some(text) = path.to_str() else { return reader(path) };
    let text = text.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let address = format!("file:{text}?immutable=1");
    let connection =
        open(Path::new(&address), OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

/// Turns an empty file into a store, everything of it in the file itself and nothing in a write-ahead log beside it.
pub(crate) fn create(path: &Path, schema: &Schema) -> rusqlite::Result<()> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    // Takes effect only before the first table.
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    connection.pragma_update(None, "application_id", schema.application_id)?;
    schema.migrate(&connection)?;
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.close().map_err(|(_, error)| error)
}

/// Opens an empty file for a copy of another, which nobody else knows and which is put on the disk as a whole.
pub(crate) fn target(path: &Path) -> rusqlite::Result<Connection> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    without_disk(&connection)?;
    Ok(connection)
}

/// Puts everything of a file into the file itself, so that nothing stands beside it.
pub(crate) fn leave_alone(connection: &Connection) -> rusqlite::Result<()> {
    // Only whoever has read of it knows that the file wants a write-ahead log.
    connection.query_row("SELECT count(*) FROM sqlite_schema", (), |_| Ok(()))?;
    connection.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(()))
}

/// The schema that the file has.
pub(crate) fn user_version(connection: &Connection) -> rusqlite::Result<i32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Whether SQLite will wait for others (the rule) or not at all.
pub(crate) fn patient(connection: &Connection, patient: bool) -> rusqlite::Result<()> {
    connection.busy_timeout(if patient { BUSY } else { Duration::ZERO })
}

fn open(path: &Path, mode: OpenFlags) -> rusqlite::Result<Connection> {
    // A connection is used by one thread at a time, so SQLite need not lock it.
    let connection = Connection::open_with_flags(path, mode | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    patient(&connection, true)?;
    connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    // A plan is made once for each statement. Otherwise SQLite looks at what is bound, e.g. to LIMIT, and makes a plan for each use.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "mmap_size", 0)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    // Checkpoints are the writer's: see `writer`.
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(connection: &Connection, pragma: &str) -> String {
        let number = connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
        number
            .map(|number| number.to_string())
            .unwrap_or_else(|_| connection.pragma_query_value(None, pragma, |row| row.get(0)).unwrap())
    }

    #[test]
    fn the_settings_of_writer_and_reader_are_in_force() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        std::fs::write(&path, b"").unwrap();
        create(&path, &crate::schema::MAIN).unwrap();
        let (writer, reader) = (writer(&path, &crate::schema::MAIN).unwrap(), reader(&path).unwrap());
        let wanted = [
            ("journal_mode", "wal"),
            ("synchronous", "1"),
            ("foreign_keys", "1"),
            ("busy_timeout", "5000"),
            ("trusted_schema", "0"),
            ("cell_size_check", "1"),
            ("mmap_size", "0"),
            ("wal_autocheckpoint", "0"),
            ("journal_size_limit", "67108864"),
            ("cache_size", "-16384"),
            ("temp_store", "2"),
            ("auto_vacuum", "2"),
            ("application_id", "1350127459"),
        ];
        for (pragma, value) in wanted {
            assert_eq!(text(&writer, pragma), value, "{pragma}");
        }
        assert_eq!(user_version(&writer).unwrap(), crate::schema::MAIN.newest());
        for (pragma, value) in [("query_only", "1"), ("wal_autocheckpoint", "0"), ("trusted_schema", "0")] {
            assert_eq!(text(&reader, pragma), value, "{pragma}");
        }
        assert!(reader.execute_batch("DELETE FROM runs").is_err());
    }
}
