//! What `deskbell mcp` becomes: the bridge without the rest of the program, so that ten agents cost little.

use std::{io::Write as _, process::ExitCode};

fn main() -> ExitCode {
    match deskbell_bridge::program::run_small() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody is left to be told where stderr is closed as well.
            let _closed = writeln!(std::io::stderr(), "deskbell: {error}");
            ExitCode::FAILURE
        }
    }
}
