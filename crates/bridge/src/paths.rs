//! Where files are: the state folder, the user's and the machine's configuration.
//!
//! Everything is found from variables that are passed in, so that a test needs no process of its own.

use std::{
    ffi::OsString,
    fs::{self, DirBuilder, Metadata},
    io,
    path::{Path, PathBuf},
};

/// A look-up of environment variables: the process's own, a client's, or a test's.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// Where the program keeps its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// The folder for journal, socket and log.
    pub state: PathBuf,
    /// The user's configuration file. It may not exist.
    pub config_user: PathBuf,
    /// The machine's configuration file. It may not exist.
    pub config_machine: PathBuf,
}

/// Why files have no place.
#[derive(Debug, thiserror::Error)]
pub enum PathsError {
    /// Nothing says where the user's files are.
    #[error("no home folder is known; set HOME, or DESKBELL_STATE_DIR and DESKBELL_CONFIG")]
    NoHome,
    /// A relative path was named, and the folder that it is relative to is gone.
    #[error("{variable} is {}, and the current folder cannot be told", .path.display())]
    Nowhere {
        /// The variable.
        variable: &'static str,
        /// Its value.
        path: PathBuf,
    },
    /// The state folder belongs to somebody else, who could read and change everything in it.
    #[error("the state folder {} belongs to another user; set DESKBELL_STATE_DIR to a folder of your own", .0.display())]
    Foreign(PathBuf),
    /// There is something that is not a folder.
    #[error("{} is not a folder; set DESKBELL_STATE_DIR to another one", .0.display())]
    NotAFolder(PathBuf),
    /// The folder cannot be made or tightened.
    #[error("failed to prepare the state folder {}", .path.display())]
    Io {
        /// The folder.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
}

impl Paths {
    /// The places that the process's own variables name.
    ///
    /// Without `HOME`, as in some services and containers, the user database is asked.
    ///
    /// # Errors
    /// Says which variable is missing or names no place.
    pub fn from_process() -> Result<Self, PathsError> {
        Self::from_env(&|name| match (name, std::env::var_os(name)) {
            ("HOME", None) => etcetera::home_dir().ok().map(PathBuf::into_os_string),
            (_, value) => value,
        })
    }

    /// The places that the variables of `env` name: `DESKBELL_STATE_DIR` and `DESKBELL_CONFIG`, else the XDG base
    /// directories, else their places under the home folder.
    ///
    /// # Errors
    /// Says which variable is missing or names no place.
    pub fn from_env(env: Lookup<'_>) -> Result<Self, PathsError> {
        let state = match named(env, "DESKBELL_STATE_DIR")? {
            Some(folder) => folder,
            None => base(env, &STATE)?.join("deskbell"),
        };
        let config_user = match named(env, "DESKBELL_CONFIG")? {
            Some(file) => file,
            None => base(env, &CONFIG)?.join("deskbell").join("config.toml"),
        };
        Ok(Self { state, config_user, config_machine: machine(env) })
    }

    /// The journal.
    pub fn journal(&self) -> PathBuf {
        self.state.join("journal.sqlite")
    }

    /// The daemon's local socket.
    pub fn socket(&self) -> PathBuf {
        self.state.join("daemon.sock")
    }

    /// The file whose lock the daemon holds while it runs.
    pub fn lock(&self) -> PathBuf {
        self.state.join("daemon.lock")
    }

    /// The daemon's process id, for people and supervisors; the program itself trusts only the lock.
    pub fn pid(&self) -> PathBuf {
        self.state.join("daemon.pid")
    }

    /// What the running daemon says of itself: version, HTTP address.
    pub fn daemon_info(&self) -> PathBuf {
        self.state.join("daemon.json")
    }

    /// The token of this user's own programs that come over HTTP; commands come over the socket and need none.
    pub fn token(&self) -> PathBuf {
        self.state.join("token")
    }

    /// The log file, where the configuration names no other.
    pub fn log(&self) -> PathBuf {
        self.state.join("deskbell.log")
    }

    /// The list of channels that are snoozed.
    pub fn snoozed(&self) -> PathBuf {
        self.state.join("snoozed.json")
    }

    /// The list of project files that the user trusts.
    pub fn trusted(&self) -> PathBuf {
        self.state.join("trusted.toml")
    }

    /// Makes the state folder for its owner only, and tightens one that exists.
    ///
    /// # Errors
    /// Refuses a folder of another user: whoever owns it could read the journal and replace the socket.
    pub fn create_state(&self) -> Result<(), PathsError> {
        let failed = |source| PathsError::Io { path: self.state.clone(), source };
        match private_folder().create(&self.state) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(PathsError::NotAFolder(self.state.clone()));
            }
            Err(error) => return Err(failed(error)),
        }
        // A link to a folder is fine, so what counts is the owner of its target.
        let metadata = fs::metadata(&self.state).map_err(failed)?;
        if !is_ours(&metadata) {
            return Err(PathsError::Foreign(self.state.clone()));
        }
        tighten(&self.state, &metadata).map_err(failed)
    }
}

/// Whether a file is the user's own or the machine's, so that no other user has written it.
pub fn belongs_to_us(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| is_ours(&metadata) || is_roots(&metadata))
}

/// A kind of base directory: its XDG variable and its place under the home folder.
struct Base {
    xdg: &'static str,
    under_home: &'static str,
    windows: &'static str,
}

static STATE: Base =
    Base { xdg: "XDG_STATE_HOME", under_home: ".local/state", windows: "LOCALAPPDATA" };
static CONFIG: Base = Base { xdg: "XDG_CONFIG_HOME", under_home: ".config", windows: "APPDATA" };

/// The base directory, as the XDG Base Directory Specification 0.8 finds it; macOS is no exception.
fn base(env: Lookup<'_>, base: &Base) -> Result<PathBuf, PathsError> {
    // The specification says that a relative path is invalid and to be ignored.
    let absolute = |name| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(folder) = absolute(base.xdg) {
        return Ok(folder);
    }
    if cfg!(windows)
        && let Some(folder) = absolute(base.windows)
    {
        return Ok(folder);
    }
    absolute("HOME").map(|home| home.join(base.under_home)).ok_or(PathsError::NoHome)
}

/// The path that a variable of ours names, unless it is empty. A relative one starts at the current folder, and is made
/// absolute at once, because a daemon that is started later has another.
fn named(env: Lookup<'_>, variable: &'static str) -> Result<Option<PathBuf>, PathsError> {
    let Some(path) = env(variable).filter(|value| !value.is_empty()).map(PathBuf::from) else {
        return Ok(None);
    };
    let absolute = std::path::absolute(&path);
    absolute.map(Some).map_err(|_| PathsError::Nowhere { variable, path })
}

fn machine(env: Lookup<'_>) -> PathBuf {
    let folder = match env("PROGRAMDATA") {
        Some(folder) if cfg!(windows) => PathBuf::from(folder),
        _ => PathBuf::from("/etc"),
    };
    folder.join("deskbell").join("config.toml")
}

/// Makes folders, parents too, that only their owner can enter.
fn private_folder() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

#[cfg(unix)]
fn is_ours(metadata: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    metadata.uid() == rustix::process::geteuid().as_raw()
}

#[cfg(unix)]
fn is_roots(metadata: &Metadata) -> bool {
    std::os::unix::fs::MetadataExt::uid(metadata) == 0
}

#[cfg(unix)]
fn tighten(folder: &Path, metadata: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    if metadata.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
}

// On Windows a user's folders are private by inheritance.
#[cfg(not(unix))]
fn is_ours(_metadata: &Metadata) -> bool {
    true
}

#[cfg(not(unix))]
fn is_roots(_metadata: &Metadata) -> bool {
    true
}

#[cfg(not(unix))]
fn tighten(_folder: &Path, _metadata: &Metadata) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(variables: &[(&str, &str)]) -> Result<Paths, PathsError> {
        Paths::from_env(&|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
        })
    }

    #[track_caller]
    fn check(variables: &[(&str, &str)], state: &str, config: &str) {
        let paths = paths(variables).unwrap();
        assert_eq!((paths.state, paths.config_user), (state.into(), config.into()));
    }

    #[test]
    fn our_own_variables_go_before_xdg_and_xdg_before_home() {
        check(&[("HOME", "/h")], "/h/.local/state/deskbell", "/h/.config/deskbell/config.toml");
        let xdg = [("HOME", "/h"), ("XDG_STATE_HOME", "/s"), ("XDG_CONFIG_HOME", "/c")];
        check(&xdg, "/s/deskbell", "/c/deskbell/config.toml");
        let ours = [&xdg[..], &[("DESKBELL_STATE_DIR", "/o"), ("DESKBELL_CONFIG", "/f.toml")]];
        check(&ours.concat(), "/o", "/f.toml");
    }

    #[test]
    fn relative_xdg_folders_and_empty_variables_are_ignored() {
        let variables = [("HOME", "/h"), ("XDG_STATE_HOME", "s"), ("DESKBELL_STATE_DIR", "")];
        check(&variables, "/h/.local/state/deskbell", "/h/.config/deskbell/config.toml");
    }

    #[test]
    fn no_home_is_an_error_that_says_what_to_set() {
        let error = paths(&[]).unwrap_err().to_string();
        assert!(error.contains("HOME") && error.contains("DESKBELL_STATE_DIR"), "{error}");
        check(&[("DESKBELL_STATE_DIR", "/o"), ("DESKBELL_CONFIG", "/f")], "/o", "/f");
    }

    #[test]
    fn a_relative_folder_of_ours_starts_at_the_current_one() {
        let paths = paths(&[("HOME", "/home/ann"), ("DESKBELL_STATE_DIR", "state")]).unwrap();
        assert_eq!(paths.state, std::env::current_dir().unwrap().join("state"));
    }

    #[test]
    fn the_state_folder_is_for_its_owner_only() {
        use std::os::unix::fs::PermissionsExt as _;
        let home = tempfile::tempdir().unwrap();
        let paths = paths(&[("HOME", home.path().to_str().unwrap())]).unwrap();
        let mode = || fs::metadata(&paths.state).unwrap().permissions().mode() & 0o777;
        paths.create_state().unwrap();
        assert_eq!(mode(), 0o700);
        fs::set_permissions(&paths.state, fs::Permissions::from_mode(0o755)).unwrap();
        paths.create_state().unwrap();
        assert_eq!(mode(), 0o700, "an existing folder is tightened");
    }

    #[test]
    fn a_file_in_place_of_the_state_folder_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let state = home.path().join("state");
        fs::write(&state, "").unwrap();
        let variables =
            [("DESKBELL_STATE_DIR", state.to_str().unwrap()), ("DESKBELL_CONFIG", "/f")];
        let error = paths(&variables).unwrap().create_state().unwrap_err();
        assert!(matches!(error, PathsError::NotAFolder(_)), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn the_state_folder_of_another_user_is_refused() {
        // The root folder belongs to root; only root itself cannot run this check that way.
        if rustix::process::geteuid().is_root() {
            let folder = tempfile::tempdir().unwrap();
            std::os::unix::fs::chown(folder.path(), Some(12_345), None).unwrap();
            let found = Paths { state: folder.path().into(), ..paths(&[("HOME", "/h")]).unwrap() };
            assert!(matches!(found.create_state(), Err(PathsError::Foreign(_))));
        } else {
            let found = Paths { state: "/".into(), ..paths(&[("HOME", "/h")]).unwrap() };
            assert!(matches!(found.create_state(), Err(PathsError::Foreign(_))));
        }
    }
}
