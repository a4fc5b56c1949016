//! The entry of the program; everything else is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    deskbell::cli::main()
}
