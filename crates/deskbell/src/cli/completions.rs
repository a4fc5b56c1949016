//! `deskbell completions`: what a shell needs to complete the commands.

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::{Cli, Exit, Output};

/// Prints a script that completes the commands in a shell.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  deskbell completions bash > ~/.local/share/bash-completion/completions/deskbell
  deskbell completions zsh > ~/.zfunc/_deskbell
  deskbell completions fish > ~/.config/fish/completions/deskbell.fish")]
pub(crate) struct Args {
    /// The shell.
    shell: Shell,
}

pub(crate) fn run(args: &Args, output: &Output) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "deskbell", &mut script);
    output.raw(&script)?;
    Ok(Exit::Done)
}
