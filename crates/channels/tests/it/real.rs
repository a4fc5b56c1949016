//! Real servers on loopback ports, each in a folder of its own, and the certificate they show.

use std::{
    fs,
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use tempfile::TempDir;
use tokio::net::TcpSocket;

/// How long a server may take to listen. Long, because a loaded machine is no failure.
const PATIENCE: Duration = Duration::from_secs(30);

/// How many ports are tried before somebody else's taking them is no accident.
const PORTS: usize = 5;

/// A certificate for `localhost` that only its own file vouches for.
pub(crate) struct Certificate {
    folder: TempDir,
}

impl Certificate {
    pub(crate) fn new() -> Self {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let folder = open_folder();
        fs::write(folder.path().join("certificate.pem"), made.cert.pem()).unwrap();
        fs::write(folder.path().join("key.pem"), made.signing_key.serialize_pem()).unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("certificate.pem")
    }

    pub(crate) fn key(&self) -> PathBuf {
        self.folder.path().join("key.pem")
    }
}

/// A server process, ended when it is dropped.
pub(crate) struct Server {
    child: Child,
    /// Where it listens.
    pub(crate) port: u16,
    /// Keeps the port from everybody who asks for any.
    _reserved: TcpSocket,
    /// Where its files are.
    pub(crate) folder: TempDir,
}

impl Server {
    /// Starts `program`; `arrange` writes what it needs into its folder and gives its arguments.
    pub(crate) fn start(program: &str, arrange: impl Fn(&Path, u16) -> Vec<String>) -> Self {
        Self::start_file(&installed(program), arrange)
    }

    /// The same of a program that is in no folder for programs.
    pub(crate) fn start_file(program: &Path, arrange: impl Fn(&Path, u16) -> Vec<String>) -> Self {
        for _ in 0..PORTS {
            let (reserved, port) = reserved_port();
            let folder = open_folder();
            let child = Command::new(program)
                .args(arrange(folder.path(), port))
                .stdin(Stdio::null())
                .stdout(fs::File::create(folder.path().join("stdout")).unwrap())
                .stderr(fs::File::create(folder.path().join("stderr")).unwrap())
                .spawn()
                .unwrap();
            let mut server = Self { child, port, _reserved: reserved, folder };
            if server.listens() {
                return server;
            }
        }
        panic!("{} does not start", program.display());
    }

    /// Waits until the server listens, or has ended because its port was taken meanwhile.
    fn listens(&mut self) -> bool {
        until("the server to listen", || {
            if self.child.try_wait().unwrap().is_some() {
                return Some(false);
            }
            TcpStream::connect(("127.0.0.1", self.port)).ok().map(|_| true)
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ended = (self.child.kill(), self.child.wait());
    }
}

/// A port that nobody listens on, but that a server may which is told its number.
fn reserved_port() -> (TcpSocket, u16) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let port = socket.local_addr().unwrap().port();
    (socket, port)
}

/// Waits until `look` gives something.
#[track_caller]
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    #[expect(clippy::disallowed_methods, reason = "a test of real processes waits in real time")]
    let start = std::time::Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "waited too long for {what}");
        #[expect(
            clippy::disallowed_methods,
            reason = "a test of real processes waits in real time"
        )]
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Where `program` is.
pub(crate) fn installed(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Servers are in folders that not every user's path has.
    let folders = std::env::split_paths(&path)
        .chain(["/usr/sbin", "/usr/local/sbin", "/sbin"].map(PathBuf::from));
    folders
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
        .unwrap_or_else(|| panic!("`{program}` is missing: run scripts/install-test-tools"))
}

/// A folder that a server may use that gives up being root.
fn open_folder() -> TempDir {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    folder
}
