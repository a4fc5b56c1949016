//! `deskbell trust`: whether a project's own configuration may do more than add to the user's routes.

use std::path::PathBuf;

use anyhow::Context as _;
use deskbell_core::text;

use super::{Exit, Failure, Output};
use crate::{
    config::{load::PROJECT_FILE, trust},
    paths::Paths,
};

/// Lets a project's `.deskbell.toml` bring channels of its own, and routes in place of yours.
///
/// Until then its routes only add to what yours choose. Trust holds for the file as it is now; a change asks again.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  deskbell trust
  deskbell trust ~/work/shop
  deskbell trust config.sh         the variables of mcp-push
  deskbell trust --revoke")]
pub(crate) struct Args {
    /// The project's folder, or a file; the current folder without it.
    folder: Option<PathBuf>,
    /// Take the trust back.
    #[arg(long)]
    revoke: bool,
}

pub(crate) fn run(args: &Args, output: &Output) -> anyhow::Result<Exit> {
    let paths = Paths::from_process()?;
    let folder = match &args.folder {
        Some(folder) => std::path::absolute(folder)?,
        None => std::env::current_dir().context("failed to find the current folder")?,
    };
    let Some(file) = trust::find(&folder) else {
        let message = format!("there is no {PROJECT_FILE} in {} or above", folder.display());
        return Err(Failure::new(Exit::Failed, message).into());
    };
    let is_read = file.file_name().is_some_and(|name| name == PROJECT_FILE || name == "config.sh");
    if !is_read && !args.revoke {
        let message = format!("nothing of {} would be read", file.display());
        let hint = format!("trust is for a {PROJECT_FILE} or a config.sh");
        return Err(Failure::new(Exit::Wrong, message).hint(hint).into());
    }
    paths.create_state()?;
    let shown = file.display().to_string();
    let shown = text::one_line(&shown);
    if args.revoke {
        let was_trusted = trust::revoke(&paths, &file)?;
        let done = if was_trusted { "is not trusted any more" } else { "was not trusted" };
        output.note(format_args!("{shown} {done}"));
    } else {
        trust::trust(&paths, &file)?;
        output.note(format_args!("{shown} is trusted as it is now"));
        output.hint("`deskbell config check` shows what it brings");
    }
    Ok(Exit::Done)
}
