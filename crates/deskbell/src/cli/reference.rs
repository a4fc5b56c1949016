//! The page of Markdown that describes all commands, for `docs/cli.md`.

use std::fmt::Write as _;

use clap::{Command, CommandFactory as _};

use super::Cli;

/// How wide the help is set in the page.
const WIDTH: usize = 100;

const HEAD: &str = "\
# The commands

<!-- Generated from crates/deskbell/src/cli; `UPDATE_DOCS=1 cargo test --workspace --test it cli::` writes it anew. -->

Data goes to stdout, everything else to stderr.
Colours are used only on a terminal; `NO_COLOR` turns them off there too.
With `--json` each line of stdout is one JSON object of [the HTTP API](http.md).
";

/// The page.
pub fn page() -> String {
    let mut page = String::from(HEAD);
    let mut command = Cli::command().term_width(WIDTH);
    command.build();
    // Writing to a string cannot fail.
    let _infallible = section(&mut page, &mut command);
    page
}

fn section(page: &mut String, command: &mut Command) -> std::fmt::Result {
    let name = command.get_bin_name().unwrap_or(command.get_name()).to_owned();
    let help = command.render_long_help().to_string();
    write!(page, "\n## `{name}`\n\n```text\n")?;
    for line in help.trim_end().lines() {
        writeln!(page, "{}", line.trim_end())?;
    }
    writeln!(page, "```")?;
    for below in command.get_subcommands_mut() {
        if below.get_name() != "help" && !below.is_hide_set() {
            section(page, below)?;
        }
    }
    Ok(())
}
