//! `deskbell runs`: the long jobs and how far they are.

use super::{Exit, Failure, Output};

/// Lists runs, the latest change first.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  deskbell runs
  deskbell runs --state open
  deskbell runs --json")]
pub(crate) struct Args {
    /// Only runs in this state.
    #[arg(short, long, value_parser = ["open", "ended", "failed"])]
    state: Option<String>,
    /// How many at most.
    #[arg(short = 'n', long, default_value_t = 50)]
    limit: usize,
    /// Print each run as a line of JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(_args: Args, _output: &Output) -> anyhow::Result<Exit> {
    Err(Failure::new(Exit::Failed, "not there yet").into())
}
