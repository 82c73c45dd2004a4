//! Options and arguments of `pageset advise`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueHint;
use pageset_report::Format;

use crate::options::{OpeningArgs, RowsFormat, RowsOutputArgs};
use crate::units::time;

const READING_ADVISE: &str = "\
Without a RECORDING:
  pageset first counts events, which slows the load little. If counts are enough
  for a No, that is the answer. If not, pageset records all events, which a
  forecast needs. In that case the time of --for passes twice, and COMMAND runs
  twice (--prepare runs before each run). With --evidence, --format csv, or a
  setting that you name with --apply, pageset records events at once, because
  it then shows forecasts, which need events.

How it decides:
  The answer is yes if a setting or another kernel certainly saves at least 1 %
  of the CPU time. It is also yes if memory is short, page sets hold at least
  1 % of it, and a setting or another kernel halves these pages. If the
  recording lacks data that the decision needs, there is no answer, and pageset
  says why. Otherwise the answer is no. A setting saves visits to the zones, and
  waits for zone locks. To know the cost of a visit, run `pageset bench machine`
  on the recorded machine before you record; recordings then include the cost.
  Without the cost, no saving of CPU time is certain.
  The smallest possible saving is the lowest cost of a visit, times the fewest
  visits that the forecast saves. If several settings save enough, pageset
  advises the one whose page sets hold the fewest pages. pageset tries settings
  that sysctl can change: vm.percpu_pagelist_high_fraction, vm.min_free_kbytes
  and vm.watermark_scale_factor. pageset tries other kernels last.

  CPU time is the busy time of all CPUs or, if the recording does not have it,
  their whole time. Waits are measured if the recording has
  lock:contention_begin and contention_end. If not, the time that locks were
  held is an upper bound.

Try it:
  With --apply, pageset changes the advised setting, or the one you name.
  pageset records again, and prints the forecast beside the measurement, and the
  time of COMMAND before and with the setting. Before pageset begins, it checks
  that it has the rights for all this. At the end it restores the old value,
  also after Ctrl-C; with --keep, the new value stays. Before each recording,
  COMMAND runs once without being recorded, to bring page sets into the
  command's steady state; --prepare runs before each run. Without a COMMAND,
  pageset waits for the length of one recording instead.

  Before pageset changes a setting, it notes the old value in
  /run/pageset/settings. If pageset is killed, the next advise, record or top
  tells you and offers to restore the setting; `pageset advise --put-back` does
  that without asking. If another process has changed the setting since, pageset
  tells you and does not change it.

Examples:
  pageset advise my.pgtrace
  pageset advise data/pairs              all .pgtrace files of a folder
  sudo pageset advise                    count for 30 seconds, then judge
  sudo pageset advise --for 5m -o advice.md --format markdown
  sudo pageset advise --apply vm.percpu_pagelist_high_fraction=8 --times 4
  sudo pageset advise --apply --prepare 'make clean' -- make -j4";

/// Say whether page sets are this machine's problem, and which setting helps
///
/// Answers in a few sentences: are page sets the problem, what would help, what does it cost? Each sentence
/// names the figures behind it. The evidence follows: forecasts for the load under other settings and
/// kernels.
#[derive(Debug, clap::Args)]
#[command(after_long_help = READING_ADVISE)]
pub(crate) struct AdviseArgs {
    /// Recording to judge. For several recordings, or a folder with .pgtrace files, prints a line for each
    /// and a summary [default: record this machine now]
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
    /// Count and record while this command runs, instead of for the time of --for
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub(super) command: Vec<OsString>,
    /// Run CMD by `sh` before each run of COMMAND, so that COMMAND has its work to do again
    #[arg(long, value_name = "CMD", requires = "command", help_heading = "Recording",
        value_hint = ValueHint::CommandString)]
    pub(super) prepare: Option<OsString>,
    /// Change this setting, record again, and compare with the forecast [default: the advised setting]
    #[arg(long, value_name = "SETTING", num_args = 0..=1, help_heading = "Trying it")]
    pub(super) apply: Option<Option<String>>,
    /// Number of recordings; with --apply, as many before the change as after it. Several recordings show how
    /// much runs differ
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Recording",
        value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(super) times: u32,
    /// Leave the new setting in force when the trial ends
    #[arg(long, requires = "apply", help_heading = "Trying it")]
    pub(super) keep: bool,
    /// Do not ask before the setting is changed
    #[arg(short, long, requires = "apply", help_heading = "Trying it")]
    pub(super) yes: bool,
    /// Show the evidence even if the answer is not Yes: forecasts for other settings and kernels
    #[arg(long, help_heading = "Output")]
    pub(super) evidence: bool,
    /// Only restore the settings that a killed command left changed
    #[arg(long, help_heading = "Trying it", conflicts_with_all = ["recordings", "apply", "command", "prepare", "output"])]
    pub(super) put_back: bool,
    /// End with status 3 if the advice begins with Yes, and 4 if the recording gives no answer
    #[arg(long, help_heading = "Output")]
    pub(super) exit_code: bool,
    #[command(flatten)]
    pub(super) output: RowsOutputArgs,
}

impl AdviseArgs {
    /// Whether the user wants forecasts even if the answer is No. Counts give no forecasts, so events are
    /// recorded at once.
    pub(super) fn needs_events(&self) -> bool {
        let names_setting = self.apply.as_ref().is_some_and(Option::is_some);
        self.evidence || names_setting || self.output.format == RowsFormat::Printed(Format::Csv)
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
            let typed =
                Typed::try_parse_from([&["advise"], words].concat()).expect("clap accepts this command line");
            typed.args.needs_events()
        };
        for words in [&["--evidence"][..], &["--apply", "vm.min_free_kbytes=1"], &["--format", "csv"]] {
            assert!(needs(words), "{words:?}");
        }
        for words in [
            &[][..],
            &["--apply"],
            &["--apply", "--times", "4", "--", "true"],
            &["--format", "json"],
            &["--times", "3"],
        ] {
            assert!(!needs(words), "{words:?}");
        }
    }
}
