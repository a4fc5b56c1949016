//! `deskbell history`: what happened.

use super::{Exit, Failure, Output, filter::Filter};
use crate::journal::Cursor;

/// Shows what happened, the newest last.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  deskbell history
  deskbell history --level error.. --since 2h
  deskbell history --run backup-0117 --json")]
pub(crate) struct Args {
    #[command(flatten)]
    filter: Filter,
    /// Only events since a time (ISO 8601) or for the last while, such as `30m`, `2h` or `7d`.
    #[arg(short, long, value_name = "TIME")]
    since: Option<String>,
    /// Only events after this place in the journal.
    #[arg(long, value_name = "CURSOR")]
    after: Option<Cursor>,
    /// How many at most, the newest ones.
    #[arg(short = 'n', long, default_value_t = 50)]
    limit: usize,
    /// Print each event as a line of JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(_args: Args, _output: &Output) -> anyhow::Result<Exit> {
    Err(Failure::new(Exit::Failed, "not there yet").into())
}
