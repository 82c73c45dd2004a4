//! `pageset record` records this machine's page events, or counts them.

pub(crate) mod args;
mod ending;
mod live;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, anyhow, bail};
use pageset_measure::host::Settings;
use pageset_record::{
    Check, Condition, Going, Options, RecordError, Recording, Session, Status, check, count, measure,
};
use signal_hook::flag;

use crate::left;
use crate::origin;
use crate::output::{self, Existing};
use crate::signals;
use args::RecordArgs;
pub(crate) use ending::is_running;
pub(crate) use live::Live;

/// The file that `record` writes if the user gives no `-o`.
const FILE: &str = "recording.pgtrace";
/// Exit status that a shell reports for a program ended by an interrupt.
const STATUS_INTERRUPTED: i32 = 130;

pub(crate) fn run(args: &RecordArgs) -> Result<()> {
    if args.check {
        return print_check(check(args.options()));
    }
    let path = args.output.as_deref().unwrap_or(Path::new(FILE));
    let existing = if args.force { Existing::Replace } else { Existing::Refuse };
    output::check_file(path, existing)?;
    left::offer(&Settings::of_this_machine())?;
    let is_interrupted = interrupts()?;
    let mut options = args.options();
    if let Some(rounds) = args.calibrate_cost {
        let mut tell = |_: &Status| {
            if is_interrupted.load(Ordering::Relaxed) { Going::End } else { Going::On }
        };
        let cost = measure(&options, rounds, tempfile::tempfile, &mut tell)?;
        if is_interrupted.load(Ordering::Relaxed) {
            bail!("interrupted while the cost of recording was measured; nothing was recorded");
        }
        output::print(|out| ending::print_cost(out, &cost))?;
        options.cost = Some(cost);
    }
    if args.counts {
        return run_counts(&options, path, existing, &is_interrupted);
    }
    let until = options.until;
    let session = Session::prepare(options)?;
    for name in &session.removed {
        output::say(&format!(
            "Removed the tracing instance {name}, which was left by a recorder that was killed."
        ));
    }
    let file = output::begin_file(path, existing)?;
    let mut live = Live::new(args.command.is_empty(), "ends it");
    let recording = session.run(file, &mut |status| {
        live.show(status);
        if is_interrupted.load(Ordering::Relaxed) { Going::End } else { Going::On }
    });
    drop(live);
    end(path, recording, until)
}

/// Counts events in the kernel instead of recording them.
fn run_counts(options: &Options, path: &Path, existing: Existing, is_interrupted: &AtomicBool) -> Result<()> {
    let file = output::begin_file(path, existing)?;
    let recording = count(options, file, &mut |_| {
        if is_interrupted.load(Ordering::Relaxed) { Going::End } else { Going::On }
    });
    end(path, recording, None)
}

/// Prints a summary of the recording. If recording failed, returns the error. `until` is the condition of
/// `--when`.
fn end(path: &Path, recording: Result<Recording, RecordError>, until: Option<Condition>) -> Result<()> {
    if matches!(recording, Err(RecordError::Command { .. } | RecordError::Refused { .. })) {
        // Nothing was recorded, so remove the empty file.
        output::remove_begun(path);
    }
    let recording = recording.map_err(|error| match error {
        RecordError::Output { source, bytes, still_running } => {
            let running = still_running.filter(|pid| is_running(*pid));
            anyhow!("{}: {}", path.display(), ending::unwritten(path, &source, bytes, running))
        }
        error => error.into(),
    })?;
    output::print(|out| ending::print(out, path, &recording, until))
}

/// Returns a flag that the first interrupt sets. The second interrupt ends the program at once.
fn interrupts() -> Result<Arc<AtomicBool>> {
    signals::handled_by_command();
    let is_interrupted = Arc::new(AtomicBool::new(false));
    for signal in signals::ending() {
        flag::register_conditional_shutdown(signal, STATUS_INTERRUPTED, Arc::clone(&is_interrupted))?;
        flag::register(signal, Arc::clone(&is_interrupted))?;
    }
    Ok(is_interrupted)
}

fn print_check(check: Check) -> Result<()> {
    if let Some(refused) = check.refused {
        return Err(refused.into());
    }
    output::print(|out| {
        writeln!(
            out,
            "A recording can begin: a tracing instance could be made, with {} MiB of buffer for each CPU.",
            check.buffer_bytes >> 20
        )?;
        Ok(origin::print_not_recorded(out, &check.not_recorded)?)
    })
}
