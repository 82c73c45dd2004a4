//! Prints the messages at the end of a recording.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Result;
use pageset_record::{Condition, Ending, Met, Recording};
use pageset_report::{command_line, shell_word};
use pageset_trace::{CostRange, RecordingCost, SettingChange};

use crate::origin;
use crate::units::size;

/// Prints the summary of a recording. `until` is the condition of `--when`.
pub(crate) fn print(
    out: &mut dyn Write,
    path: &Path,
    recording: &Recording,
    until: Option<Condition>,
) -> Result<()> {
    let Recording { info, events, bytes, lost, duration, .. } = recording;
    let seconds = duration.as_secs_f64();
    if info.counts.is_some() {
        writeln!(out, "{}: counts of {seconds:.1} s, without events, {}", path.display(), size(*bytes))?;
    } else {
        let each = *bytes as f64 / (*events).max(1) as f64;
        writeln!(
            out,
            "{}: {events} events in {seconds:.1} s, {} ({each:.1} bytes an event)",
            path.display(),
            size(*bytes)
        )?;
    }
    let command = command_line(&info.command);
    if let Ending::Met(Met { condition, took_us, caller, cpu, pid, .. }) = recording.ending {
        let by = caller.map_or_else(String::new, |caller| format!(" ({})", caller.name()));
        writeln!(out, "Ended by {condition}: {took_us} us{by} of task {pid} on CPU {cpu}.")?;
    } else if let Some(condition) = until {
        writeln!(
            out,
            "`{condition}` did not happen; recording ended after {seconds:.1} s. The file has the latest events."
        )?;
    }
    match (recording.ending, recording.still_running) {
        (Ending::Command(status), _) => writeln!(out, "`{command}` ended: {status}.")?,
        (_, Some(pid)) if is_running(pid) => writeln!(out, "`{command}` still runs as process {pid}.")?,
        _ => {}
    }
    for note in origin::lost_notes(lost) {
        writeln!(out, "{note}")?;
    }
    if !info.gaps.is_empty() {
        writeln!(
            out,
            "The file names the places where events are missing: {} gaps. A larger --buffer may help.",
            info.gaps.len()
        )?;
    }
    if let Some(tasks) = &info.tasks {
        let count = tasks.all().len();
        writeln!(
            out,
            "The file has names of {count} tasks (--names): look at them before you send it to others."
        )?;
    }
    origin::print_not_recorded(out, &info.not_recorded)?;
    for change in &info.setting_changes {
        let SettingChange { name, from, to, .. } = change;
        writeln!(
            out,
            "vm.{name} changed from {from} to {to} meanwhile: forecasts use only the longest part \
                       without a change."
        )?;
    }
    let name = shell_word(&path.display().to_string());
    if info.counts.is_some() {
        writeln!(
            out,
            "`pageset stat {name}` shows the counts. A replay needs events: record without --counts."
        )?;
    } else {
        writeln!(out, "`pageset replay {name}` shows what other kernels would have done under this load.")?;
    }
    Ok(())
}

/// Describes a recording whose file could not be written: the error, how much was written before, and whether
/// the command still runs. `running` is the command's process.
pub(super) fn unwritten(path: &Path, error: &io::Error, bytes: u64, running: Option<u32>) -> String {
    let name = shell_word(&path.display().to_string());
    let written = match bytes {
        0 => "nothing was written before".to_owned(),
        _ => format!(
            "{} were written before, and `pageset stat --recover {name}` reads their complete blocks",
            size(bytes)
        ),
    };
    let running = match running {
        Some(pid) => format!("recording has ended, but the command still runs as process {pid}"),
        None => "recording has ended".to_owned(),
    };
    let remedy = match error.kind() {
        io::ErrorKind::FileTooLarge => "Raise the limit on file sizes (`ulimit -f`)",
        _ => "Make room, or name a file on another disk (`-o`)",
    };
    format!("cannot write the trace: {error}; {written}; {running}. {remedy}, and record again.")
}

/// Prints the cost of recording, as measured by pairs of runs without and with a recorder.
pub(super) fn print_cost(out: &mut dyn Write, cost: &RecordingCost) -> Result<()> {
    for (what, range) in
        [("the command's time", cost.wall_percent), ("the machine's CPU time", cost.cpu_percent)]
    {
        if let Some(CostRange { min, median, max }) = range {
            let sure = match cost.rounds {
                1 => "one pair of runs; --calibrate-cost=5 also says how much pairs differ".to_owned(),
                rounds => format!("{min:+.0} to {max:+.0}, {rounds} pairs"),
            };
            writeln!(out, "Recording the command changes {what} by {median:+.0} % ({sure}).")?;
        }
    }
    Ok(())
}

/// Whether a process is running. An ended process keeps its number until its parent waits for the process,
/// but counts as not running. Source: proc_pid_stat(5).
pub(crate) fn is_running(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().next());
    state.is_some_and(|state| !["Z", "X"].contains(&state))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pageset_trace::{LostEvents, TraceInfo};

    use super::*;

    fn printed(rounds: u32, percent: &mut [f64]) -> String {
        let cost = RecordingCost { rounds, wall_percent: CostRange::of(percent), cpu_percent: None };
        let mut out = Vec::new();
        print_cost(&mut out, &cost).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_has_ended_and_was_not_asked_how_does_not_run() {
        let mut child =
            std::process::Command::new("true").stdin(std::process::Stdio::null()).spawn().unwrap();
        assert!(is_running(std::process::id()));
        while is_running(child.id()) {
            std::thread::yield_now();
        }
        assert!(
            std::path::Path::new(&format!("/proc/{}", child.id())).exists(),
            "the parent has not waited for the ended process, so the process still has its number"
        );
        child.wait().unwrap();
    }

    #[test]
    fn a_file_that_cannot_be_written_says_what_goes_on() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let said = unwritten(Path::new("my file"), &full(), 30_000_000, Some(77));
        for part in ["30.0 MB were written", "`pageset stat --recover 'my file'`", "as process 77", "`-o`"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let said = unwritten(Path::new("f"), &full(), 0, None);
        assert!(said.contains("nothing was written") && !said.contains("--recover"), "{said}");
        let said = unwritten(Path::new("f"), &io::Error::from(io::ErrorKind::FileTooLarge), 0, None);
        assert!(said.contains("`ulimit -f`") && !said.contains("disk"), "{said}");
    }

    #[test]
    fn a_condition_that_was_not_met_is_said() {
        let recording = Recording {
            info: TraceInfo::default(),
            events: 9,
            bytes: 90,
            lost: LostEvents::default(),
            duration: Duration::from_secs(4),
            ending: Ending::Time,
            still_running: None,
        };
        let said = |until: Option<&str>| {
            let mut out = Vec::new();
            let until = until.map(|text| text.parse().unwrap());
            print(&mut out, Path::new("f"), &recording, until).unwrap();
            String::from_utf8(out).unwrap()
        };
        let when = said(Some("zone_wait_us > 500"));
        assert!(when.contains("`zone_wait_us > 500` did not happen; recording ended after 4.0 s."), "{when}");
        assert!(!said(None).contains("did not happen"));
    }

    #[test]
    fn one_pair_of_runs_has_no_range() {
        assert_eq!(
            printed(1, &mut [-33.0]),
            "Recording the command changes the command's time by -33 % (one pair of runs; --calibrate-cost=5 also says how much pairs differ).\n"
        );
        assert_eq!(
            printed(3, &mut [5.0, 9.0, 2.0]),
            "Recording the command changes the command's time by +5 % (+2 to +9, 3 pairs).\n"
        );
    }
}
