//! The file of what tasks wrote is not the truth: a damaged one must not keep the server from starting. It is set aside
//! under another name, for whoever wants to look at it, and a new one is made.
//!
//! It may be large, so it is not checked as a whole after each crash. Whoever meets damage in it leaves a mark instead, and
//! the next start checks it.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use pyoco_ports::ErrorKind;
use rusqlite::Connection;

use crate::error;
use crate::open::{self, Check, OpenError};
use crate::schema::LOGS;

/// The mark of a file of lines in which damage was met.
const MARK: &str = "pyoco-logs.db.suspect";

/// Where damage in the file of lines is marked.
pub(crate) fn mark_in(folder: &Path) -> PathBuf {
    folder.join(MARK)
}

/// Leaves the mark if an error says that the file is damaged.
pub(crate) fn mark(mark: &Path, error: &rusqlite::Error) {
    if error::kind(error) == ErrorKind::Corrupt
        && let Err(why) = std::fs::write(mark, b"")
    {
        tracing::warn!(%error, %why, "the logs of tasks are damaged, and the next start will not know");
    }
}

/// Opens the file of lines; one that cannot be used is set aside first.
pub(crate) fn open_logs(folder: &Path, check: Check) -> Result<(PathBuf, Connection), OpenError> {
    let mark = mark_in(folder);
    let check = match check {
        Check::AfterCrash | Check::Never if mark.exists() => Check::Always,
        Check::AfterCrash => Check::Never,
        Check::Always | Check::Never => check,
    };
    let opened = open_or_set_aside(folder, check)?;
    // Only now: if the process dies before, the next one checks again.
    match std::fs::remove_file(&mark) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(open::io_error(&mark, error)),
        Ok(()) | Err(_) => Ok(opened),
    }
}

fn open_or_set_aside(folder: &Path, check: Check) -> Result<(PathBuf, Connection), OpenError> {
    let why = match open::open_file(folder, &LOGS, check) {
        Err(why @ (OpenError::Corrupt { .. } | OpenError::NotOurs { .. } | OpenError::Newer { .. })) => why,
        // A disk that refuses would refuse a new file as well.
        other => return other,
    };
    let file = folder.join(LOGS.file);
    let kept = set_aside(folder).map_err(|error| open::io_error(&file, error))?;
    tracing::warn!(
        file = %file.display(),
        kept_as = %kept.display(),
        reason = %why,
        "the logs of tasks cannot be read and were set aside; new ones begin. Executions are not affected."
    );
    open::open_file(folder, &LOGS, check)
}

/// Renames the file and what belongs to it, and gives the new name.
fn set_aside(folder: &Path) -> io::Result<PathBuf> {
    let name = free_name(folder)?;
    // The file first: if the process dies in between, what is left beside a missing file is set aside by the next one,
    // and never read together with a new file.
    for part in ["", "-wal", "-shm", "-journal"] {
        match std::fs::rename(
            folder.join(format!("{}{part}", LOGS.file)),
            folder.join(format!("{name}{part}")),
        ) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    open::keep_names(folder)?;
    Ok(folder.join(name))
}

/// A name that nothing in the folder begins with.
fn free_name(folder: &Path) -> io::Result<String> {
    let mut taken = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        taken.push(entry?.file_name());
    }
    let is_free = |name: &String| {
        let is_part = |other: &OsStr| {
            let rest = other.to_str().and_then(|other| other.strip_prefix(name.as_str()));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        !taken.iter().any(|other| is_part(other))
    };
    let mut names = (1_u64..).map(|number| format!("{}.damaged-{number}", LOGS.file));
    names.find(is_free).ok_or_else(|| io::Error::from(io::ErrorKind::AlreadyExists))
}
