//! `deskbell mcp`: what an MCP client launches.

use std::{
    ffi::OsString,
    io,
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread,
};

use clap::builder::PossibleValuesParser;

use super::Exit;
use crate::{
    bridge::{self, hello::Hello, program},
    daemon::{self, InProcess},
    mcp::profiles,
    paths::Paths,
};

/// Serves MCP over stdin and stdout, for a client that launches it.
///
/// Connects to the user's daemon over a local socket and starts it when it is not running.
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
#[command(after_help = "\
Examples:
  deskbell mcp
  deskbell mcp --profile mcp-push
  deskbell mcp --in-process        in a sandbox that allows no second process")]
pub struct Args {
    /// Which tools are listed, and with which schemas.
    #[arg(long, value_name = "PROFILE", value_parser = PossibleValuesParser::new(profiles::names()))]
    pub profile: Option<String>,
    /// How tool names are listed; both spellings are always accepted.
    #[arg(long, value_name = "STYLE", value_parser = ["dot", "underscore"])]
    pub tool_names: Option<String>,
    /// Start no second process: where no daemon runs, this one is the daemon for as long as its client stays.
    #[arg(long)]
    pub in_process: bool,
}

impl Args {
    /// Reads a plain `mcp` command line without clap; whatever is odd is left to clap, which explains it.
    pub(crate) fn plain(arguments: &[OsString]) -> Option<Self> {
        let (name, options) = arguments.split_first()?;
        if name != "mcp" {
            return None;
        }
        let mut args = Self::default();
        let mut options = options.iter();
        while let Some(option) = options.next() {
            let option = option.to_str()?;
            let (name, inline) = match option.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (option, None),
            };
            if name == "--in-process" && inline.is_none() {
                args.in_process = true;
                continue;
            }
            let value = match inline {
                Some(value) => value,
                None => options.next()?.to_str()?,
            };
            match name {
                "--profile" if profiles::find(value).is_ok() => {
                    args.profile = Some(value.to_owned());
                }
                "--tool-names" if matches!(value, "dot" | "underscore") => {
                    args.tool_names = Some(value.to_owned());
                }
                _ => return None,
            }
        }
        Some(args)
    }
}

/// Bridges stdin and stdout to the daemon until the client closes them.
pub fn run(args: &Args) -> ExitCode {
    super::output::finish(bridge(args).map(|()| Exit::Done))
}

fn bridge(args: &Args) -> anyhow::Result<()> {
    let options =
        program::Options { profile: args.profile.clone(), tool_names: args.tool_names.clone() };
    if !args.in_process {
        return Ok(program::run(&options)?);
    }
    bridge_in_process(args, Paths::from_process()?, Hello::of_this_process(&options))
}

/// Bridges to a daemon that may be this process, until the client closes its side or this process is told to end.
fn bridge_in_process(args: &Args, paths: Paths, hello: Hello) -> anyhow::Result<()> {
    let options = daemon::Options { profile: args.profile.clone(), ..daemon::Options::default() };
    let in_process = Arc::new(InProcess::new(paths, options)?);
    let (done, ended) = mpsc::channel();
    let told = done.clone();
    // Nobody listens any more when this process is ending already.
    daemon::on_signal(move || drop(told.send(Ok(()))))?;
    // A journal that cannot be opened is told at once and not to the first request.
    let first = Mutex::new(Some(in_process.connect()?));
    let connecting = Arc::clone(&in_process);
    let connect = Box::new(move || {
        let first = first.lock().unwrap_or_else(PoisonError::into_inner).take();
        let stream = first.map_or_else(|| connecting.connect(), Ok);
        stream.map_err(|error| io::Error::other(format!("{error:#}")))
    });
    thread::Builder::new().name("from client".to_owned()).spawn(move || {
        let copied =
            bridge::run(hello, connect, io::stdin(), io::stdout(), program::Terminal::default());
        drop(done.send(copied));
    })?;
    let copied = ended.recv();
    in_process.end();
    program::Terminal::wait_until_written();
    Ok(copied??)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Option<&Args>) {
        let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        assert_eq!(Args::plain(&arguments).as_ref(), expected, "{line}");
    }

    #[test]
    fn plain_command_lines_are_read_without_clap() {
        check("mcp", Some(&Args::default()));
        check(
            "mcp --profile mcp-push --tool-names=dot --in-process",
            Some(&Args {
                profile: Some("mcp-push".to_owned()),
                tool_names: Some("dot".to_owned()),
                in_process: true,
            }),
        );
    }

    #[test]
    fn what_is_odd_is_left_to_clap() {
        for line in [
            "serve",
            "mcp --help",
            "mcp -h",
            "mcp --profile",
            "mcp --tool-names=x",
            "mcp extra",
            "mcp --profile lambda",
        ] {
            check(line, None);
        }
    }
}
