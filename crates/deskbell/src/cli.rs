//! The commands.

use std::process::ExitCode;

/// Runs the command that the arguments name.
pub fn main() -> ExitCode {
    ExitCode::SUCCESS
}
