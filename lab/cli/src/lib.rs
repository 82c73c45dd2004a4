//! The `pageset` command records a kernel's page events, shows the contents of recordings, and forecasts zone
//! visits of the recorded load under other kernels.
//!
//! Most subcommands have a file, and a file `args` with their options in a folder of the same name. The top
//! `args` has the whole command line, and `options` has options that several subcommands share.
//! - To read recordings: `source` opens a recording, `fleet` reads many, and `layouts` finds the layout of a
//!   recording's machine.
//! - To write results: `output`, `page` and `paragraph` write them, and `limits` turns a limit on file sizes
//!   into an error. `invocation` makes the command that repeats a result, and `origin` describes the
//!   recording that the result comes from. `progress` shows how far a long run is.
//! - To end properly: `signals` watches signals, so that settings are put back before the process ends.
//!   `left` finds settings that a killed command left changed.
//! - Further files: `terminal` asks the user questions, `units` parses and prints times and sizes, and
//!   `rights` explains errors about missing rights. `examples` tests the command lines in help texts and
//!   documents.
//!
//! This crate computes no results. The crates `pageset-replay`, `pageset-study`, `pageset-reproduce` and
//! `pageset-measure` compute the results.
#![forbid(unsafe_code)]

mod advise;
mod args;
mod bench;
mod choice;
mod columnar;
mod completions;
mod convert;
#[cfg(test)]
mod example_lines;
#[cfg(test)]
mod examples;
mod fleet;
mod hint;
mod invocation;
mod layouts;
mod left;
mod limits;
mod man;
mod options;
mod origin;
mod output;
mod page;
mod paragraph;
mod policies;
mod policy_name;
mod progress;
mod record;
mod replay;
mod report;
mod reproduce;
mod rights;
mod signals;
mod simulate;
mod sites;
mod source;
mod stat;
mod sweep;
mod terminal;
mod top;
mod units;
mod verify;
mod who;

use std::ffi::OsString;
use std::io::{self, Write as _};

use anyhow::{Context as _, Result};
use clap::FromArgMatches as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use args::{Args, Command};
use invocation::Invocation;

/// Runs the command line `typed`, whose first word is the program's name, and returns the exit status. If the
/// command line is wrong, ends the process.
#[must_use]
pub fn command(typed: impl IntoIterator<Item = OsString>) -> u8 {
    limits::make_errors();
    pageset_replay::file::before_temporary(signals::remove_files_at_the_end);
    let typed: Vec<OsString> = typed.into_iter().collect();
    let words: Vec<String> = typed.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    // clap prints usage errors itself and exits with status 2.
    let mut definition = args::definition();
    let mut matches = match definition.try_get_matches_from_mut(typed) {
        Ok(matches) => matches,
        Err(error) if error.use_stderr() => with_dashes(error, &words).exit(),
        Err(help) => return status(print(&help), &words),
    };
    let invocation = Invocation::of(&definition, &matches);
    let check = output::check(&matches);
    let args =
        Args::from_arg_matches_mut(&mut matches).unwrap_or_else(|error| error.format(&mut definition).exit());
    status(check.and_then(|()| run(args.command, &invocation)), &words)
}

/// Prints a help text or the version. Returns an error if the output cannot be written, because clap's own
/// printing would ignore this error.
fn print(help: &clap::Error) -> Result<()> {
    help.print().and_then(|()| io::stdout().flush()).context("cannot write to the standard output")
}

/// Prints the error, and returns the exit status. Prints nothing if a pipe was closed, or if the error is
/// only an answer of `advise --exit-code`.
fn status(ended: Result<()>, words: &[String]) -> u8 {
    match ended {
        Ok(()) => 0,
        // If the program that reads the output closes the pipe early, the command has not failed.
        Err(error) if is_broken_pipe(&error) => 0,
        Err(error) => {
            if let Some(advise::AnswerStatus(status)) = error.downcast_ref() {
                return *status;
            }
            output::say(&format!("error: {}", rights::told(&error, words)));
            1
        }
    }
}

/// Adds a tip to the error if a command to be recorded was typed without `--` before it.
fn with_dashes(mut error: clap::Error, words: &[String]) -> clap::Error {
    let [verb, rest @ ..] = words else { return error };
    let definition = args::definition();
    let records = ["record", "advise"].contains(&verb.as_str());
    let Some(verb_definition) = definition.find_subcommand(verb).filter(|_| records) else { return error };
    let is_value = |at: usize| at > 0 && takes_next(verb_definition, &rest[at - 1]);
    let command = (0..rest.len()).find(|at| !rest[*at].starts_with('-') && !is_value(*at));
    // If the first unknown word comes before it, the word is no command.
    let unknown = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(unknown)) => rest.iter().position(|word| word.starts_with(unknown)),
        _ => None,
    };
    if let Some(at) = command
        && unknown.is_none_or(|unknown| unknown >= at)
        && error.kind() == ErrorKind::UnknownArgument
        && !rest.contains(&"--".to_owned())
        && !rest[at..].iter().all(|word| word.starts_with('-'))
    {
        let tip = format!("write a command to record after `--`: 'pageset {verb} -- {} ...'", rest[at]);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// Whether the word `option` is an option of the subcommand that takes the next word as its value.
fn takes_next(verb: &clap::Command, option: &str) -> bool {
    let of_word = |arg: &&clap::Arg| {
        let long = arg.get_long().is_some_and(|long| option.strip_prefix("--") == Some(long));
        let short = arg.get_short().is_some_and(|short| option == format!("-{short}"));
        (long || short) && arg.get_action().takes_values() && !arg.is_require_equals_set()
    };
    verb.get_arguments().any(|arg| of_word(&arg))
}

fn run(command: Command, invocation: &Invocation) -> anyhow::Result<()> {
    match command {
        Command::Replay(args) => replay::run(&args, invocation),
        Command::Advise(args) => advise::run(&args, invocation),
        Command::Verify(args) => verify::run(&args, invocation),
        Command::Reproduce(args) => reproduce::run(&args, invocation),
        Command::Simulate(args) => simulate::execute(&args, invocation),
        Command::Bench(args) => bench::run(&args, invocation),
        Command::Sweep(args) => sweep::run(&args, invocation),
        Command::Top(args) => top::run(&args, invocation),
        Command::Stat(args) => stat::run(&args, invocation),
        Command::Report(args) => report::run(&args, invocation),
        Command::Record(args) => record::run(&args),
        Command::Convert(args) => convert::run(&args),
        Command::Policies(args) => policies::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let errors = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    errors.into_iter().any(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns clap's error for this command line.
    fn said(typed: &str) -> String {
        let words: Vec<String> = typed.split(' ').map(str::to_owned).collect();
        let matches =
            args::definition().try_get_matches_from(["pageset"].into_iter().chain(typed.split(' ')));
        with_dashes(matches.expect_err("clap must refuse this command line"), &words).to_string()
    }

    #[test]
    fn a_command_without_dashes_gets_them() {
        assert!(
            said("advise tar -c -f x").contains("'pageset advise -- tar ...'"),
            "{}",
            said("advise tar -c -f x")
        );
        assert!(
            said("record make -j4").contains("'pageset record -- make ...'"),
            "{}",
            said("record make -j4")
        );
        assert!(!said("stat a -b").contains("after `--`"), "{}", said("stat a -b"));
        assert!(!said("record -C 0 -- true").contains("after `--`"));
        for typed in ["record -v --for 4s", "record --for 4s -v", "record --when zone_wait_us>500 -v"] {
            assert!(!said(typed).contains("after `--`"), "{typed}: {}", said(typed));
        }
        assert!(said("record --for 4s make -j4").contains("'pageset record -- make ...'"));
    }
}

/// The crate's README. Tests run the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
