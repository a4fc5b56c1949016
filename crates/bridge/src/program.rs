//! The bridge as a program of its own.
//!
//! A bridge stays for as long as its agent does, and each agent has one. So `deskbell mcp` checks its arguments and
//! then becomes `deskbell-bridge`, a small program that lies beside it. Where that is missing, `deskbell` goes on as
//! the bridge itself: the same code, with more around it.

use std::{
    env,
    ffi::OsString,
    io::{self, Write},
    os::unix::process::CommandExt as _,
    process::Command,
    sync::OnceLock,
    time::Duration,
};

use crate::{VERSION, hello::Hello, paths::Paths, sink::Sink, start};

/// The variable by which the large program tells the small one its version. Who finds it set was started by the other
/// and does not start it again.
const VERSION_OF_STARTER: &str = "DESKBELL_BRIDGE_OF";

/// The profile whose clients keep their channels in a `config.sh` beside them.
const WITH_CONFIG_SH: &str = "mcp-push";

/// How long the end of the process waits for its last lines.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What the arguments of `deskbell mcp` ask of a bridge.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Which tools are listed.
    pub profile: Option<String>,
    /// How tool names are listed: `dot` or `underscore`.
    pub tool_names: Option<String>,
}

impl Options {
    fn written(&self) -> Vec<&str> {
        let options = [("--profile", &self.profile), ("--tool-names", &self.tool_names)];
        let set = options.into_iter().filter_map(|(name, value)| Some([name, value.as_deref()?]));
        std::iter::once("mcp").chain(set.flatten()).collect()
    }

    /// The options as [`written`](Self::written) writes them, and nothing else.
    fn read(arguments: impl IntoIterator<Item = OsString>) -> Option<Self> {
        let mut arguments = arguments.into_iter();
        let mut options = Self::default();
        if arguments.next()? != "mcp" {
            return None;
        }
        while let Some(name) = arguments.next() {
            let value = Some(arguments.next()?.into_string().ok()?);
            match name.to_str()? {
                "--profile" => options.profile = value,
                "--tool-names" => options.tool_names = value,
                _ => return None,
            }
        }
        Some(options)
    }
}

/// What `deskbell mcp` does once its arguments are understood: becomes the small program, or bridges itself.
///
/// # Errors
/// Says that no place for files is known, or that stdin cannot be read.
pub fn run(options: &Options) -> io::Result<()> {
    if env::var_os(VERSION_OF_STARTER).is_none()
        && let Ok(program) = start::beside(start::BRIDGE)
    {
        // This only returns where the small program cannot be started, for example because it is not there.
        let _not_there = Command::new(program)
            .arg0("deskbell")
            .args(options.written())
            .env(VERSION_OF_STARTER, VERSION)
            .exec();
    }
    bridge(options)
}

/// What the small program does. It becomes the large one where that has to explain the arguments, or is of another
/// version: a bridge that asks an older program for a newer daemon would ask for ever.
///
/// # Errors
/// As [`run`], or says that the large program is missing.
pub fn run_small() -> io::Result<()> {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    let is_of_same_version =
        env::var_os(VERSION_OF_STARTER).is_none_or(|version| version == VERSION);
    match Options::read(arguments.iter().cloned()).filter(|_| is_of_same_version) {
        Some(options) => bridge(&options),
        None => Err(Command::new(start::beside("deskbell")?)
            .args(&arguments)
            .env(VERSION_OF_STARTER, VERSION)
            .exec()),
    }
}

/// Bridges stdin and stdout to the daemon until the client closes them.
fn bridge(options: &Options) -> io::Result<()> {
    let paths = Paths::from_process().map_err(io::Error::other)?;
    // The contract of mcp-push: channels in the `config.sh` beside the client (row 111).
    let is_mcp_push = options.profile.as_deref() == Some(WITH_CONFIG_SH);
    let config_sh = is_mcp_push.then(|| std::path::absolute("config.sh")).transpose()?;
    let connect = Box::new(move || start::connect_or_start(&paths, config_sh.as_deref()));
    let copied = crate::run(
        Hello::of_this_process(options),
        connect,
        io::stdin(),
        io::stdout(),
        Terminal::default(),
    );
    Terminal::wait_until_written();
    copied
}

/// The queue of lines for stderr, once there was one: a terminal that nobody reads must not hold up the messages.
static STDERR: OnceLock<Sink> = OnceLock::new();

/// This process's stderr as the terminal of a bridge: a flush puts what was written into the queue.
#[derive(Debug, Default)]
pub struct Terminal {
    line: Vec<u8>,
}

impl Terminal {
    /// Waits a moment until what is queued was written; for the end of the process.
    pub fn wait_until_written() {
        if let Some(sink) = STDERR.get() {
            sink.flush(LAST_WORDS);
        }
    }
}

impl Write for Terminal {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.line.is_empty() {
            let line = String::from_utf8_lossy(&self.line).into_owned();
            STDERR.get_or_init(Sink::of_stderr).push(line);
            self.line.clear();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_as_they_are_written() {
        for (profile, tool_names) in
            [(None, None), (Some("mcp-push"), None), (Some("unified"), Some("dot"))]
        {
            let options = Options {
                profile: profile.map(str::to_owned),
                tool_names: tool_names.map(str::to_owned),
            };
            let written = options.written().into_iter().map(OsString::from);
            assert_eq!(Options::read(written), Some(options));
        }
    }

    #[test]
    fn other_arguments_are_left_to_the_large_program() {
        for line in ["", "serve", "mcp --help", "mcp --profile", "mcp --in-process --profile x"] {
            assert_eq!(Options::read(line.split_whitespace().map(OsString::from)), None, "{line}");
        }
    }
}
