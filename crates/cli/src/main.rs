//! The `pageset` command: what a recording of a kernel's page events contains, and what other kernels would have made
//! of it.
//!
//! One file for each subcommand. `args` says what can be typed; `source` opens traces, `machines` finds the machine,
//! `output` and `paragraph` write results, `origin` and `this_machine` say where they come from, `progress` shows that a long run is alive.
#![forbid(unsafe_code)]

mod args;
mod bench;
mod calibrate;
mod completions;
mod convert;
mod jobs;
mod machine;
mod machines;
mod man;
mod origin;
mod output;
mod paragraph;
mod pft;
mod policies;
mod progress;
mod replay;
mod reproduce;
mod simulate;
mod source;
mod stat;
mod sweep;
mod this_machine;
mod verify;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};

fn main() -> ExitCode {
    // clap prints usage errors itself and exits with status 2.
    match run(Args::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read our output has seen enough.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody is left to be told if this fails too.
            let _ = writeln!(io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Replay(args) => replay::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Reproduce(args) => reproduce::run(&args),
        Command::Simulate(args) => simulate::execute(&args),
        Command::Pft(args) => pft::execute(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Calibrate(args) => calibrate::run(&args),
        Command::Sweep(args) => sweep::run(&args),
        Command::Stat(args) => stat::run(&args),
        Command::Convert(args) => convert::run(&args),
        Command::Machine(args) => machine::run(&args),
        Command::Policies(args) => policies::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let errors = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    errors.into_iter().any(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
