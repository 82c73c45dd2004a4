//! Makes the recordings of `advise`: while a command runs, or for a given time.

use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use pageset_measure::visit_cost;
use pageset_record::{Ending, Going, Options, RecordError, Recording, Session, check, count};
use pageset_report::command_line;
use tempfile::TempDir;

use super::args::AdviseArgs;
use super::counts_first::{Counted, Load};
use crate::output::say;
use crate::record::{Live, is_running};
use crate::signals::Signals;

/// If a command's second run is this many times faster than its first run, the second run probably had
/// nothing left to do.
const DONE_FACTOR: u32 = 5;
/// If a command's first run is shorter than this time, `DONE_FACTOR` does not apply to the command.
const DONE_MIN: Duration = Duration::from_secs(1);
/// After Ctrl-C, pageset waits this long for the recorded command to end. The terminal sends Ctrl-C's signal
/// to pageset and to this command.
const FAREWELL: Duration = Duration::from_millis(100);

/// Records the same load once or several times.
pub(super) struct Recorder<'a> {
    /// The directory of the recordings, which is removed at the end.
    directory: TempDir,
    duration: Duration,
    command: &'a [OsString],
    prepare: Option<&'a OsString>,
    /// Number of recordings. Before each recording the load runs once, to bring page sets into the load's
    /// steady state. `None` stands for one recording without a run before it.
    settled: Option<u32>,
    /// Catches signals, which must not end the process at once, because a setting may have to be put back.
    signals: &'a Signals,
}

/// The recordings of the load that were made so far.
#[derive(Debug, Default)]
pub(super) struct Runs {
    pub(super) traces: Vec<PathBuf>,
    /// How long the command took in each recording, if there is a command.
    pub(super) seconds: Vec<f64>,
    /// Warnings about the recordings, such as a command that failed.
    pub(super) warnings: Vec<String>,
    /// Whether the command probably had nothing left to do in the first recording.
    pub(super) had_nothing_left: bool,
}

impl<'a> Recorder<'a> {
    pub(super) fn new(args: &'a AdviseArgs, signals: &'a Signals) -> Result<Self> {
        Ok(Self {
            directory: tempfile::tempdir()?,
            duration: args.duration,
            command: &args.command,
            prepare: args.prepare.as_ref(),
            settled: (args.apply.is_some() || args.times > 1).then_some(args.times),
            signals,
        })
    }

    /// Checks that recording is possible, before anything runs.
    pub(super) fn check(&self) -> Result<()> {
        match check(self.options()).refused {
            Some(refused) => Err(refused.into()),
            None => Ok(()),
        }
    }

    /// The recorded command, as a user types it in a shell.
    pub(super) fn command(&self) -> String {
        let words = self.command.iter().map(|word| word.to_string_lossy());
        command_line(&words.collect::<Vec<_>>())
    }

    /// Records the load several times. Before each recording the load runs once, so that page sets are in the
    /// load's steady state. If the load has just run, `settled` is how long that run took.
    pub(super) fn record_settled(
        &self,
        name: &str,
        times: u32,
        mut settled: Option<Duration>,
    ) -> Result<Runs> {
        let mut runs = Runs::default();
        for time in 1..=times {
            let before = settled.take().map_or_else(|| self.settle(), Ok)?;
            self.record_again(&format!("{name}-{time}"), before, &mut runs)?;
        }
        runs.warnings.dedup();
        Ok(runs)
    }

    /// Records the load. `before` is how long the load's last run took.
    fn record_again(&self, name: &str, before: Duration, runs: &mut Runs) -> Result<()> {
        let recorded = self.record_into(name, runs)?;
        if before >= DONE_MIN && recorded * DONE_FACTOR < before && self.prepare.is_none() {
            runs.had_nothing_left |= runs.traces.len() == 1;
            runs.warnings.push(format!(
                "`{}` took {:.1} s unrecorded, and {:.1} s when it ran again to be recorded. This command may have had nothing \
                 left to do: --prepare CMD, as in --prepare 'make clean', runs before each run.",
                self.command(),
                before.as_secs_f64(),
                recorded.as_secs_f64()
            ));
        }
        Ok(())
    }

    fn record_into(&self, name: &str, runs: &mut Runs) -> Result<Duration> {
        self.prepare()?;
        let path = self.directory.path().join(name).with_extension("pgtrace");
        let session = Session::prepare(self.options())?;
        let mut live = Live::new(self.command.is_empty(), "gives up without a verdict");
        let file = File::create(&path).with_context(|| path.display().to_string())?;
        let recording = session.run(file, &mut |status| {
            live.show(status);
            if self.signals.has_come() { Going::End } else { Going::On }
        })?;
        drop(live);
        self.note(path, &recording, runs)?;
        Ok(recording.duration)
    }

    /// Adds the recording to `runs`. Returns an error if a signal ended the recording.
    fn note(&self, path: PathBuf, recording: &Recording, runs: &mut Runs) -> Result<()> {
        if self.signals.has_come()
            && let Some(pid) = recording.still_running
        {
            say_running(&self.command(), pid);
        }
        self.signals.check()?;
        runs.traces.push(path);
        if let Ending::Command(status) = recording.ending {
            runs.seconds.push(recording.duration.as_secs_f64());
            self.note_failure(status, runs);
        }
        Ok(())
    }

    fn options(&self) -> Options {
        Options {
            duration: self.command.is_empty().then_some(self.duration),
            command: self.command.to_vec(),
            // Record call chains, because they show which locks are zone locks.
            with_call_chains: true,
            visit_cost: visit_cost::kept(),
            ..Options::default()
        }
    }

    fn note_failure(&self, status: ExitStatus, runs: &mut Runs) {
        let warning =
            format!("`{}` failed ({status}), so it may have done less work than usual.", self.command());
        if !status.success() && !runs.warnings.contains(&warning) {
            runs.warnings.push(warning);
        }
    }

    /// Runs the load without recording it, and returns how long the load took.
    fn settle(&self) -> Result<Duration> {
        let [program, arguments @ ..] = self.command else {
            self.signals.sleep(self.duration);
            self.signals.check()?;
            return Ok(self.duration);
        };
        self.prepare()?;
        let mut command = Command::new(program);
        command.args(arguments).stdout(Stdio::null());
        Ok(self.run(command, &self.command())?.1)
    }

    /// Runs the command of `--prepare`. The command of `--prepare` undoes the work of the recorded command,
    /// so that the recorded command has work to do again.
    fn prepare(&self) -> Result<()> {
        let Some(prepare) = self.prepare else { return Ok(()) };
        let mut command = Command::new("sh");
        command.arg("-c").arg(prepare).stdout(Stdio::null());
        let (status, _) = self.run(command, &prepare.to_string_lossy())?;
        if !status.success() {
            bail!("--prepare failed ({status}): `{}`", prepare.display());
        }
        Ok(())
    }

    /// Runs a command until it ends or a signal comes.
    fn run(&self, mut command: Command, name: &str) -> Result<(ExitStatus, Duration)> {
        let began = Instant::now();
        let mut child = command.spawn().with_context(|| format!("cannot run `{name}`"))?;
        let pid = child.id();
        let ended = self.signals.during(move || child.wait().map(|status| (status, began.elapsed())));
        if ended.is_err() {
            say_running(name, pid);
        }
        Ok(ended??)
    }
}

impl Load for Recorder<'_> {
    fn count(&self) -> Result<Counted> {
        self.prepare()?;
        let path = self.directory.path().join("counts.pgtrace");
        let file = File::create(&path).with_context(|| path.display().to_string())?;
        let mut live = Live::counting(self.command.is_empty(), "gives up without a verdict");
        let counted = count(&self.options(), file, &mut |status| {
            live.show(status);
            if self.signals.has_come() { Going::End } else { Going::On }
        });
        drop(live);
        let recording = match counted {
            Ok(recording) => recording,
            // The kernel refused to count, and the command has not been started.
            Err(RecordError::Refused { problem, .. }) => return Ok(Counted::Refused(problem)),
            Err(error) => return Err(error.into()),
        };
        let mut runs = Runs::default();
        self.note(path, &recording, &mut runs)?;
        Ok(Counted::Counts(runs, recording.duration))
    }

    fn record(&self, before: Option<Duration>) -> Result<Runs> {
        if let Some(times) = self.settled {
            return self.record_settled("before", times, before);
        }
        let mut runs = Runs::default();
        match before {
            Some(before) => self.record_again("now", before, &mut runs)?,
            None => drop(self.record_into("now", &mut runs)?),
        }
        Ok(runs)
    }
}

/// If the command is still running when pageset ends, tells the user.
fn say_running(name: &str, pid: u32) {
    thread::sleep(FAREWELL);
    if is_running(pid) {
        say(&format!("`{name}` still runs as process {pid}."));
    }
}
