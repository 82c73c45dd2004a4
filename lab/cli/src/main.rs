//! The `pageset` command as a program of its own.
#![forbid(unsafe_code)]

use std::env;
use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(pageset_cli::command(env::args_os()))
}
