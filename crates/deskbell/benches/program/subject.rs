//! What is measured: how each server is started and ended.

use std::{
    fs,
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

/// How long a server may take to open its port.
pub(crate) const READY_LIMIT: Duration = Duration::from_secs(30);

/// A server that can be measured.
pub(crate) enum Subject {
    /// Deskbell with its journal in a file or in memory.
    Deskbell { name: &'static str, journal: &'static str },
    /// A server on an official SDK: its name and the command that `stdio` or `http PORT` is appended to.
    Peer { name: &'static str, command: Vec<PathBuf> },
}

/// A server with an open port, and what its stdio clients launch.
pub(crate) struct Running<'a> {
    pub(crate) subject: &'a Subject,
    pub(crate) port: u16,
    pub(crate) server: Child,
    /// The folder with Deskbell's state.
    folder: Option<TempDir>,
}

impl Subject {
    pub(crate) fn all() -> Vec<Self> {
        let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/peers");
        let python = |name, version: &str| {
            let folder = peers.join(format!("python-{version}"));
            Self::Peer { name, command: vec![folder.join("bin/python"), folder.join("server.py")] }
        };
        let typescript = |name, major: &str| {
            let script = peers.join(format!("typescript-{major}/server.mjs"));
            Self::Peer { name, command: vec!["node".into(), script] }
        };
        vec![
            Self::Deskbell { name: "Deskbell", journal: "" },
            Self::Deskbell { name: "Deskbell, in memory", journal: "memory" },
            python("Python 1.30.0", "1.30.0"),
            python("Python 2.3.0", "2.3.0"),
            typescript("TypeScript 1.32.2", "1"),
            typescript("TypeScript 2.4.0", "2"),
        ]
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Deskbell { name, .. } | Self::Peer { name, .. } => name,
        }
    }

    pub(crate) fn is_deskbell(&self) -> bool {
        matches!(self, Self::Deskbell { .. })
    }

    /// Starts the server and waits until its port is open.
    pub(crate) fn start(&self) -> Running<'_> {
        let port = free_port();
        let (mut command, folder) = match self {
            Self::Deskbell { journal, .. } => {
                let folder = state_folder();
                let mut command = deskbell(folder.path(), "serve");
                command.args(["--anonymous-loopback", "--listen", &format!("127.0.0.1:{port}")]);
                if !journal.is_empty() {
                    command.args(["--journal", journal]);
                }
                (command, Some(folder))
            }
            Self::Peer { command, .. } => {
                let mut command = peer(command);
                command.args(["http", &port.to_string()]);
                (command, None)
            }
        };
        let server = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        await_port(port);
        Running { subject: self, port, server, folder }
    }

    /// What a client launches when nothing of the server runs, with the folder that has to outlive it.
    pub(crate) fn launch_cold(&self) -> (Command, Option<TempDir>) {
        match self {
            Self::Deskbell { .. } => {
                let folder = state_folder();
                (deskbell(folder.path(), "mcp"), Some(folder))
            }
            Self::Peer { command, .. } => {
                let mut command = peer(command);
                command.arg("stdio");
                (command, None)
            }
        }
    }
}

impl Running<'_> {
    /// What a client launches beside the running server.
    pub(crate) fn launch(&self) -> Command {
        match &self.folder {
            Some(folder) => deskbell(folder.path(), "mcp"),
            None => self.subject.launch_cold().0,
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // It may have ended by itself, and then the measurement has already said so.
        self.server.kill().ok();
        self.server.wait().ok();
    }
}

/// Ends the daemon that a bridge started in `folder`.
pub(crate) fn end_daemon(folder: &Path) {
    let Ok(text) = fs::read_to_string(folder.join("daemon.pid")) else {
        return;
    };
    let digits = text.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit);
    let pid: String = digits.collect();
    if Path::new("/proc").join(&pid).exists() && !pid.is_empty() {
        Command::new("kill").args(["-9", &pid]).status().unwrap();
    }
}

/// A folder on the disk of the build, because a folder in memory has no flushes to wait for.
pub(crate) fn empty_folder() -> TempDir {
    tempfile::Builder::new().prefix("b").tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// A folder with a configuration of one channel.
fn state_folder() -> TempDir {
    let folder = empty_folder();
    let channel = format!(
        "[channels.log]\nkind = \"file\"\npath = {:?}\n",
        folder.path().join("pushed.log").display().to_string()
    );
    fs::write(folder.path().join("config.toml"), channel).unwrap();
    folder
}

pub(crate) fn deskbell(folder: &Path, command: &str) -> Command {
    let mut deskbell = Command::new(env!("CARGO_BIN_EXE_deskbell"));
    deskbell
        .arg(command)
        .env("DESKBELL_STATE_DIR", folder)
        .env("DESKBELL_CONFIG", folder.join("config.toml"))
        .current_dir(folder)
        .stderr(Stdio::null());
    deskbell
}

fn peer(command: &[PathBuf]) -> Command {
    let (program, arguments) = command.split_first().unwrap();
    let script = arguments.first().unwrap();
    assert!(script.is_file(), "{} is missing: run scripts/bench", script.display());
    let mut peer = Command::new(program);
    peer.args(arguments).stderr(Stdio::null());
    peer
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A port that the system gives to no connection on its way out.
///
/// A client that looks again and again for a server whose port is one of those is at last given that port itself,
/// and is then connected with itself while the server finds its port taken.
pub(crate) fn fixed_port() -> u16 {
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    (21_000..32_000).find(is_free).unwrap()
}

pub(crate) fn await_port(port: u16) {
    let started = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(started.elapsed() < READY_LIMIT, "nothing listens on port {port}");
        thread::sleep(Duration::from_millis(20));
    }
}
