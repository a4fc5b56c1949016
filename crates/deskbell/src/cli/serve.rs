//! `deskbell serve`: the daemon.

use std::{net::SocketAddr, process::ExitCode};

use clap::builder::PossibleValuesParser;

use super::Exit;
use crate::{
    daemon::{self, JournalPlace},
    mcp::profiles,
    paths::Paths,
};

/// Runs the daemon: journal, dispatch, live streams and HTTP.
///
/// Without `--listen` HTTP is on a loopback port: 8377, or another one where that is taken. It runs in the foreground
/// until it is told to end.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(after_help = "\
Examples:
  deskbell serve
  deskbell serve --listen 127.0.0.1:7788
  deskbell serve --listen 127.0.0.1:7788 --profile mcp-push --anonymous-loopback")]
pub struct Args {
    /// Address for HTTP beside the local socket; a loopback port without it.
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
    /// The MCP profile that is served where a client names none.
    #[arg(long, value_name = "PROFILE", value_parser = PossibleValuesParser::new(profiles::names()))]
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
pub fn run(args: &Args) -> ExitCode {
    let served = Paths::from_process()
        .map_err(anyhow::Error::from)
        .and_then(|paths| daemon::run(&paths, &args.options()));
    super::output::finish(served.map(|()| Exit::Done))
}

impl Args {
    fn options(&self) -> daemon::Options {
        daemon::Options {
            listen: self.listen,
            profile: self.profile.clone(),
            anonymous_loopback: self.anonymous_loopback,
            journal: match self.journal.as_deref() {
                None => JournalPlace::StateFolder,
                Some("memory") => JournalPlace::Memory,
                Some(path) => JournalPlace::File(path.into()),
            },
            detached: self.detached,
        }
    }
}
