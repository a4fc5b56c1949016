//! `deskbell notify`: one notice.

use deskbell_core::{ChannelName, Context, Level};

use super::{Exit, Failure, Output};

/// Tells one thing, as an agent would with its `notify` tool.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  deskbell notify 'the build is green'
  deskbell notify 'disk is 95 % full' -l error -c safety
  deskbell notify 'deploy finished' --to phone --wait
  make 2>&1 | tail -n 20 | deskbell notify - -t 'make failed' -l error")]
pub(crate) struct Args {
    /// What to tell; `-` reads it from stdin.
    text: String,
    /// How serious it is.
    #[arg(short, long, default_value = "info")]
    level: Level,
    /// Its category: analysis, workflow, safety, performance, discovery, or any other word.
    #[arg(short, long)]
    context: Option<Context>,
    /// A headline.
    #[arg(short, long)]
    title: Option<String>,
    /// Structured data, as a JSON value.
    #[arg(long, value_name = "JSON")]
    data: Option<String>,
    /// The text is Markdown.
    #[arg(long)]
    markdown: bool,
    /// Push it to this channel, whatever the routes say. May be given several times.
    #[arg(long, value_name = "CHANNEL")]
    to: Vec<ChannelName>,
    /// Wait until every channel took it or it was given up.
    #[arg(short, long)]
    wait: bool,
    /// Your own name for this notice: told twice under the same key, it is told once.
    #[arg(long)]
    key: Option<String>,
    /// Print what was accepted as JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(_args: Args, _output: &Output) -> anyhow::Result<Exit> {
    Err(Failure::new(Exit::Failed, "not there yet").into())
}
