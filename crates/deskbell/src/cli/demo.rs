//! `deskbell demo`: the whole thing in a minute, with no account and no configuration.

use super::{Exit, Failure, Output};

/// Shows an agent telling, a run progressing and a push arriving, in a minute and without configuration.
///
/// Uses a folder of its own, so that your journal and channels are not touched, and leaves nothing behind.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  deskbell demo")]
pub(crate) struct Args {
    /// Do not pause between the steps.
    #[arg(long)]
    fast: bool,
}

pub(crate) async fn run(_args: Args, _output: &Output) -> anyhow::Result<Exit> {
    Err(Failure::new(Exit::Failed, "not there yet").into())
}
