//! Measures the cost of recording for a command, by running the command alternately with and without a
//! recorder.

use std::{
    fs,
    io::{self, Write},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use pageset_trace::{CostRange, RecordingCost};

use crate::counting::count;
use crate::error::RecordError;
use crate::options::{Options, Timing};
use crate::session::{Going, Session, Status};

/// The durations of a run.
#[derive(Clone, Copy, Debug)]
struct Run {
    wall: Duration,
    /// CPU time of the whole machine, including the recorder's CPU time.
    cpu: Duration,
}

/// Measures how much recording slows `options.command` down. Runs the command in `rounds` pairs, with and
/// without a recorder, in alternating order. `scratch` makes the destination of each recording. `watch`
/// receives the progress of each recording.
///
/// # Errors
/// An error if there is no command, if the command cannot be started, or if [`Session`] fails.
pub fn measure<W: Write + Send>(
    options: &Options,
    rounds: u32,
    mut scratch: impl FnMut() -> io::Result<W>,
    watch: &mut dyn FnMut(&Status) -> Going,
) -> Result<RecordingCost, RecordError> {
    let Some((program, arguments)) = options.command.split_first() else {
        return Err(RecordError::Refused {
            problem: "the cost of recording is that of recording a command".to_owned(),
            remedy: "add the command, as in `-- make -j4`".to_owned(),
        });
    };
    let options = Options { duration: None, until: None, reading: Timing::AllTheTime, ..options.clone() };
    let without = || {
        timed(|| {
            let mut command = Command::new(program);
            let status = command.args(arguments).stdout(Stdio::null()).status();
            let program = || program.to_string_lossy().into_owned();
            status.map(drop).map_err(|source| RecordError::Command { program: program(), source })
        })
    };
    let mut with = || {
        let out = scratch().map_err(RecordError::unwritten)?;
        if options.only_counts {
            return timed(|| count(&options, out, watch).map(drop));
        }
        let session = Session::prepare(options.clone())?;
        timed(|| session.run(out, watch).map(drop))
    };
    let (mut wall, mut cpu) = (Vec::new(), Vec::new());
    for round in 0..rounds.max(1) {
        let (plain, recorded) = if round % 2 == 0 {
            let plain = without()?;
            (plain, with()?)
        } else {
            let recorded = with()?;
            (without()?, recorded)
        };
        wall.extend(percent(plain.wall, recorded.wall));
        cpu.extend(percent(plain.cpu, recorded.cpu));
    }
    Ok(RecordingCost {
        rounds: rounds.max(1),
        wall_percent: CostRange::of(&mut wall),
        cpu_percent: CostRange::of(&mut cpu),
    })
}

fn timed(run: impl FnOnce() -> Result<(), RecordError>) -> Result<Run, RecordError> {
    let (began, before) = (Instant::now(), busy());
    run()?;
    Ok(Run { wall: began.elapsed(), cpu: busy().saturating_sub(before) })
}

/// The additional time of a run with a recorder, in percent of the run without a recorder. `None` if the run
/// without a recorder was too short to measure.
fn percent(plain: Duration, recorded: Duration) -> Option<f64> {
    let ratio = recorded.as_secs_f64() / plain.as_secs_f64();
    ratio.is_finite().then_some(100.0 * (ratio - 1.0))
}

/// Total busy time of the machine's CPUs since boot. Source: proc_stat(5).
#[must_use]
pub fn busy() -> Duration {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    Duration::from_secs_f64(busy_ticks(&text) as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// Reads nanoseconds of busy time since `before`. `None` if the kernel's counter did not advance.
pub(crate) fn busy_ns_since(before: Duration) -> Option<u64> {
    u64::try_from(busy().saturating_sub(before).as_nanos()).ok().filter(|ns| *ns > 0)
}

/// Parses `cpu  user nice system idle iowait irq softirq steal guest guest_nice`. `user` and `nice` already
/// include the time of guests.
fn busy_ticks(stat: &str) -> u64 {
    let words = stat.lines().find_map(|line| line.strip_prefix("cpu "));
    let words = words.unwrap_or_default().split_ascii_whitespace().map(|word| word.parse().unwrap_or(0));
    words.enumerate().take(7).filter(|(at, _)| *at != 3 && *at != 4).map(|(_, ticks): (_, u64)| ticks).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_and_stolen_time_is_not_busy() {
        let stat = "cpu  1 2 4 1000 2000 8 16 32 64 128\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
        assert_eq!(busy_ticks(stat), 1 + 2 + 4 + 8 + 16);
        assert_eq!((busy_ticks(""), busy_ticks("cpu  x y")), (0, 0));
    }

    #[test]
    fn costs_are_parts_of_what_it_took_without() {
        let seconds = Duration::from_secs;
        assert_eq!(percent(seconds(2), seconds(3)), Some(50.0));
        assert_eq!(percent(seconds(2), seconds(1)), Some(-50.0));
        assert_eq!(percent(Duration::ZERO, seconds(1)), None);
    }

    #[test]
    fn without_a_command_there_is_no_cost() {
        let error = measure(&Options::default(), 1, || Ok(io::sink()), &mut |_| Going::On).unwrap_err();
        assert!(error.to_string().contains("add the command"), "{error}");
    }
}
