//! `deskbell config`: whether the configuration is right, what it comes to, and what may be in it.

use super::{Exit, Failure, Output};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Checks every file and says what is wrong, where.
    #[command(after_help = "Examples:\n  deskbell config check\n  deskbell config check --json")]
    Check {
        /// Print the problems as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Prints what all files, variables and defaults come to, without secrets.
    #[command(after_help = "Examples:\n  deskbell config show")]
    Show,
    /// Prints the JSON Schema of the configuration file, for editors.
    #[command(after_help = "Examples:\n  deskbell config schema > deskbell.schema.json")]
    Schema,
}

pub(crate) fn run(_command: Command, _output: &Output) -> anyhow::Result<Exit> {
    Err(Failure::new(Exit::Failed, "not there yet").into())
}
