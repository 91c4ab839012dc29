//! Opening a folder: which file is ours and whole, which is refused and why, and how a new one is made.
//! An existing file is never made anew and never deleted. What happens to a damaged file of lines is in `aside`.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pyoco_figures::Figures;
use rusqlite::Connection;

use crate::database::Around;
use crate::database::{Database, Settings};
use crate::queue::SharedLines;
use crate::schema::Schema;
use crate::wheels::{self, Shelf};
use crate::{SqliteStore, aside, connection, schema, store, unsettled};

/// The file that says that a folder is in use.
pub(crate) const LOCK: &str = "pyoco.lock";

/// Unless it is said otherwise: 90 days.
pub(crate) const WHEEL_HISTORY_TTL: Duration = Duration::from_secs(7_776_000);

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// When the whole file is checked before it is used.
    pub check: Check,
    /// Who counts the transactions.
    pub figures: Figures,
    /// How long the history of wheels is kept; zero: for ever.
    pub wheel_history_ttl: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { check: Check::default(), figures: Figures::default(), wheel_history_ttl: WHEEL_HISTORY_TTL }
    }
}

/// When the whole file is checked, which takes about a second for each gigabyte.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Check {
    /// When it was not closed the last time. The file of lines is checked when damage was met in it.
    #[default]
    AfterCrash,
    /// Every time.
    Always,
    /// Not at all; damage is found when it is met.
    Never,
}

/// Why a folder was not opened. Nothing in it was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it open.
    #[error("{} is in use by another process; stop that one, or use another folder", .folder.display())]
    Locked {
        /// Which folder.
        folder: PathBuf,
    },
    /// A database, but of another program.
    #[error("{} belongs to another program; use another folder", .file.display())]
    NotOurs {
        /// Which file.
        file: PathBuf,
    },
    /// Written by a later version of this program.
    #[error(
        "the data has schema {found} and this program knows up to {supported}; use the program that wrote it, or a later one"
    )]
    Newer {
        /// The schema of the file.
        found: i32,
        /// The newest schema of this program.
        supported: i32,
    },
    /// SQLite itself is one that may lose data.
    #[error("SQLite {0} may lose data; build with 3.51.3 or later, but not 3.52.0")]
    BadSqlite(&'static str),
    /// It may not be written.
    #[error("{} cannot be written; check its owner, its permissions and that the disk is not read-only", .path.display())]
    NotWritable {
        /// What cannot be written.
        path: PathBuf,
    },
    /// It is not a whole database.
    #[error("{} is damaged ({reason}); nothing was changed: keep a copy, then restore a backup or try sqlite3's .recover", .file.display())]
    Corrupt {
        /// Which file.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The system refused.
    #[error("{} cannot be opened: {source}; check the disk and the path", .path.display())]
    Io {
        /// What was being opened.
        path: PathBuf,
        /// What the system said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl SqliteStore {
    /// Whether there is a store in a folder, whole or not.
    pub fn is_in(folder: &Path) -> bool {
        folder.join(schema::MAIN.file).exists()
    }

    /// Opens the store in a folder and makes both if they are missing. Blocks, for long when the whole file is checked.
    pub fn open(folder: &Path, options: Options) -> Result<Self, OpenError> {
        good_sqlite()?;
        make_folder(folder).map_err(|error| io_error(folder, error))?;
        let lock = lock(folder)?;
        let (file, connection) = open_file(folder, &schema::MAIN, options.check)?;
        settle(&connection).map_err(|error| sql_error(&file, error))?;
        tidy_wheels(folder, &connection).map_err(|error| sql_error(&file, error))?;
        let (log_file, log_connection) = aside::open_logs(folder, options.check)?;
        let lines = SharedLines::load(&connection).map_err(|error| sql_error(&file, error))?;
        let figures = options.figures;
        let around = Around { mark: None, figures: figures.clone(), follower: Some(Arc::new(lines.clone())) };
        let main = start(&file, connection, store::MAIN, around)?;
        let around = Around { mark: Some(aside::mark_in(folder)), figures, follower: None };
        let logs = start(&log_file, log_connection, store::LOGS, around)?;
        let shelf = Shelf::new(folder, options.wheel_history_ttl);
        Ok(Self::new(main, lines, logs, lock, shelf, None))
    }
}

/// Puts the rows into the index that a process before has laid aside.
fn settle(connection: &Connection) -> rusqlite::Result<()> {
    let step = connection.unchecked_transaction()?;
    unsettled::settle(&step)?;
    step.commit()
}

/// Removes what uploads of wheels have left that did not come to their end. That is no reason not to start.
fn tidy_wheels(folder: &Path, connection: &Connection) -> rusqlite::Result<()> {
    let named = wheels::named(connection)?;
    match wheels::files::sweep_at_start(folder, &named) {
        Ok(0) => {}
        Ok(missing) => {
            tracing::warn!(folder = %folder.display(), missing, "files of wheels are missing: workers cannot install these; upload them again, or restore a backup");
        }
        Err(error) => {
            tracing::warn!(folder = %folder.display(), %error, "files of wheels that are not needed any more could not be removed");
        }
    }
    Ok(())
}

/// Starts to work on a file that was opened.
pub(crate) fn start(
    file: &Path,
    connection: Connection,
    settings: Settings,
    around: Around,
) -> Result<Database, OpenError> {
    Database::start(file.to_owned(), connection, settings, around).map_err(|error| io_error(file, error))
}

/// Opens a file of the folder for writing, or makes it if it is missing.
pub(crate) fn open_file(
    folder: &Path,
    schema: &Schema,
    check: Check,
) -> Result<(PathBuf, Connection), OpenError> {
    let file = folder.join(schema.file);
    let wal = folder.join(format!("{}-wal", schema.file));
    let wal_bytes = size(&wal).map_err(|error| io_error(&wal, error))?;
    match size(&file).map_err(|error| io_error(&file, error))? {
        Some(bytes) => look(&file, schema, bytes, wal_bytes.unwrap_or(0))?,
        // A new file would swallow what the old one left here.
        None if wal_bytes.is_some() => {
            let why = format!("it is missing, but its write-ahead log {}-wal is there", schema.file);
            return Err(corrupt(&file, &why));
        }
        None => create(folder, &file, schema)?,
    }
    let connection = connection::writer(&file, schema).map_err(|error| sql_error(&file, error))?;
    let after_crash = wal_bytes.is_some_and(|bytes| bytes > 0);
    prepare(&file, schema, &connection, check, after_crash)?;
    Ok((file, connection))
}

/// Refuses a SQLite that this program was built with by mistake.
pub(crate) fn good_sqlite() -> Result<(), OpenError> {
    gate(rusqlite::version_number(), rusqlite::version())
}

/// Refuses a SQLite with the bug that could lose a commit when the write-ahead log starts anew (and the withdrawn 3.52.0).
fn gate(number: i32, version: &'static str) -> Result<(), OpenError> {
    if number < 3_051_003 || number == 3_052_000 {
        return Err(OpenError::BadSqlite(version));
    }
    Ok(())
}

pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Takes a folder for this process.
pub(crate) fn lock(folder: &Path) -> Result<File, OpenError> {
    let path = folder.join(LOCK);
    let mut options = OpenOptions::new();
    options.create(true).write(true).truncate(false);
    let file = private(&mut options).open(&path).map_err(|error| io_error(&path, error))?;
    match fs4::FileExt::try_lock(&file) {
        Ok(()) => Ok(file),
        Err(fs4::TryLockError::WouldBlock) => Err(OpenError::Locked { folder: folder.to_owned() }),
        Err(fs4::TryLockError::Error(error)) => Err(io_error(&path, error)),
    }
}

/// Whether a file of the folder is there. One that cannot be ours, or cannot be whole, is refused. Nothing is changed.
pub(crate) fn is_there(folder: &Path, schema: &Schema) -> Result<bool, OpenError> {
    let file = folder.join(schema.file);
    let wal = folder.join(format!("{}-wal", schema.file));
    let wal_bytes = size(&wal).map_err(|error| io_error(&wal, error))?;
    let Some(bytes) = size(&file).map_err(|error| io_error(&file, error))? else { return Ok(false) };
    look(&file, schema, bytes, wal_bytes.unwrap_or(0))?;
    Ok(true)
}

/// Looks at a file without SQLite, which would change it or what lies beside it.
fn look(file: &Path, schema: &Schema, bytes: u64, wal_bytes: u64) -> Result<(), OpenError> {
    let mut header = Vec::with_capacity(100);
    let opened = File::open(file).map_err(|error| io_error(file, error))?;
    opened.take(100).read_to_end(&mut header).map_err(|error| io_error(file, error))?;
    if header.is_empty() {
        return Err(corrupt(file, "it is empty"));
    }
    if header.len() < 100 || !header.starts_with(b"SQLite format 3\0") {
        return Err(corrupt(file, "it is not an SQLite database"));
    }
    let number = |at: usize| {
        let field = header.get(at..at + 4).and_then(|field| <[u8; 4]>::try_from(field).ok());
        i32::from_be_bytes(field.unwrap_or_default())
    };
    if number(68) != schema.application_id {
        return Err(OpenError::NotOurs { file: file.to_owned() });
    }
    not_newer(schema, number(60))?;
    let page = match header.get(16..18) {
        Some([0, 1]) => 65_536,
        Some([high, low]) => u64::from(u16::from_be_bytes([*high, *low])),
        Some(_) | None => 0,
    };
    let wanted = u64::try_from(number(28)).unwrap_or(0).saturating_mul(page);
    // While pages are in the write-ahead log, the file may be shorter than it says.
    if wal_bytes == 0 && bytes < wanted {
        return Err(corrupt(file, "it has been cut short"));
    }
    Ok(())
}

fn not_newer(schema: &Schema, found: i32) -> Result<(), OpenError> {
    let supported = schema.newest();
    if found > supported { Err(OpenError::Newer { found, supported }) } else { Ok(()) }
}

/// Makes a whole file under another name, then gives it its own, so a crash never leaves half a file behind.
fn create(folder: &Path, file: &Path, schema: &Schema) -> Result<(), OpenError> {
    let name = format!("{}.new", schema.file);
    let new = folder.join(&name);
    let made = || -> io::Result<()> {
        // Ours, and never more than half made: whoever finished it renamed it. We hold the lock.
        for left in ["", "-journal", "-wal", "-shm"] {
            match std::fs::remove_file(folder.join(format!("{name}{left}"))) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        private(OpenOptions::new().write(true).create_new(true)).open(&new).map(|_| ())
    };
    made().map_err(|error| io_error(&new, error))?;
    connection::create(&new, schema).map_err(|error| sql_error(&new, error))?;
    let placed = || -> io::Result<()> {
        File::open(&new)?.sync_all()?;
        std::fs::rename(&new, file)?;
        keep_names(folder)
    };
    placed().map_err(|error| io_error(file, error))
}

/// Names must survive the loss of power as well as what is in the files; elsewhere a folder cannot be synchronised.
pub(crate) fn keep_names(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// What can only be asked through SQLite, once it has recovered the file.
fn prepare(
    file: &Path,
    schema: &Schema,
    connection: &Connection,
    check: Check,
    after_crash: bool,
) -> Result<(), OpenError> {
    let asked = |error| sql_error(file, error);
    if connection.is_readonly("main").map_err(asked)? {
        return Err(OpenError::NotWritable { path: file.to_owned() });
    }
    let journal: String =
        connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).map_err(asked)?;
    if journal != "wal" {
        let source =
            format!("the disk allows no write-ahead log ({journal}), as network disks do; use a local one");
        return Err(OpenError::Io { path: file.to_owned(), source: source.into() });
    }
    // The header may be behind what stands in the write-ahead log.
    not_newer(schema, connection::user_version(connection).map_err(asked)?)?;
    let wanted = match check {
        Check::Always => true,
        Check::AfterCrash => after_crash,
        Check::Never => false,
    };
    if wanted {
        let said: String = connection
            .query_row("PRAGMA quick_check(1)", (), |row| row.get(0))
            .map_err(|error| sql_error(file, error))?;
        if said != "ok" {
            return Err(corrupt(file, &said));
        }
    }
    schema.migrate(connection).map_err(asked)
}

/// Files that only their owner may read: they hold what users sent.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// How long a file is; none if there is none.
fn size(path: &Path) -> io::Result<Option<u64>> {
    match std::fs::metadata(path) {
        Ok(data) => Ok(Some(data.len())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn corrupt(file: &Path, reason: &str) -> OpenError {
    OpenError::Corrupt { file: file.to_owned(), reason: reason.to_owned() }
}

pub(crate) fn io_error(path: &Path, error: io::Error) -> OpenError {
    let path = path.to_owned();
    if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem) {
        return OpenError::NotWritable { path };
    }
    OpenError::Io { path, source: Box::new(error) }
}

pub(crate) fn sql_error(file: &Path, error: rusqlite::Error) -> OpenError {
    use rusqlite::ErrorCode;
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => corrupt(file, &error.to_string()),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            OpenError::NotWritable { path: file.to_owned() }
        }
        Some(_) | None => OpenError::Io { path: file.to_owned(), source: Box::new(error) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sqlite_that_may_lose_data_is_refused() {
        for (number, good) in [
            (3_051_002, false),
            (3_051_003, true),
            (3_051_999, true),
            (3_052_000, false),
            (3_052_001, true),
            (3_054_001, true),
        ] {
            assert_eq!(gate(number, "x").is_ok(), good, "{number}");
        }
        assert!(good_sqlite().is_ok());
    }
}
