//! Options and arguments of `pageset advise`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueHint;
use pageset_report::Format;

use crate::options::{OpeningArgs, OutputArgs};
use crate::units::time;

const READING_ADVISE: &str = "\
Without a RECORDING:
  It counts first, which costs the load little. If counts are enough for a No,
  that is the answer. Otherwise it records all events, as a forecast needs them:
  --for lasts twice then, and COMMAND runs twice (--prepare runs before each
  run). It records events at once for --evidence, for --format csv, and for a
  setting that you name with --apply, since these show forecasts.

How it decides:
  The answer is yes if a setting certainly saves 1 % of the CPU time, or halves
  the pages in page sets where memory is short and these pages are 1 % of it.
  Otherwise it is no. A setting saves visits to the zones, and waits for zone
  locks. The cost of a visit stands in the recording, if `pageset bench machine`
  had measured it there; the machine that reads the recording does not count.
  Without a cost, there is no yes.
  The lower end of the saving is the least cost, times the fewest visits that
  the forecast saves. If several settings save enough, pageset advises the one
  whose page sets hold the fewest pages. It tries what sysctl can change:
  vm.percpu_pagelist_high_fraction, vm.min_free_kbytes and
  vm.watermark_scale_factor. It tries other kernels last.

  CPU time is the busy time of all CPUs. If the recording does not have it, it
  is all their time. Waits are measured if the recording has
  lock:contention_begin and contention_end. If not, the time that locks were
  held is an upper bound.

Try it:
  --apply changes the advised setting, or the one you name. It records again,
  and prints the forecast beside the measurement, and the time of COMMAND before
  and with the setting. First of all it checks that it may do all of that.
  At the end it restores the old value, also after Ctrl-C; --keep keeps the new
  one. A COMMAND runs once unrecorded before each recording, to bring page sets
  into its steady state; --prepare runs before each of these runs. Without a
  COMMAND, pageset waits as long as one recording lasts instead.

  A setting is written down in /run/pageset/settings before it is changed. If
  pageset is killed, the next advise, record or top says so and offers to put
  the setting back; `pageset advise --put-back` does that without asking. If
  another process has changed it meanwhile, pageset says so and leaves it alone.

Examples:
  pageset advise my.pgtrace
  pageset advise data/pairs              all .pgtrace files of a folder
  sudo pageset advise                    count for 30 seconds, then judge
  sudo pageset advise --for 5m -o advice.md --format markdown
  sudo pageset advise --apply vm.percpu_pagelist_high_fraction=8 --times 4
  sudo pageset advise --apply --prepare 'make clean' -- make -j4";

/// Say whether page sets are this machine's problem, and which setting helps
///
/// Answers in a few sentences: is it the page sets, what would help, what does it cost? Each sentence names
/// the figures it rests on. Below them stands the evidence: forecasts for the load under other settings and
/// kernels.
#[derive(Debug, clap::Args)]
#[command(after_long_help = READING_ADVISE)]
pub(crate) struct AdviseArgs {
    /// Recording to judge. Several, or a folder with .pgtrace files, are a fleet: one line each, and a
    /// summary [default: record this machine now]
    #[arg(value_name = "RECORDING", value_hint = ValueHint::AnyPath)]
    pub(super) recordings: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) opening: OpeningArgs,
    /// How long to count, and to record if counts are not enough, such as 30s or 5m
    #[arg(long = "for", value_name = "TIME", value_parser = time, default_value = "30s", help_heading = "Recording")]
    pub(super) duration: Duration,
    /// Write the counts or events behind the answer to FILE
    #[arg(long, value_name = "FILE", help_heading = "Recording", value_hint = ValueHint::FilePath,
        conflicts_with = "recordings")]
    pub(super) keep_recording: Option<PathBuf>,
    /// Count and record while this command runs, instead of for a time
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub(super) command: Vec<OsString>,
    /// Run CMD by `sh` before each run of COMMAND, which could otherwise have nothing left to do
    #[arg(long, value_name = "CMD", requires = "command", help_heading = "Recording",
        value_hint = ValueHint::CommandString)]
    pub(super) prepare: Option<OsString>,
    /// Make the setting, record again, and compare with the forecast [default: the setting that is advised]
    #[arg(long, value_name = "SETTING", num_args = 0..=1, help_heading = "Trying it")]
    pub(super) apply: Option<Option<String>>,
    /// How many recordings to make before and after; several show the load's own noise
    #[arg(long, value_name = "N", requires = "apply", default_value_t = 1, help_heading = "Trying it",
        value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(super) times: u32,
    /// Keep the new setting at the end
    #[arg(long, requires = "apply", help_heading = "Trying it")]
    pub(super) keep: bool,
    /// Do not ask before the setting is made
    #[arg(short, long, requires = "apply", help_heading = "Trying it")]
    pub(super) yes: bool,
    /// Show the evidence behind an answer other than Yes, too: forecasts for other settings and kernels
    #[arg(long, help_heading = "Output")]
    pub(super) evidence: bool,
    /// Only put back the settings of a command that was killed
    #[arg(long, help_heading = "Trying it", conflicts_with_all = ["recordings", "apply", "command", "prepare", "output"])]
    pub(super) put_back: bool,
    /// End with status 3 if the answer is yes, and 4 if the recording does not say
    #[arg(long, help_heading = "Output")]
    pub(super) exit_code: bool,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

impl AdviseArgs {
    /// Whether forecasts are asked for, even with a No: counts have none.
    pub(super) fn needs_events(&self) -> bool {
        let names_setting = self.apply.as_ref().is_some_and(Option::is_some);
        self.evidence || names_setting || self.output.format() == Format::Csv
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Typed {
        #[command(flatten)]
        args: AdviseArgs,
    }

    #[test]
    fn what_shows_forecasts_needs_events() {
        let needs = |words: &[&str]| {
            let typed = Typed::try_parse_from([&["advise"], words].concat()).expect("it can be typed");
            typed.args.needs_events()
        };
        for words in [&["--evidence"][..], &["--apply", "vm.min_free_kbytes=1"], &["--format", "csv"]] {
            assert!(needs(words), "{words:?}");
        }
        for words in
            [&[][..], &["--apply"], &["--apply", "--times", "4", "--", "true"], &["--format", "json"]]
        {
            assert!(!needs(words), "{words:?}");
        }
    }
}
