//! `deskbell doctor`: checks the whole way and says what to do.

use super::{Exit, Failure, Output};

/// Checks the whole way from this command to each channel, and says what to do.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  deskbell doctor
  deskbell doctor --json")]
pub(crate) struct Args {
    /// Print each check as a line of JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(_args: Args, _output: &Output) -> anyhow::Result<Exit> {
    Err(Failure::new(Exit::Failed, "not there yet").into())
}
