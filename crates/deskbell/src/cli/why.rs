//! `deskbell why`: where an event went, and why.

use deskbell_core::EventId;

use super::{Exit, Failure, Output};

/// Explains where an event went: each route, each delivery, each attempt.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  deskbell why 019a9c2e-5f00-7000-8000-000000000000
  deskbell why \"$(deskbell history -n 1 --json | jq -r .id)\"")]
pub(crate) struct Args {
    /// The event, as `history` shows it.
    event_id: EventId,
    /// Print it as JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(_args: Args, _output: &Output) -> anyhow::Result<Exit> {
    Err(Failure::new(Exit::Failed, "not there yet").into())
}
