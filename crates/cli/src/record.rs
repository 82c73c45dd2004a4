//! `pageset record`: what this machine's kernel allocates and frees, as a trace.

mod args;
mod ending;
mod live;

pub(crate) use ending::print_not_recorded;

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, anyhow, bail};
use pageset_record::{Check, Going, RecordError, Session, Status, check, measure};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

pub(crate) use args::{RecordArgs, time};

use crate::output::{self, Existing};
pub(crate) use live::Live;

/// The file of a recording that nobody has named.
const FILE: &str = "recording.pgtrace";
/// What a shell says of a program that an interrupt ended.
const STATUS_INTERRUPTED: i32 = 130;

pub(crate) fn run(args: &RecordArgs) -> Result<()> {
    if args.check {
        return print_check(check(args.options()));
    }
    let path = args.output.as_deref().unwrap_or(Path::new(FILE));
    let existing = if args.force { Existing::Replace } else { Existing::Refuse };
    output::check_file(path, existing)?;
    let is_interrupted = interrupts()?;
    let mut options = args.options();
    if let Some(rounds) = args.calibrate_cost {
        let mut tell = |_: &Status| {
            if is_interrupted.load(Ordering::Relaxed) { Going::End } else { Going::On }
        };
        let cost = measure(&options, rounds, tempfile::tempfile, &mut tell).map_err(told)?;
        if is_interrupted.load(Ordering::Relaxed) {
            bail!("interrupted while the cost of recording was measured; nothing was recorded");
        }
        ending::print_cost(&mut io::stdout().lock(), &cost)?;
        options.cost = Some(cost);
    }
    let session = Session::prepare(options).map_err(told)?;
    for name in &session.removed {
        writeln!(
            io::stderr(),
            "Removed the tracing instance {name}, which a recorder that was killed had left."
        )?;
    }
    let file = output::begin_file(path, existing)?;
    let mut live = Live::new(args.command.is_empty());
    let recording = session.run(file, &mut |status| {
        live.show(status);
        if is_interrupted.load(Ordering::Relaxed) { Going::End } else { Going::On }
    });
    drop(live);
    if matches!(recording, Err(RecordError::Command { .. })) {
        // It has no event that anybody asked for.
        output::remove_begun(path);
    }
    let recording = recording.map_err(|error| match error {
        RecordError::Output(_) => anyhow!("{}: {error}", path.display()),
        error => told(error),
    })?;
    ending::print(&mut io::stdout().lock(), path, &recording)
}

/// Set by the first interrupt. The second one ends the program at once.
fn interrupts() -> Result<Arc<AtomicBool>> {
    let is_interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| !is_ignored(*signal)) {
        flag::register_conditional_shutdown(signal, STATUS_INTERRUPTED, Arc::clone(&is_interrupted))?;
        flag::register(signal, Arc::clone(&is_interrupted))?;
    }
    Ok(is_interrupted)
}

/// Whether this program was started so that a signal does nothing, as by `nohup`.
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// An error that says its cause itself.
fn told(error: RecordError) -> anyhow::Error {
    anyhow!("{error}")
}

fn print_check(check: Check) -> Result<()> {
    let mut out = io::stdout().lock();
    if let Some(refused) = check.refused {
        return Err(told(refused));
    }
    writeln!(
        out,
        "A recording can begin: a tracing instance could be made, with {} MiB of buffer for each CPU.",
        check.buffer_bytes >> 20
    )?;
    print_not_recorded(&mut out, &check.not_recorded)
}
