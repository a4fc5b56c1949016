//! Says what an error of SQLite means for the journal.

use std::path::Path;

use rusqlite::{ErrorCode, ffi};

use crate::journal::{JournalError, stored::Unreadable};

/// What can go wrong between SQLite and the journal.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    /// SQLite said so.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// Something that was kept cannot be read.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// It is known already what it means.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// What `fault` means to whoever asked the journal at `path`.
pub(super) fn journal_error(path: &Path, fault: Fault) -> JournalError {
    let (failure, message) = match fault {
        Fault::Journal(error) => return error,
        Fault::Unreadable(unreadable) => return damaged(path, &unreadable.to_string()),
        Fault::Sqlite(rusqlite::Error::SqliteFailure(failure, message)) => (failure, message),
        Fault::Sqlite(other) => {
            return JournalError::Failed(format!("{}: {other}", path.display()));
        }
    };
    let message = message.unwrap_or_else(|| failure.to_string());
    let told = format!("{}: {message}", path.display());
    match (failure.code, failure.extended_code) {
        // The file of shared memory is made to its full size at once, which fails only where there is no room.
        (ErrorCode::DiskFull, _) | (_, ffi::SQLITE_IOERR_SHMSIZE) => JournalError::Full(told),
        (ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen, _) => {
            JournalError::ReadOnly(told)
        }
        (ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase, _) => damaged(path, &message),
        (ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked, _) => JournalError::InUse(format!(
            "{told}; another program that looks into the file holds it"
        )),
        (_, code) => JournalError::Failed(format!("{told} (SQLite error {code})")),
    }
}

fn damaged(path: &Path, why: &str) -> JournalError {
    let path = path.display();
    JournalError::Damaged(format!(
        "{path}: {why}; stop Deskbell and move the file aside (with its -wal and -shm), and a new one is begun"
    ))
}
