//! `deskbell channel`: what is configured, whether it works, what would be sent.

use deskbell_core::{ChannelName, Level};

use super::{Exit, Failure, Output};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Lists the configured channels and how they do.
    #[command(after_help = "Examples:\n  deskbell channel list\n  deskbell channel list --json")]
    List {
        /// Print each channel as a line of JSON.
        #[arg(long)]
        json: bool,
    },
    /// Sends a real message through a channel and prints the far end's answer.
    #[command(after_help = "Examples:\n  deskbell channel test phone")]
    Test {
        /// The channel.
        name: ChannelName,
        /// Print the answer as JSON.
        #[arg(long)]
        json: bool,
    },
    Preview(Preview),
}

/// Prints the requests that a channel would send, and sends nothing.
///
/// Needs no daemon.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  deskbell channel preview phone --title 'Build' --body 'It is green.'
  deskbell channel preview ntfy://builds-7f3a --title T --body B --json")]
pub(crate) struct Preview {
    /// A configured channel, or an address such as `ntfy://topic`.
    name_or_url: String,
    /// The headline.
    #[arg(long, default_value = "Deskbell")]
    title: String,
    /// The text.
    #[arg(long)]
    body: String,
    /// How serious it is.
    #[arg(short, long, default_value = "info")]
    level: Level,
    /// How the text is written.
    #[arg(long, default_value = "text", value_parser = ["text", "markdown"])]
    format: String,
    /// Show secrets as they are instead of hiding them.
    #[arg(long)]
    show_secrets: bool,
    /// Print it as JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(_command: Command, _output: &Output) -> anyhow::Result<Exit> {
    Err(Failure::new(Exit::Failed, "not there yet").into())
}
