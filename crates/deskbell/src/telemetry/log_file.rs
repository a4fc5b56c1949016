//! A log file that several processes append to and that is rotated by size.
//!
//! Whoever writes holds the file's lock, so lines of two processes do not mix and only one of them rotates.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use crate::config::LogFile;

/// How often the file is opened anew when others rotate it at the same moment.
const OPEN_LIMIT: usize = 8;

/// Appends to the file that its options name.
#[derive(Debug)]
pub(super) struct LogWriter {
    options: LogFile,
    file: Option<File>,
}

impl LogWriter {
    /// A writer that opens its file when there is something to write.
    pub(super) const fn new(options: LogFile) -> Self {
        Self { options, file: None }
    }

    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        let mut file = self.locked()?;
        let mut rotated = Ok(());
        if self.is_full(&file, lines.len()) {
            rotated = rotate(&self.options, &file);
            // The lock is given back first: two handles of one file would wait for each other.
            file.unlock()?;
            self.file = Some(file);
            file = self.locked()?;
        }
        // What cannot be rotated is still appended to: a log that is too large is better than none.
        let written = file.write_all(lines).and(rotated);
        let unlocked = file.unlock();
        self.file = Some(file);
        written.and(unlocked)
    }

    /// The file that has the name now, locked.
    fn locked(&mut self) -> io::Result<File> {
        for _ in 0..OPEN_LIMIT {
            let file = match self.file.take() {
                Some(file) => file,
                None => open(&self.options.path)?,
            };
            match file.lock() {
                // Some file systems have no locks; appending is the best that is left.
                Err(error) if error.kind() != io::ErrorKind::Unsupported => return Err(error),
                _ => {}
            }
            if is_still_named(&file, &self.options.path) {
                return Ok(file);
            }
        }
        Err(io::Error::other("the file is replaced again and again"))
    }

    fn is_full(&self, file: &File, more: usize) -> bool {
        file.metadata().is_ok_and(|metadata| {
            // A pipe or a terminal can be named as the log file, and has no size.
            let after = metadata.len().saturating_add(more as u64);
            metadata.is_file() && metadata.len() > 0 && after > self.options.max_bytes
        })
    }
}

impl Write for LogWriter {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        self.append(lines).map(|()| lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Makes room: `log` becomes `log.1`, `log.1` becomes `log.2`, and the oldest is removed.
fn rotate(options: &LogFile, file: &File) -> io::Result<()> {
    let Some(oldest) = options.keep.checked_sub(1) else {
        return file.set_len(0);
    };
    for number in (1..=oldest).rev() {
        rename_if_there(&numbered(&options.path, number), &numbered(&options.path, number + 1))?;
    }
    fs::rename(&options.path, numbered(&options.path, 1))
}

fn rename_if_there(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        renamed => renamed,
    }
}

fn numbered(path: &Path, number: usize) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

#[cfg(unix)]
fn is_still_named(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

// Windows has no stable identity of a file; two processes may then write to a file that was just rotated.
#[cfg(not(unix))]
fn is_still_named(_file: &File, path: &Path) -> bool {
    path.exists()
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn writer(path: &Path, max_bytes: u64, keep: usize) -> LogWriter {
        LogWriter::new(LogFile { path: path.to_owned(), max_bytes, keep })
    }

    fn read(path: &Path) -> String {
        fs::read_to_string(path).unwrap()
    }

    #[test]
    fn two_runs_append_row_17() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        writer(&path, 1_000, 2).write_all(b"first\n").unwrap();
        writer(&path, 1_000, 2).write_all(b"second\n").unwrap();
        assert_eq!(read(&path), "first\nsecond\n");
    }

    #[test]
    fn the_size_limit_rotates_and_the_oldest_goes_row_17() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut log = writer(&path, 10, 2);
        for line in ["one 1\n", "two 2\n", "three\n", "four 4\n"] {
            log.write_all(line.as_bytes()).unwrap();
        }
        assert_eq!(read(&path), "four 4\n");
        assert_eq!(read(&numbered(&path, 1)), "three\n");
        assert_eq!(read(&numbered(&path, 2)), "two 2\n");
        assert!(!numbered(&path, 3).exists());
    }

    #[test]
    fn without_kept_files_the_log_starts_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut log = writer(&path, 10, 0);
        log.write_all(b"one 1\n").unwrap();
        log.write_all(b"two 2\n").unwrap();
        assert_eq!(read(&path), "two 2\n");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn several_writers_lose_and_mix_no_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        thread::scope(|scope| {
            for writer_number in 0..4 {
                let mut log = writer(&path, 500, 100);
                scope.spawn(move || {
                    for number in 0..100 {
                        log.write_all(format!("{writer_number} {number}\n").as_bytes()).unwrap();
                    }
                });
            }
        });
        let mut lines: Vec<String> = fs::read_dir(folder.path())
            .unwrap()
            .flat_map(|entry| {
                let text = read(&entry.unwrap().path());
                assert!(text.len() <= 500);
                text.lines().map(str::to_owned).collect::<Vec<_>>()
            })
            .collect();
        let mut expected: Vec<_> = (0..4)
            .flat_map(|writer| (0..100).map(move |number| format!("{writer} {number}")))
            .collect();
        lines.sort();
        expected.sort();
        assert_eq!(lines, expected);
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_can_read_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        writer(&path, 10, 2).write_all(b"a\n").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_an_error_and_works_once_it_can() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("missing").join("log");
        let mut log = writer(&path, 10, 2);
        log.write_all(b"lost\n").unwrap_err();
        fs::create_dir(folder.path().join("missing")).unwrap();
        log.write_all(b"kept\n").unwrap();
        assert_eq!(read(&path), "kept\n");
    }
}
