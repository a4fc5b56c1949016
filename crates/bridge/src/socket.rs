//! The local socket: one per user, in the user's own folder, for nobody else.

use std::{
    fs::{self, File, Permissions},
    io,
    os::{
        fd::AsRawFd as _,
        unix::{
            fs::PermissionsExt as _,
            net::{UnixListener, UnixStream},
        },
    },
    path::{Path, PathBuf},
};

/// Longest path that fits into a socket address everywhere (`sun_path` of macOS, less its end).
const PATH_LIMIT: usize = 103;

/// Listens at `path`, which only the user can reach. The caller holds the daemon's lock.
///
/// # Errors
/// Fails when the folder cannot be written.
pub fn listen(path: &Path) -> io::Result<UnixListener> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = through_short_path(path, |short| UnixListener::bind(short))?;
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Connects to whoever listens at `path`.
///
/// # Errors
/// `NotFound` and `ConnectionRefused` mean that nobody does.
pub fn connect(path: &Path) -> io::Result<UnixStream> {
    through_short_path(path, |short| UnixStream::connect(short))
}

/// Calls `act` with a name of `path` that fits into a socket address.
///
/// Linux lets a folder be named by an open descriptor, whatever its depth.
fn through_short_path<T>(path: &Path, act: impl Fn(&Path) -> io::Result<T>) -> io::Result<T> {
    if path.as_os_str().len() <= PATH_LIMIT {
        return act(path);
    }
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the socket's path has no folder"));
    };
    let folder = File::open(folder)?;
    let short = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name);
    act(&short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deep_folder_is_no_obstacle() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("a-rather-long-name-of-a-folder".repeat(6));
        fs::create_dir(&folder).unwrap();
        let path = folder.join("deskbell.sock");
        let _listener = listen(&path).unwrap();
        connect(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_socket_that_was_left_behind_is_replaced() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("deskbell.sock");
        drop(listen(&path).unwrap());
        assert_eq!(connect(&path).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        let _listener = listen(&path).unwrap();
        connect(&path).unwrap();
    }
}
