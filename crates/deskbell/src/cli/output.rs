//! How a command speaks and ends: data to stdout, everything else to stderr, a hint on a line of its own.

use std::{
    fmt,
    io::{self, IsTerminal as _, Write as _},
    process::ExitCode,
};

use anstyle::{AnsiColor, Style};
use deskbell_core::{Invalid, text};
use serde::Serialize;

/// How a command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Done,
    /// It failed, or what was asked about is not as it should be.
    Failed,
    /// The command or a value in it is wrong.
    Wrong,
    /// The daemon cannot be reached, or the journal takes nothing at the moment.
    NotNow,
    /// Accepted, and still open when the time was over.
    StillOpen,
}

impl Exit {
    const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Wrong => 2,
            Self::NotNow => 3,
            Self::StillOpen => 13,
        }
    }
}

/// Why a command stops, with what the person can do about it.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), hint: None }
    }

    #[must_use]
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl From<Invalid> for Failure {
    fn from(refusal: Invalid) -> Self {
        Self::new(Exit::Wrong, refusal.to_string())
    }
}

pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default().bold();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();
pub(crate) const QUIET: Style = Style::new().dimmed();
pub(crate) const STRONG: Style = Style::new().bold();

/// `text` in `style`; `anstream` drops the style where it does not belong.
pub(crate) fn styled(style: Style, text: impl fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// Where a command writes.
#[derive(Debug)]
pub(crate) struct Output {
    /// Whether stdout is a terminal.
    pub(crate) is_terminal: bool,
}

impl Output {
    pub(crate) fn of_this_process() -> Self {
        Self { is_terminal: io::stdout().is_terminal() }
    }

    /// Writes a line of data.
    #[expect(clippy::unused_self, reason = "who holds the output may write to it")]
    pub(crate) fn line(&self, line: impl fmt::Display) -> io::Result<()> {
        let mut stdout = anstream::stdout().lock();
        writeln!(stdout, "{line}")?;
        stdout.flush()
    }

    /// Writes `value` as one line of JSON.
    #[expect(clippy::unused_self, reason = "who holds the output may write to it")]
    pub(crate) fn json(&self, value: &impl Serialize) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        let json = serde_json::to_string(value)?;
        writeln!(stdout, "{}", text::json_line(&json))?;
        stdout.flush()
    }

    /// Writes a line of JSON that is written already.
    #[expect(clippy::unused_self, reason = "who holds the output may write to it")]
    pub(crate) fn json_line(&self, json: &[u8]) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        writeln!(stdout, "{}", text::json_line(&String::from_utf8_lossy(json)))?;
        stdout.flush()
    }

    /// Writes bytes as they are.
    #[expect(clippy::unused_self, reason = "who holds the output may write to it")]
    pub(crate) fn raw(&self, bytes: &[u8]) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes)?;
        stdout.flush()
    }

    /// Writes a line that is not data. That nobody can read it stops no command.
    #[expect(clippy::unused_self, reason = "who holds the output may write to it")]
    pub(crate) fn note(&self, line: impl fmt::Display) {
        let _unread = writeln!(anstream::stderr().lock(), "{line}");
    }

    /// Writes what went wrong, with its causes and what can be done about it.
    pub(crate) fn error(&self, error: &anyhow::Error) {
        let causes: Vec<_> = error.chain().map(ToString::to_string).collect();
        // A cause may repeat what was typed or what somebody sent.
        let lines: Vec<_> =
            causes.join(": ").lines().map(|l| text::one_line(l).into_owned()).collect();
        self.note(format_args!("{} {}", styled(ERROR, "error:"), lines.join("\n")));
        if let Some(hint) = failure(error).and_then(|failure| failure.hint.as_ref()) {
            self.hint(hint);
        }
    }

    /// Writes what can be done next, on its own line.
    pub(crate) fn hint(&self, hint: impl fmt::Display) {
        self.note(format_args!("{} {hint}", styled(STRONG, "hint:")));
    }
}

/// Says why the command failed, if it did, and gives its exit code.
pub(crate) fn finish(result: anyhow::Result<Exit>) -> ExitCode {
    let error = match result {
        Ok(exit) => return ExitCode::from(exit.code()),
        Err(error) => error,
    };
    // `deskbell history | head` is no failure.
    let closed = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<io::Error>().is_some_and(|io| io.kind() == io::ErrorKind::BrokenPipe)
    };
    if error.chain().any(closed) {
        return ExitCode::from(Exit::Done.code());
    }
    Output::of_this_process().error(&error);
    ExitCode::from(exit(&error).code())
}

fn exit(error: &anyhow::Error) -> Exit {
    match failure(error) {
        Some(failure) => failure.exit,
        None if error.chain().any(|cause| cause.is::<Invalid>()) => Exit::Wrong,
        None => Exit::Failed,
    }
}

fn failure(error: &anyhow::Error) -> Option<&Failure> {
    error.chain().find_map(|cause| cause.downcast_ref())
}
