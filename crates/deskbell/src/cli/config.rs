//! `deskbell config`: whether the configuration is right, what it comes to, and what may be in it.

use anyhow::Context as _;

use super::{Exit, Failure, Output};
use crate::{
    config::{check, load::Sources, schema, show},
    paths::Paths,
};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Checks every file and says what is wrong, where. Ends with 1 if something is.
    #[command(after_help = "Examples:\n  deskbell config check\n  deskbell config check --json")]
    Check {
        /// Print the findings as JSON.
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

pub(crate) fn run(command: &Command, output: &Output) -> anyhow::Result<Exit> {
    match command {
        Command::Check { json } => {
            let report = check::check_from_here(&sources()?);
            if *json {
                output.json(&report.to_json())?;
            } else {
                output.line(report.to_string().trim_end())?;
            }
            Ok(if report.is_right() { Exit::Done } else { Exit::Failed })
        }
        Command::Show => {
            let page = show(&sources()?)
                .map_err(|errors| Failure::new(Exit::Failed, errors.to_string()))?;
            output.line(page.trim_end())?;
            Ok(Exit::Done)
        }
        Command::Schema => {
            output.line(serde_json::to_string_pretty(&schema())?)?;
            Ok(Exit::Done)
        }
    }
}

/// The sources of a command in the folder where it was typed.
pub(super) fn sources() -> anyhow::Result<Sources> {
    let folder = std::env::current_dir().context("failed to find the current folder")?;
    Ok(Sources::of_a_folder(&Paths::from_process()?, folder))
}
