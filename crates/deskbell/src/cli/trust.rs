//! `deskbell trust`: whether a project's own configuration may do more than choose routes and names.

use std::path::PathBuf;

use super::{Exit, Failure, Output};

/// Lets a project's `.deskbell.toml` bring channels and secrets of its own.
///
/// Holds for the file as it is now; a change asks again.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  deskbell trust
  deskbell trust ~/work/shop
  deskbell trust --revoke")]
pub(crate) struct Args {
    /// The project's folder; the current one without it.
    folder: Option<PathBuf>,
    /// Take the trust back.
    #[arg(long)]
    revoke: bool,
}

pub(crate) fn run(_args: &Args, _output: &Output) -> anyhow::Result<Exit> {
    Err(Failure::new(Exit::Failed, "not there yet").into())
}
