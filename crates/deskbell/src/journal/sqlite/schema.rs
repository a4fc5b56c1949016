//! Opens connections, and brings the file to the format that this program knows.

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags, config::DbConfig};

use super::fault::{Fault, journal_error};
use crate::journal::JournalError;

/// The migrations, in order. A file's format is the number of those that it has seen.
const MIGRATIONS: &[&str] = &[include_str!("schema/1.sql"), include_str!("schema/2.sql")];

/// "Desk": what the head of a journal's file says it is.
const APPLICATION_ID: i32 = 0x4465_736b;

/// After so many pages the log is copied into the file: at 4 KiB a page, 16 MiB.
const CHECKPOINT_PAGES: i64 = 4_000;

/// What is left of a log that grew beyond it.
const LOG_BYTES: i64 = 64 * 1024 * 1024;

/// The writer's cache of pages, in KiB. Keys of many reporters are scattered over their index.
const WRITER_CACHE_KIB: i64 = 16 * 1024;

/// How long a connection waits for a lock that another program has, such as a shell that looks into the file.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);

/// How many statements a connection keeps prepared. There are fewer.
const STATEMENTS: usize = 128;

/// Makes the folder and the file for their owner alone, and takes the lock that keeps other processes out.
///
/// The lock is held as long as the file that this returns.
pub(super) fn prepare_files(path: &Path) -> Result<File, JournalError> {
    let refused = |what: &Path| {
        let what = what.display().to_string();
        move |error: io::Error| file_error(&what, &error)
    };
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        make_folder(folder).map_err(refused(folder))?;
    }
    let lock_path = beside(path, ".lock");
    let lock = owner_only().open(&lock_path).map_err(refused(&lock_path))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(fs::TryLockError::WouldBlock) => return Err(in_use(path)),
        Err(fs::TryLockError::Error(error)) => return Err(refused(&lock_path)(error)),
    }
    let file = owner_only().open(path).map_err(refused(path))?;
    tighten(&file).map_err(refused(path))?;
    Ok(lock)
}

fn in_use(path: &Path) -> JournalError {
    let path = path.display();
    JournalError::InUse(format!(
        "{path}; stop the `deskbell serve` that has it, or set DESKBELL_STATE_DIR to another folder"
    ))
}

fn file_error(what: &str, error: &io::Error) -> JournalError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            JournalError::Full(format!("{what}: {error}"))
        }
        _ => JournalError::ReadOnly(format!("{what}: {error}")),
    }
}

/// The path with `suffix` after the file's name.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[cfg(unix)]
fn make_folder(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(not(unix))]
fn make_folder(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

/// Opens for reading and writing, and makes the file if there is none.
fn owner_only() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options
}

/// Takes the file away from everybody but its owner; SQLite gives the files beside it the same rights.
#[cfg(unix)]
fn tighten(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = file.metadata()?.permissions().mode();
    if mode & 0o077 == 0 {
        return Ok(());
    }
    file.set_permissions(fs::Permissions::from_mode(mode & 0o700))
}

#[cfg(not(unix))]
fn tighten(_: &File) -> io::Result<()> {
    Ok(())
}

/// Opens the connection that writes.
pub(super) fn open_writer(path: &Path) -> Result<Connection, JournalError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connect = || {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(LOCK_PATIENCE)?;
        // Before anything is changed: the file may be somebody else's.
        migrate(&connection, path)?;
        keep_statements(&connection)?;
        Ok(connection)
    };
    connect().map_err(|fault| journal_error(path, fault))
}

/// Opens a connection that only reads.
pub(super) fn open_reader(path: &Path) -> Result<Connection, JournalError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connect = || {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(LOCK_PATIENCE)?;
        keep_statements(&connection)?;
        Ok(connection)
    };
    connect().map_err(|fault: Fault| journal_error(path, fault))
}

fn migrate(connection: &Connection, path: &Path) -> Result<(), Fault> {
    let application: i32 = pragma(connection, "application_id")?;
    let found: i64 = pragma(connection, "user_version")?;
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let is_new = application == 0 && found == 0 && tables == 0;
    if !is_new && application != APPLICATION_ID {
        return Err(Fault::Journal(JournalError::Damaged(format!(
            "{} is a database of another program; move it away, or set DESKBELL_STATE_DIR to another folder",
            path.display()
        ))));
    }
    if found > known {
        return Err(Fault::Journal(JournalError::Newer { found, known }));
    }
    configure(connection)?;
    let seen = usize::try_from(found).unwrap_or(0);
    for (number, migration) in (1_i64..).zip(MIGRATIONS).skip(seen) {
        connection.execute_batch(&format!(
            "BEGIN IMMEDIATE; {migration}; PRAGMA application_id = {APPLICATION_ID}; \
             PRAGMA user_version = {number}; COMMIT"
        ))?;
    }
    Ok(())
}

fn configure(connection: &Connection) -> Result<(), Fault> {
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode != "wal" {
        return Err(Fault::Journal(JournalError::Failed(format!(
            "the file system cannot share memory between connections (journal mode {mode}); \
             network folders cannot hold a journal"
        ))));
    }
    connection.pragma_update(None, "synchronous", "FULL")?;
    // On macOS an ordinary fsync leaves the data in the disk's cache; elsewhere these change nothing.
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "checkpoint_fullfsync", true)?;
    connection.pragma_update_and_check(None, "wal_autocheckpoint", CHECKPOINT_PAGES, ignore)?;
    connection.pragma_update_and_check(None, "journal_size_limit", LOG_BYTES, ignore)?;
    connection.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)?;
    Ok(())
}

/// Keeps prepared statements prepared.
///
/// Without the planner's promise of stability, SQLite looks whether the value of each parameter makes a partial index
/// fit, and for that prepares the statement anew whenever a value changes: half of the writer's time.
fn keep_statements(connection: &Connection) -> Result<(), Fault> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

fn ignore(_: &rusqlite::Row<'_>) -> rusqlite::Result<()> {
    Ok(())
}

fn pragma<T: rusqlite::types::FromSql>(connection: &Connection, name: &str) -> Result<T, Fault> {
    Ok(connection.pragma_query_value(None, name, |row| row.get(0))?)
}
