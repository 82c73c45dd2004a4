//! Writes results to the standard output, or to a file that appears only when it is complete. This module
//! replaces control characters, because results may contain texts from other programs. `cargo xtask ci tidy`
//! checks that other modules of the crate do not write to the terminal; the few exceptions are in its list.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::ArgMatches;
pub(crate) use pageset_replay::file::{
    AtomicFile, Existing, begin_file, check_file, remove_begun, write_file,
};

use pageset_report::printable_lines;

use crate::options::TargetArgs;

/// Writes a result to the target's file, or to the standard output if the target has no file. The closure
/// `make` first fills a buffer in memory. If `make` fails, nothing is written.
pub(crate) fn write(target: &TargetArgs, make: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    match &target.output {
        None => print(make),
        Some(path) => {
            let result = made(make)?;
            write_file(path, target.existing(), |out| Ok(out.write_all(&result)?))
        }
    }
}

/// Writes a result to the standard output.
pub(crate) fn print(make: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let result = made(make)?;
    let mut out = io::stdout().lock();
    out.write_all(&result).and_then(|()| out.flush()).context("cannot write to the standard output")
}

/// Makes a result in memory. Control characters of a binary result are not replaced, because such a result is
/// not for a terminal.
fn made(make: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<Vec<u8>> {
    let mut result = Vec::new();
    make(&mut result)?;
    Ok(match std::str::from_utf8(&result).map(printable_lines) {
        Ok(Cow::Owned(shown)) => shown.into_bytes(),
        _ => result,
    })
}

/// Prints a message on the standard error, apart from the result: a fact that the user should know, or an
/// error.
pub(crate) fn say(text: &str) {
    // If the standard error cannot be written to, there is no other place for the message.
    drop(writeln!(io::stderr(), "{}", printable_lines(text)));
}

/// Refuses an output file that must not be written, before hours of work go into the result. This function
/// checks every subcommand that has `--force` and `--output` or `--html`.
pub(crate) fn check(matches: &ArgMatches) -> Result<()> {
    if let Some((_, below)) = matches.subcommand() {
        return check(below);
    }
    let force = matches.try_get_one::<bool>("force").ok().flatten();
    for option in ["output", "html"] {
        let path = matches.try_get_one::<PathBuf>(option).ok().flatten();
        if let (Some(path), Some(force)) = (path, force) {
            check_file(path, if *force { Existing::Replace } else { Existing::Refuse })?;
            check_inputs(matches, option, path)?;
        }
    }
    Ok(())
}

/// Refuses an output file that is also an input: with `--force`, the result would replace the input.
fn check_inputs(matches: &ArgMatches, option: &str, output: &Path) -> Result<()> {
    let file = |path: &Path| fs::metadata(path).ok().filter(Metadata::is_file);
    let Some(existing) = file(output) else { return Ok(()) };
    let others = matches.ids().filter(|id| id.as_str() != option);
    for value in others.filter_map(|id| matches.try_get_raw(id.as_str()).ok().flatten()).flatten() {
        // A workload names a recording as `trace:FILE`.
        let name = value.to_str().and_then(|value| value.strip_prefix("trace:")).map_or(value, OsStr::new);
        let is_same = |input: Metadata| (input.dev(), input.ino()) == (existing.dev(), existing.ino());
        if file(Path::new(name)).is_some_and(is_same) {
            bail!("{}: is also an input; choose another name for the output", output.display());
        }
    }
    Ok(())
}
