//! The `pageset` command. All of it is in the library.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    pageset_cli::main()
}
