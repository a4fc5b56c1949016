//! `deskbell watch`: the live stream in the terminal.

use super::{Exit, Failure, Output, filter::Filter};
use crate::journal::Cursor;

/// Shows what happens, live, with a progress bar for each open run.
///
/// Goes on where it was when the daemon restarts. Ends with Ctrl-C.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  deskbell watch
  deskbell watch --level warning.. --context safety
  deskbell watch --json | jq .text
  deskbell watch --after 0-0        from the first event on")]
pub(crate) struct Args {
    #[command(flatten)]
    filter: Filter,
    /// Begin after this place in the journal instead of now.
    #[arg(short, long, value_name = "CURSOR")]
    after: Option<Cursor>,
    /// Print each event as a line of JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(_args: Args, _output: &Output) -> anyhow::Result<Exit> {
    Err(Failure::new(Exit::Failed, "not there yet").into())
}
