//! Reaching the user's daemon, and starting it when it does not run.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, BufRead as _, BufReader, Read as _, Seek as _},
    os::unix::{fs::OpenOptionsExt as _, net::UnixStream, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    time::Duration,
};

use deskbell_core::text;

use crate::{paths::Paths, socket};

/// What a detached daemon writes on its stdout once it listens.
pub const READY: &str = "ready";

/// The variable that names a `config.sh` to read, for a daemon whose own folder is `/`.
pub const CONFIG_SH: &str = "DESKBELL_CONFIG_SH";

/// The name of the small program that is a bridge and nothing else.
pub(crate) const BRIDGE: &str = "deskbell-bridge";

/// The pause between two looks at a daemon that is ending.
const ENDING_PAUSE: Duration = Duration::from_millis(20);

/// How often is looked; it makes half a minute.
const ENDING_TRIES: u32 = 1_500;

/// How much of what a failed daemon said is repeated, in bytes.
const WORDS_LIMIT: u64 = 2_000;

/// How long the file with what daemons said on stderr may be for the next one to go on in it, in bytes.
const LOG_LIMIT: u64 = 1024 * 1024;

/// How long a daemon may take to start.
const START_LIMIT: Duration = Duration::from_secs(30);

/// Connects to the running daemon.
///
/// # Errors
/// `NotFound` and `ConnectionRefused` mean that none runs.
pub fn connect(paths: &Paths) -> io::Result<UnixStream> {
    socket::connect(&paths.socket())
}

/// Connects to the daemon, and starts it first when it does not run.
///
/// Whoever finds no daemon takes a lock, so that many bridges at once start one. A daemon that is started reads the
/// `config.sh` of mcp-push that is given here.
///
/// # Errors
/// Says why no daemon could be started, and where its log is.
pub fn connect_or_start(paths: &Paths, config_sh: Option<&Path>) -> io::Result<UnixStream> {
    connect_or(paths, |free| {
        drop(free);
        start(paths, config_sh)?;
        connect(paths)
    })
}

/// Connects to the daemon; where none runs, `begin` gets the daemon's lock and gives the connection to one.
///
/// # Errors
/// What `begin` failed with, or that a daemon that is ending takes too long.
pub fn connect_or<E: From<io::Error>>(
    paths: &Paths,
    begin: impl FnOnce(Lock) -> Result<UnixStream, E>,
) -> Result<UnixStream, E> {
    match connect(paths) {
        Err(error) if is_absent(&error) => {}
        other => return Ok(other?),
    }
    paths.create_state().map_err(io::Error::other)?;
    let lock = open_private(&paths.state.join("start.lock"))?;
    lock.lock()?;
    for _ in 0..ENDING_TRIES {
        // Another process may have started it while this one waited for the lock.
        match connect(paths) {
            Err(error) if is_absent(&error) => {}
            other => return Ok(other?),
        }
        if let Some(free) = Lock::take(paths)? {
            return begin(free);
        }
        // A daemon has the folder and does not listen: it is about to, or it is on its way out.
        pause();
    }
    let late = "the daemon that is ending takes too long";
    Err(io::Error::new(io::ErrorKind::TimedOut, late).into())
}

/// Lets a little time pass.
pub fn pause() {
    #[expect(clippy::disallowed_methods, reason = "a bridge and a command have no runtime here")]
    std::thread::sleep(ENDING_PAUSE);
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

/// Starts a daemon of its own process group and waits until it listens.
fn start(paths: &Paths, config_sh: Option<&Path>) -> io::Result<()> {
    let log_path = paths.state.join("daemon.err");
    let log = open_log(&log_path)?;
    let said_before = log.metadata()?.len();
    // What this process inherited, such as the lock of `flock` or the end of a pipe, is none of the daemon's.
    close_fds::set_fds_cloexec_threadsafe(3, &[]);
    let mut daemon = Command::new(daemon_program()?)
        .args(["serve", "--detached"])
        .env("DESKBELL_STATE_DIR", &paths.state)
        .envs(config_sh.map(|path| (CONFIG_SH, path)))
        .envs(std::env::var_os("DESKBELL_CONFIG").map(|_| ("DESKBELL_CONFIG", &paths.config_user)))
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .process_group(0)
        .spawn()?;
    let said = first_line(&mut daemon);
    // Whoever starts a process has to collect it, or it stays in the table as a zombie.
    std::thread::Builder::new()
        .name("daemon".to_owned())
        .stack_size(64 * 1024)
        .spawn(move || daemon.wait())?;
    match said {
        Ok(line) if line.trim_end() == READY => Ok(()),
        Ok(_) => Err(io::Error::other(format!(
            "the daemon did not start: {} (see {})",
            last_words(&log_path, said_before),
            log_path.display()
        ))),
        Err(error) => Err(error),
    }
}

/// Opens what catches the stderr of daemons. One that has grown too long makes room first; one old file is kept.
fn open_log(path: &Path) -> io::Result<File> {
    if path.metadata().is_ok_and(|log| log.len() > LOG_LIMIT) {
        std::fs::rename(path, path.with_extension("err.1"))?;
    }
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

/// What a daemon that did not start said, on one line.
fn last_words(log: &Path, after: u64) -> String {
    let mut words = String::new();
    let read = File::open(log).and_then(|mut log| {
        log.seek(io::SeekFrom::Start(after))?;
        log.take(WORDS_LIMIT).read_to_string(&mut words)
    });
    match read {
        Ok(_) if !words.trim().is_empty() => {
            let lines: Vec<_> = words.trim().lines().map(str::trim).collect();
            text::one_line(&lines.join("; ")).into_owned()
        }
        _ => "it said nothing".to_owned(),
    }
}

fn first_line(daemon: &mut Child) -> io::Result<String> {
    let Some(stdout) = daemon.stdout.take() else {
        return Err(io::Error::other("the daemon has no stdout"));
    };
    let (sender, receiver) = mpsc::channel();
    std::thread::Builder::new().name("daemon start".to_owned()).stack_size(64 * 1024).spawn(
        move || {
            let mut line = String::new();
            let read = BufReader::new(stdout).read_line(&mut line).map(|_| line);
            // Nobody listens any more when it took too long.
            drop(sender.send(read));
        },
    )?;
    receiver.recv_timeout(START_LIMIT).unwrap_or_else(|_| {
        Err(io::Error::new(io::ErrorKind::TimedOut, "the daemon took too long to start"))
    })
}

/// The file of the program called `name` in the folder of this one, even where a newer version has taken its place.
pub(crate) fn beside(name: &str) -> io::Result<PathBuf> {
    Ok(this_program()?.with_file_name(format!("{name}{}", std::env::consts::EXE_SUFFIX)))
}

/// The file of this program, even where a newer version has taken its place since.
fn this_program() -> io::Result<PathBuf> {
    let path = std::env::current_exe()?;
    let replaced = path.to_str().and_then(|path| path.strip_suffix(" (deleted)"));
    Ok(replaced.map_or_else(|| path.clone(), PathBuf::from))
}

/// The program that can be a daemon: this one, unless it is the small bridge.
fn daemon_program() -> io::Result<PathBuf> {
    let this = this_program()?;
    if this.file_stem().is_some_and(|name| name == BRIDGE) { beside("deskbell") } else { Ok(this) }
}

/// The lock that makes a daemon the only one of its state folder, for as long as it is kept.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "the open file is the lock")] File);

impl Lock {
    /// Takes the lock; `None` means that another daemon has it.
    ///
    /// # Errors
    /// Fails when the state folder cannot be written.
    pub fn take(paths: &Paths) -> io::Result<Option<Self>> {
        let file = open_private(&paths.lock())?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

fn open_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)
}
