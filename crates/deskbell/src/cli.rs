//! The commands: what each is called, how it ends, and how it speaks to the person who typed it.
//!
//! One file per command holds its arguments and what it does. Data goes to stdout, everything else to stderr.

mod argument;
mod attach;
mod channel;
mod client;
mod completions;
mod config;
mod delivery;
mod demo;
mod doctor;
mod event;
mod filter;
mod history;
mod lab;
pub mod mcp;
mod notify;
mod output;
mod prompt;
pub mod reference;
mod report;
mod runs;
pub mod serve;
mod show;
mod snooze;
mod table;
mod time;
mod trust;
mod watch;
mod why;

use std::{ffi::OsString, iter, process::ExitCode};

use clap::{Parser, Subcommand};
use deskbell_core::text;

pub(crate) use client::Client;
pub(crate) use output::{Exit, Failure, Output};

use crate::telemetry;

/// Runs the command that the arguments name.
pub fn main() -> ExitCode {
    let code = run_named();
    telemetry::flush();
    code
}

fn run_named() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    // An MCP client waits for this start, and building clap's tree of commands would be most of it.
    if let Some(args) = mcp::Args::plain(&arguments) {
        return mcp::run(&args);
    }
    match parse(&arguments).command {
        Command::Mcp(args) => mcp::run(&args),
        Command::Serve(args) => serve::run(&args),
        command => output::finish(run(command)),
    }
}

/// Reads the arguments, or ends the program with help or with what is wrong.
fn parse(arguments: &[OsString]) -> Cli {
    let error = match Cli::try_parse_from(named(arguments.iter().cloned())) {
        Ok(cli) => return cli,
        Err(error) => error,
    };
    // clap repeats what was typed as it is, so it is shown what was typed as it may be shown.
    let shown =
        |argument: &OsString| text::one_line(&argument.to_string_lossy()).into_owned().into();
    match Cli::try_parse_from(named(arguments.iter().map(shown))) {
        Err(same) if same.kind() == error.kind() => same.exit(),
        _ => {
            let rendered = error.render().to_string();
            Output::of_this_process().note(text::clean(&rendered).trim_end());
            std::process::exit(error.exit_code())
        }
    }
}

/// The arguments behind the program's name.
fn named(arguments: impl Iterator<Item = OsString>) -> impl Iterator<Item = OsString> {
    iter::once(OsString::from("deskbell")).chain(arguments)
}

fn run(command: Command) -> anyhow::Result<Exit> {
    let output = Output::of_this_process();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match command {
            Command::Notify(args) => notify::run(args, &output).await,
            Command::Event(args) => event::run(args, &output).await,
            Command::Watch(args) => watch::run(args, &output).await,
            Command::History(args) => history::run(args, &output).await,
            Command::Runs(args) => runs::run(args, &output).await,
            Command::Why(args) => why::run(args, &output).await,
            Command::Channel { command } => channel::run(command, &output).await,
            Command::Delivery { command } => delivery::run(command, &output).await,
            Command::Snooze(args) => snooze::run(args, &output).await,
            Command::Prompt { command } => prompt::run(command, &output).await,
            Command::Config { command } => config::run(&command, &output),
            Command::Trust(args) => trust::run(&args, &output),
            Command::Doctor(args) => doctor::run(args, &output).await,
            Command::Demo(args) => demo::run(args, &output).await,
            Command::Lab(args) => lab::run(&args, &output).await,
            Command::Completions(args) => completions::run(&args, &output),
            Command::Mcp(_) | Command::Serve(_) => Ok(Exit::Done),
        }
    })
}

/// The bell on the desk of every AI agent: carries messages between agents and people, and loses none.
///
/// With no configuration at all it keeps every event in a journal and shows it live in the terminal. Channels such as
/// a phone or a chat are added in the configuration file.
#[derive(Debug, Parser)]
#[command(name = "deskbell", version, after_help = EXAMPLES, after_long_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// A literal, because only those are put together before the program runs.
macro_rules! examples {
    () => {
        "\
Examples:
  deskbell demo                                   see everything in a minute
  deskbell notify 'the backup is done' -l notice  tell something
  deskbell watch                                  see what happens, live"
    };
}

const EXAMPLES: &str = examples!();

const EXIT_CODES: &str = concat!(
    examples!(),
    "

Exit codes:
  0   done
  1   it failed, or what was asked about is not as it should be
  2   the command or a value in it is wrong; nothing was done
  3   not now: the daemon cannot be reached or started, or the journal is busy or full
  13  accepted and still open when the time was over (notify --wait, channel test)

Environment:
  DESKBELL_CONFIG     the user's configuration file
  DESKBELL_STATE_DIR  the folder for journal, socket and log
  NO_COLOR            no colours, even on a terminal"
);

#[derive(Debug, Subcommand)]
enum Command {
    Mcp(mcp::Args),
    Serve(serve::Args),
    Notify(notify::Args),
    Event(event::Args),
    Watch(watch::Args),
    History(history::Args),
    Runs(runs::Args),
    Why(why::Args),
    /// Lists, tests, previews and imports the channels.
    Channel {
        #[command(subcommand)]
        command: channel::Command,
    },
    /// Lists deliveries and tries them again.
    Delivery {
        #[command(subcommand)]
        command: delivery::Command,
    },
    Snooze(snooze::Args),
    /// Lists the prompts that MCP clients find, and fills them in.
    Prompt {
        #[command(subcommand)]
        command: prompt::Command,
    },
    /// Checks, shows and describes the configuration.
    Config {
        #[command(subcommand)]
        command: config::Command,
    },
    Trust(trust::Args),
    Doctor(doctor::Args),
    Demo(demo::Args),
    Lab(lab::Args),
    Completions(completions::Args),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_definition_holds_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_a_text_and_an_example() {
        fn check(command: &clap::Command, path: &str) {
            assert!(command.get_about().is_some(), "{path} has no text");
            if command.has_subcommands() {
                for below in command.get_subcommands() {
                    check(below, &format!("{path} {}", below.get_name()));
                }
            } else {
                let examples =
                    command.get_after_help().map(ToString::to_string).unwrap_or_default();
                assert!(examples.contains(path), "{path} has no example");
            }
        }
        check(&Cli::command(), "deskbell");
    }
}
