//! How SQLite's errors and those of the system become the store's: one mapping of each for the whole crate.

use std::io;
use std::path::Path;

use pyoco_ports::{ErrorKind, StoreError};
use rusqlite::ErrorCode;
use rusqlite::types::Type;

/// The store's word for an error of SQLite.
pub(crate) fn store(operation: &'static str, error: rusqlite::Error) -> StoreError {
    StoreError::new(kind(&error), operation, error)
}

/// The store's word for an error of the system with a file.
pub(crate) fn io(operation: &'static str, path: &Path, error: &io::Error) -> StoreError {
    let kind = if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
        ErrorKind::Full
    } else if error.kind() == io::ErrorKind::FileTooLarge {
        ErrorKind::TooLarge
    } else {
        // Whoever looks after the disk can do something about it.
        ErrorKind::Unavailable
    };
    StoreError::new(kind, operation, format!("{}: {error}", path.display()))
}

/// What kind of failure an error of SQLite is.
pub(crate) fn kind(error: &rusqlite::Error) -> ErrorKind {
    use rusqlite::Error as E;
    let Some(code) = error.sqlite_error_code() else {
        let unreadable = matches!(
            error,
            E::FromSqlConversionFailure(..)
                | E::IntegralValueOutOfRange(..)
                | E::InvalidColumnType(..)
                | E::Utf8Error(..)
        );
        return if unreadable { ErrorKind::Corrupt } else { ErrorKind::Internal };
    };
    match code {
        ErrorCode::DiskFull => ErrorKind::Full,
        ErrorCode::TooBig => ErrorKind::TooLarge,
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => ErrorKind::Corrupt,
        ErrorCode::DatabaseBusy
        | ErrorCode::DatabaseLocked
        | ErrorCode::SystemIoFailure
        | ErrorCode::CannotOpen
        | ErrorCode::PermissionDenied
        | ErrorCode::ReadOnly
        | ErrorCode::OperationInterrupted
        | ErrorCode::OutOfMemory => ErrorKind::Unavailable,
        ErrorCode::InternalMalfunction
        | ErrorCode::OperationAborted
        | ErrorCode::NotFound
        | ErrorCode::FileLockingProtocolFailed
        | ErrorCode::SchemaChanged
        | ErrorCode::ConstraintViolation
        | ErrorCode::TypeMismatch
        | ErrorCode::ApiMisuse
        | ErrorCode::NoLargeFileSupport
        | ErrorCode::AuthorizationForStatementDenied
        | ErrorCode::ParameterOutOfRange
        | ErrorCode::Unknown
        | _ => ErrorKind::Internal,
    }
}

/// Whether the file must not be written again before it was opened anew: what the disk holds is no longer known.
pub(crate) fn is_fatal(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::SystemIoFailure | ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
    )
}

/// A value that was stored but cannot be what it should be.
pub(crate) fn unreadable(
    column: usize,
    why: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Null, why.into())
}
