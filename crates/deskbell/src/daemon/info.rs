//! What the running daemon says of itself in the state folder, for commands, scripts and people.

use std::{fs, io, net::SocketAddr};

use serde::{Deserialize, Serialize};

use crate::paths::Paths;

/// The particulars of a running daemon, in `daemon.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonInfo {
    /// Its process id.
    pub pid: u32,
    /// Its version.
    pub version: String,
    /// Where it serves HTTP; `None` inside another process, which has only the local socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<SocketAddr>,
}

impl DaemonInfo {
    pub(super) fn of_this_process(address: Option<SocketAddr>) -> Self {
        Self { pid: std::process::id(), version: crate::VERSION.to_owned(), address }
    }

    /// Writes the particulars and the process id.
    pub(super) fn write(&self, paths: &Paths) -> io::Result<()> {
        fs::write(paths.pid(), format!("{}\n", self.pid))?;
        // A reader sees the old file or the new one, never half of it.
        let unfinished = paths.daemon_info().with_extension("json.new");
        fs::write(&unfinished, serde_json::to_vec(self)?)?;
        fs::rename(unfinished, paths.daemon_info())
    }

    /// The particulars of the daemon that runs in `paths`, if it left any.
    pub fn read(paths: &Paths) -> Option<Self> {
        serde_json::from_slice(&fs::read(paths.daemon_info()).ok()?).ok()
    }
}

/// The process id of the daemon that has the lock, for a message.
pub(super) fn running_pid(paths: &Paths) -> String {
    fs::read_to_string(paths.pid())
        .map_or_else(|_| "unknown".to_owned(), |pid| pid.trim().to_owned())
}
