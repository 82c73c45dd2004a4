//! `pageset advise --apply`: make the setting, record again, and put forecast and truth side by side.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, IsTerminal as _, Write};

use anyhow::{Context as _, Result, bail};
use pageset_lab::advise::{Advice, Verdict};
use pageset_lab::host::Setting;
use pageset_trace::TraceReader;
use pageset_workload::{Against, against};

use super::args::AdviseArgs;
use super::recorder::Recorder;

/// What came of a setting.
pub(super) struct Tried {
    pub(super) setting: String,
    pub(super) against: Against,
    /// What puts it back, if it was left.
    pub(super) way_back: Option<String>,
}

/// The setting to try; `None` if none is named and none is advised.
pub(super) fn setting(args: &AdviseArgs, advice: &Advice) -> Option<String> {
    match args.apply.as_ref()? {
        Some(named) => Some(named.clone()),
        None => match advice.verdict {
            Verdict::Set { forecast, .. } => Some(advice.forecasts[forecast].settings.clone()),
            _ => None,
        },
    }
}

/// Makes the setting, records again, and compares.
pub(super) fn run(
    args: &AdviseArgs,
    setting: String,
    recorder: &Recorder<'_>,
    before: &mut [Box<dyn TraceReader>],
) -> Result<Tried> {
    if !args.yes && !is_agreed(&format!("Set {setting} now, and record again?"))? {
        bail!("nothing was changed");
    }
    let changed = Setting::change(&setting)?;
    let way_back = changed.way_back();
    writeln!(io::stderr(), "Set {setting}. Should this be killed, `{way_back}` puts it back.")?;
    let after = recorder.record_settled("after", args.times)?;
    let mut after = after.iter().map(|path| pageset_trace::open(path)).collect::<Result<Vec<_>, _>>()?;
    let against = against(before, &mut after)?;
    let way_back = if args.keep {
        changed.keep();
        Some(way_back)
    } else {
        changed.put_back().with_context(|| format!("the setting was not put back; `{way_back}` does it"))?;
        None
    };
    Ok(Tried { setting, against, way_back })
}

/// Asks whoever sits at the terminal.
fn is_agreed(question: &str) -> Result<bool> {
    let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty").ok().filter(File::is_terminal);
    let Some(mut terminal) = terminal else {
        bail!("there is no terminal to ask before a setting is changed; --yes changes it without asking");
    };
    write!(terminal, "{question} [y/N] ")?;
    let mut answer = String::new();
    BufReader::new(terminal).read_line(&mut answer)?;
    Ok(["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str()))
}
