//! `deskbell serve`: the daemon.

use std::{net::SocketAddr, process::ExitCode};

/// Runs the daemon: journal, dispatch, live streams and HTTP.
///
/// Without `--listen` it has only the local socket. It runs in the foreground until it is told to end.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(after_help = "\
Examples:
  deskbell serve
  deskbell serve --listen 127.0.0.1:7788
  deskbell serve --listen 127.0.0.1:7788 --profile lambda --anonymous-loopback")]
pub struct Args {
    /// Address for HTTP beside the local socket.
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
    /// The MCP profile that is served where a client names none.
    #[arg(long, value_name = "PROFILE")]
    pub profile: Option<String>,
    /// Ask for no token on a loopback address, for development.
    #[arg(long)]
    pub anonymous_loopback: bool,
    /// Where events are kept: `memory`, or the path of a file; a file in the state folder without it.
    #[arg(long, value_name = "memory|PATH")]
    pub journal: Option<String>,
    /// Whether a command started it in the background.
    #[arg(long, hide = true)]
    pub detached: bool,
}

/// Serves until the process is told to end.
pub fn run(_args: &Args) -> ExitCode {
    ExitCode::FAILURE
}
