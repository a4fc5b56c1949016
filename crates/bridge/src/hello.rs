//! What a bridge and the daemon say to each other on the local socket before and between MCP messages.
//!
//! The bridge's first line is a [`Hello`], the daemon's first line a [`Welcome`]. Then each line from the bridge is
//! `NUMBER JSON`: the number counts the client's requests from 1 and is the same when a request is sent again to a
//! new daemon; it is 0 for everything that is not a request and for a replayed handshake. Each line from the daemon
//! is a JSON-RPC message, or [`TERMINAL_MARK`] and a line for the bridge's stderr.

use std::{collections::BTreeMap, env};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{VERSION, program::Options};

/// What starts a line that is meant for the stderr of the bridge.
pub const TERMINAL_MARK: char = '!';

/// The bridge's first line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Version of the bridge. A daemon that is older hands over.
    pub version: String,
    /// A random name of this bridge, the same in each of its connections.
    pub key: String,
    /// The profile that the client was started with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// How tool names are listed: `dot` or `underscore`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_names: Option<String>,
    /// The folder in which the client started the bridge.
    #[serde(default)]
    pub folder: Option<String>,
    /// The process that started the bridge.
    #[serde(default)]
    pub client_pid: Option<u32>,
    /// Variables that tell where the user's display and terminal are.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
}

impl Hello {
    /// The first line of a bridge that is this process.
    pub fn of_this_process(options: &Options) -> Self {
        let environment = ENVIRONMENT
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), env::var(name).ok()?)))
            .collect();
        Self {
            version: VERSION.to_owned(),
            key: Uuid::new_v4().to_string(),
            profile: options.profile.clone(),
            tool_names: options.tool_names.clone(),
            folder: env::current_dir().ok().map(|folder| folder.display().to_string()),
            client_pid: Some(std::os::unix::process::parent_id()),
            environment,
        }
    }
}

/// The variables that tell where the user's display and terminal are.
const ENVIRONMENT: [&str; 14] = [
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
    "XDG_SESSION_TYPE",
    "DBUS_SESSION_BUS_ADDRESS",
    "TERM",
    "TERM_PROGRAM",
    "COLORTERM",
    "NO_COLOR",
    "TMUX",
    "STY",
    "SSH_TTY",
    "LANG",
];

/// The daemon's first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// Version of the daemon.
    pub version: String,
    /// Whether the daemon is older than the bridge and ends, so that the bridge starts a new one.
    pub hands_over: bool,
}
