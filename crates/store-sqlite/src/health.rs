//! A look at a folder that changes nothing: whether its files are whole, how large they are, who may read them, and what stands in
//! them that should not. A server may have the folder meanwhile: everything about executions is as of one moment, so that what changes
//! meanwhile is not taken for damage.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use pyoco_core::ids::{ExecutionId, Version};
use pyoco_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension as _};

use crate::open::{self, LOCK, OpenError};
use crate::schema::{self, Schema};
use crate::{SqliteStore, connection, wheels};

/// Flaws of a file that are named, at most.
const NAMED: usize = 5;

/// A folder, opened for looking.
#[derive(Debug)]
pub struct Examination {
    folder: PathBuf,
    /// In a transaction from its first look to its end.
    main: Connection,
    logs: Option<Connection>,
}

/// How a file of the folder stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileHealth {
    /// What it is called.
    pub name: String,
    /// How long it is.
    pub bytes: u64,
    /// How long its write-ahead log is.
    pub wal_bytes: u64,
    /// The schema that it has.
    pub schema: i32,
    /// The schema that this program writes.
    pub newest_schema: i32,
    /// Pages that hold nothing, as bytes.
    pub free_bytes: u64,
}

/// Something in the folder that others may read or write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenToOthers {
    /// Which.
    pub path: PathBuf,
    /// Its permissions.
    pub mode: u32,
    /// Whether it is a folder.
    pub is_folder: bool,
}

/// An execution as the list has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Which.
    pub execution: ExecutionId,
    /// The record that the list shows.
    pub version: Version,
    /// When it changed last.
    pub updated_at: Timestamp,
}

/// Work that should have gone on, and has not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overdue {
    /// Executions that want a worker and stand in no queue.
    pub without_job: Vec<ExecutionId>,
    /// Executions whose time has come.
    pub timers: Vec<ExecutionId>,
}

impl SqliteStore {
    /// The version of SQLite that this program was built with, and whether it is one that loses nothing.
    pub fn sqlite_version() -> (&'static str, bool) {
        (rusqlite::version(), open::good_sqlite().is_ok())
    }

    /// Whether a process has the folder now. The lock is tried for a moment; who starts in that very moment is refused.
    pub fn is_in_use(folder: &Path) -> io::Result<bool> {
        let file = match File::open(folder.join(LOCK)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        match fs4::FileExt::try_lock_shared(&file) {
            Ok(()) => Ok(false),
            Err(fs4::TryLockError::WouldBlock) => Ok(true),
            Err(fs4::TryLockError::Error(error)) => Err(error),
        }
    }

    /// Opens the files of a folder for looking. Nothing is made, put right or brought to a newer schema.
    pub fn examine(folder: &Path) -> Result<Examination, OpenError> {
        let main = look_into(folder, &schema::MAIN)?
            .ok_or_else(|| open::io_error(&folder.join(schema::MAIN.file), io::ErrorKind::NotFound.into()))?;
        let begun = main.execute_batch("BEGIN");
        begun.map_err(|error| open::sql_error(&folder.join(schema::MAIN.file), error))?;
        Ok(Examination { folder: folder.to_owned(), main, logs: look_into(folder, &schema::LOGS)? })
    }

    /// What in the folder others than its owner may read or write.
    pub fn open_to_others(folder: &Path) -> io::Result<Vec<OpenToOthers>> {
        let mut found = Vec::new();
        let mut look = |path: PathBuf| -> io::Result<()> {
            let data = match std::fs::symlink_metadata(&path) {
                Ok(data) => data,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(error) => return Err(error),
            };
            let mode = mode(&data);
            if mode & 0o077 != 0 {
                found.push(OpenToOthers { path, mode, is_folder: data.is_dir() });
            }
            Ok(())
        };
        look(folder.to_owned())?;
        for schema in [&schema::MAIN, &schema::LOGS] {
            for end in ["", "-wal", "-shm"] {
                look(folder.join(format!("{}{end}", schema.file)))?;
            }
        }
        let wheels = folder.join(wheels::files::FOLDER);
        look(wheels.clone())?;
        match std::fs::read_dir(&wheels) {
            Ok(entries) => entries.into_iter().try_for_each(|entry| look(entry?.path()))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        Ok(found)
    }

    /// How much room the disk of a folder has, and how much it has in all.
    pub fn room(folder: &Path) -> io::Result<(u64, u64)> {
        Ok((fs4::available_space(folder)?, fs4::total_space(folder)?))
    }
}

impl Examination {
    /// The files, the one of the executions first.
    pub fn files(&self) -> Result<Vec<FileHealth>, OpenError> {
        let both = [(&schema::MAIN, Some(&self.main)), (&schema::LOGS, self.logs.as_ref())];
        let there = both.into_iter().filter_map(|(schema, connection)| Some((schema, connection?)));
        there.map(|(schema, connection)| self.file(schema, connection)).collect()
    }

    fn file(&self, schema: &Schema, connection: &Connection) -> Result<FileHealth, OpenError> {
        let path = self.folder.join(schema.file);
        let size = |path: &Path| match std::fs::metadata(path) {
            Ok(data) => Ok(data.len()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(open::io_error(path, error)),
        };
        let number = |pragma| {
            let read = connection.pragma_query_value(None, pragma, |row| row.get::<_, u64>(0));
            read.map_err(|error| open::sql_error(&path, error))
        };
        Ok(FileHealth {
            name: schema.file.to_owned(),
            bytes: size(&path)?,
            wal_bytes: size(&self.folder.join(format!("{}-wal", schema.file)))?,
            schema: connection::user_version(connection).map_err(|error| open::sql_error(&path, error))?,
            newest_schema: schema.newest(),
            free_bytes: number("freelist_count")?.saturating_mul(number("page_size")?),
        })
    }

    /// Checks the whole files, and with `deep` also that their indexes agree with their tables. Every flaw with its file, some at
    /// most. It takes about a second for each gigabyte, `deep` several.
    pub fn flaws(&self, deep: bool) -> Result<Vec<(String, String)>, OpenError> {
        let pragma = if deep { "integrity_check" } else { "quick_check" };
        let mut flaws = Vec::new();
        let both = [(&schema::MAIN, Some(&self.main)), (&schema::LOGS, self.logs.as_ref())];
        for (schema, connection) in both {
            let Some(connection) = connection else { continue };
            let asked = || -> rusqlite::Result<Vec<String>> {
                let mut statement = connection.prepare(&format!("PRAGMA {pragma}({NAMED})"))?;
                let lines = statement.query_map((), |row| row.get::<_, String>(0))?;
                lines.collect()
            };
            let lines = match asked() {
                Ok(lines) => lines,
                Err(error) => vec![open::sql_error(&self.folder.join(schema.file), error).to_string()],
            };
            flaws.extend(
                lines.into_iter().filter(|line| line != "ok").map(|line| (schema.file.to_owned(), line)),
            );
        }
        Ok(flaws)
    }

    /// The executions that changed last, the newest first, but for those that are being removed.
    pub fn newest(&self, limit: usize) -> Result<Vec<Listed>, OpenError> {
        let rows = self.rows("execution, version, updated_at", "TRUE")?;
        let sql = format!("{rows} ORDER BY updated_at DESC, execution DESC LIMIT ?1");
        self.listed(&sql, [bound(limit)])
    }

    /// Executions in the order of their names, those behind `after` (all are behind an empty one), but for those that are being
    /// removed.
    pub fn behind(&self, after: &str, limit: usize) -> Result<Vec<Listed>, OpenError> {
        let rows = self.rows("execution, version, updated_at", "execution > ?1")?;
        let sql = format!("{rows} ORDER BY execution LIMIT ?2");
        self.listed(&sql, (after, bound(limit)))
    }

    /// The query for columns of the rows of executions, as `runs`, for which a condition holds: of each the newest one, also if it was only
    /// laid aside by a process that was killed. What is left of executions that are being removed says nothing about the file.
    fn rows(&self, columns: &str, condition: &str) -> Result<String, OpenError> {
        let (is_left, is_late) = (self.has("tombstones")?, self.has("unsettled")?);
        let without = |table: &str| {
            format!(" AND NOT EXISTS (SELECT 1 FROM {table} WHERE {table}.execution = runs.execution)")
        };
        let stays = if is_left { without("tombstones") } else { String::new() };
        let settled = format!("SELECT {columns} FROM runs WHERE {condition}{stays}");
        Ok(if is_late {
            let late = format!("SELECT {columns} FROM unsettled AS runs WHERE {condition}{stays}");
            format!("{settled}{} UNION ALL {late}", without("unsettled"))
        } else {
            settled
        })
    }

    /// Whether the file has a table. An older one may not.
    fn has(&self, table: &str) -> Result<bool, OpenError> {
        let sql = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = ?1)";
        self.asked(|connection| connection.query_row(sql, [table], |row| row.get(0)))
    }

    fn listed(&self, sql: &str, given: impl rusqlite::Params) -> Result<Vec<Listed>, OpenError> {
        self.asked(|connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map(given, |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, u64>(1)?, row.get::<_, i64>(2)?))
            })?;
            let mut listed = Vec::new();
            for row in rows {
                let (execution, version, updated_at) = row?;
                // A name that cannot be one is found by nobody: the check of the file says more.
                if let Ok(execution) = ExecutionId::new(&execution) {
                    let updated_at = Timestamp::from_micros(updated_at);
                    listed.push(Listed { execution, version: Version(version), updated_at });
                }
            }
            Ok(listed)
        })
    }

    /// The records of an execution, in their order.
    pub fn records(&self, execution: &ExecutionId) -> Result<Vec<Vec<u8>>, OpenError> {
        self.asked(|connection| {
            let mut statement = connection
                .prepare_cached("SELECT bytes FROM records WHERE execution = ?1 ORDER BY version")?;
            statement.query_map([execution.as_str()], |row| row.get(0))?.collect()
        })
    }

    /// Work that should have gone on before an instant, some of it at most.
    pub fn overdue(&self, before: Timestamp, limit: usize) -> Result<Overdue, OpenError> {
        let lacks_job = "wants_job = 1 AND updated_at < ?1
            AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.execution = runs.execution)";
        let without_job = format!("{} LIMIT ?2", self.rows("execution", lacks_job)?);
        let timers = self.rows("execution, next_timer", "next_timer < ?1")?;
        let timers = format!("{timers} ORDER BY next_timer, execution LIMIT ?2");
        let found = |sql: String| {
            self.asked(|connection| {
                let mut statement = connection.prepare(&sql)?;
                let rows =
                    statement.query_map((before.as_micros(), bound(limit)), |row| row.get::<_, String>(0))?;
                let names: Vec<String> = rows.collect::<rusqlite::Result<_>>()?;
                Ok(names.iter().filter_map(|name| ExecutionId::new(name).ok()).collect::<Vec<_>>())
            })
        };
        Ok(Overdue { without_job: found(without_job)?, timers: found(timers)? })
    }

    /// Executions that want a worker or that a worker has.
    pub fn unfinished(&self) -> Result<u64, OpenError> {
        let rows = self.rows("execution", "status IN ('PENDING', 'RUNNING', 'CANCELLING')")?;
        let sql = format!("SELECT count(*) FROM ({rows})");
        self.asked(|connection| connection.query_row(&sql, (), |row| row.get(0)))
    }

    /// The tags of executions that want a worker and that nobody holds.
    pub fn waiting_tags(&self) -> Result<Vec<String>, OpenError> {
        let rows = self.rows("tag", "wants_job = 1 AND tag IS NOT NULL")?;
        let sql = format!("SELECT DISTINCT tag FROM ({rows}) ORDER BY tag");
        self.asked(|connection| {
            let mut statement = connection.prepare(&sql)?;
            statement.query_map((), |row| row.get(0))?.collect()
        })
    }

    /// How many dead letters there are.
    pub fn letters(&self) -> Result<u64, OpenError> {
        self.asked(|connection| {
            connection.query_row("SELECT count(*) FROM dead_letters", (), |row| row.get(0))
        })
    }

    /// The records of workers, the one seen last first, and when each was seen.
    pub fn workers(&self, limit: usize) -> Result<Vec<(Vec<u8>, Timestamp)>, OpenError> {
        self.asked(|connection| {
            let sql = "SELECT body, seen_at FROM workers WHERE hidden = 0 ORDER BY seen_at DESC LIMIT ?1";
            let mut statement = connection.prepare(sql)?;
            let rows = statement
                .query_map([bound(limit)], |row| Ok((row.get(0)?, Timestamp::from_micros(row.get(1)?))))?;
            rows.collect()
        })
    }

    /// The latest time that stands in the file.
    pub fn latest(&self) -> Result<Option<Timestamp>, OpenError> {
        let rows = self.rows("updated_at", "TRUE")?;
        let sql = format!("{rows} ORDER BY updated_at DESC LIMIT 1");
        self.asked(|connection| {
            let found: Option<i64> = connection.query_row(&sql, (), |row| row.get(0)).optional()?;
            Ok(found.map(Timestamp::from_micros))
        })
    }

    fn asked<T>(&self, ask: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, OpenError> {
        ask(&self.main).map_err(|error| open::sql_error(&self.folder.join(schema::MAIN.file), error))
    }
}

/// Opens a file of the folder for looking, if it is there.
fn look_into(folder: &Path, schema: &Schema) -> Result<Option<Connection>, OpenError> {
    if !open::is_there(folder, schema)? {
        return Ok(None);
    }
    let file = folder.join(schema.file);
    let has_wal = folder.join(format!("{}-wal", schema.file)).exists();
    let opened = if has_wal { connection::reader(&file) } else { connection::bystander(&file) };
    opened.map(Some).map_err(|error| open::sql_error(&file, error))
}

fn bound(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

#[cfg(unix)]
fn mode(data: &std::fs::Metadata) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&data.permissions()) & 0o777
}

/// Elsewhere permissions are no such numbers.
#[cfg(not(unix))]
const fn mode(_data: &std::fs::Metadata) -> u32 {
    0o600
}
