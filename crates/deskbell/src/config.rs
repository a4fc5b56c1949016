//! What the user set: built-in defaults, then files, then `DESKBELL_*`, then flags.

pub mod check;
pub mod file;
pub mod finding;
pub mod import;
pub mod load;
pub mod mcp_push;
mod problem;
mod read;
mod resolve;
mod secrets;
mod serve;
mod show;
mod tree;
pub mod trust;
mod variables;
pub mod watch;

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf, time::Duration};

use deskbell_channels::{Manner, SendContext, StandIn};
use deskbell_core::{ChannelName, Context, Level, quiet::Quiet, retry::RetryPolicy, route::Route};

pub use self::{
    check::{Report, check},
    finding::{ConfigErrors, Finding, Severity},
    load::{Loaded, Sources, load},
    problem::Problem,
    show::{schema, show},
    tree::{Place, Source},
};
use crate::{mcp::profiles::ToolNames, telemetry};

/// The whole configuration, read, merged and with every secret resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The channels, by name.
    pub channels: BTreeMap<ChannelName, ChannelOptions>,
    /// The channels among them that a trusted project brings, with its file: only reports from there reach them.
    pub project_channels: BTreeMap<ChannelName, PathBuf>,
    /// The routes, in order.
    pub routes: Vec<Route>,
    /// What the terminal and the log show.
    pub tracing: Tracing,
    /// How deliveries are tried.
    pub delivery: DeliveryOptions,
    /// When channels are left alone.
    pub quiet: Option<Quiet>,
    /// The MCP door.
    pub mcp: McpOptions,
    /// The HTTP door.
    pub serve: ServeOptions,
    /// How long finished history is kept; `None` keeps all.
    pub keep_history: Option<Duration>,
    /// Titles that are never pushed.
    pub skip_titles: Vec<String>,
    /// What is left out, such as single channels: everything else works.
    pub problems: Vec<Problem>,
}

impl Config {
    /// Reads the configuration.
    ///
    /// # Errors
    /// Names everything that is wrong. What is wrong with single channels is in [`Self::problems`] instead.
    pub fn load(sources: &Sources) -> Result<Self, ConfigErrors> {
        load(sources).map(|loaded| loaded.config)
    }
}

impl Default for Config {
    /// What holds where nothing is configured.
    fn default() -> Self {
        Self {
            channels: BTreeMap::new(),
            project_channels: BTreeMap::new(),
            routes: Vec::new(),
            tracing: Tracing::default(),
            delivery: DeliveryOptions::default(),
            quiet: None,
            mcp: McpOptions::default(),
            serve: ServeOptions::default(),
            keep_history: default_keep_history(),
            skip_titles: Vec::new(),
            problems: Vec::new(),
        }
    }
}

/// How long finished history is kept where nothing is said.
const fn default_keep_history() -> Option<Duration> {
    Some(Duration::from_hours(90 * 24))
}

/// How large a log file grows and how many are kept where nothing is said.
const fn default_log_limits() -> (u64, u32) {
    (telemetry::FILE_BYTES, telemetry::FILES_KEPT)
}

/// One channel as it is configured.
#[derive(Clone, PartialEq)]
pub struct ChannelOptions {
    /// The kind.
    pub kind: String,
    /// The options of the kind, with every secret resolved. Never printed.
    pub options: toml::Table,
    /// How many messages a minute it takes; `None` leaves it to the far end.
    pub per_minute: Option<u32>,
    /// How it is to tell.
    pub manner: Manner,
    /// Its own quiet hours, in place of those of all channels.
    pub quiet: Option<Quiet>,
    /// A server on this machine that stands for its far end.
    pub stand_in: Option<StandIn>,
}

impl std::fmt::Debug for ChannelOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChannelOptions").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// What the terminal and the log file show.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tracing {
    /// Rules of name and level; the longest name that fits wins. `llm_notify` stands for notices, and
    /// `llm_notify::warn` for notices of that one level.
    pub targets: Vec<TracingTarget>,
    /// Categories that are shown; empty means all.
    pub contexts: Vec<Context>,
    /// Categories that are not shown.
    pub hidden_contexts: Vec<Context>,
    /// The log file; `None` writes to the state folder.
    pub file: Option<LogFile>,
}

/// A rule of `[tracing] targets`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracingTarget {
    /// The target.
    pub name: String,
    /// The least level that is shown; `None` shows nothing.
    pub level: Option<Level>,
}

/// A log file that is appended to and rotated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFile {
    /// Where it is.
    pub path: PathBuf,
    /// How large it grows before it is rotated, in bytes.
    pub max_bytes: u64,
    /// How many rotated files are kept.
    pub keep: usize,
}

/// How deliveries are tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryOptions {
    /// How many attempts there are in all.
    pub attempts: u32,
    /// How long one attempt may take.
    pub timeout: Duration,
    /// The least time between two updates of a run on a channel.
    pub update_interval: Duration,
}

impl Default for DeliveryOptions {
    fn default() -> Self {
        Self {
            attempts: RetryPolicy::default().attempts,
            timeout: SendContext::TIMEOUT,
            update_interval: Duration::from_secs(5),
        }
    }
}

/// The MCP door.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct McpOptions {
    /// The profile that is used where none is named.
    pub profile: Option<String>,
    /// How tool names are listed; `None` leaves it to the profile.
    pub tool_names: Option<ToolNames>,
    /// How many notifications a client gets in a minute at most; 0 sets no limit.
    pub notifications_per_minute: Option<u32>,
}

/// The HTTP door.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ServeOptions {
    /// The address to listen on beside the local socket.
    pub listen: Option<SocketAddr>,
    /// Tokens that are accepted, by name. Never printed.
    pub tokens: BTreeMap<String, String>,
    /// Host names that requests may name, beside loopback ones.
    pub allowed_hosts: Vec<String>,
    /// Origins that browsers may come from, beside loopback ones.
    pub allowed_origins: Vec<String>,
    /// Whether loopback needs no token.
    pub anonymous_loopback: bool,
    /// Whether the user's own token may attach files of this machine.
    pub attach_files: bool,
}

impl std::fmt::Debug for ServeOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServeOptions").field("listen", &self.listen).finish_non_exhaustive()
    }
}
