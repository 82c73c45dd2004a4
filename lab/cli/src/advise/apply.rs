//! `pageset advise --apply` changes a setting, records the load again, and prints the forecast beside the
//! measurement.

use std::path::PathBuf;

use anyhow::{Result, bail};
use pageset_measure::host::Settings;
use pageset_measure::host::settings::Changes;
use pageset_replay::advise::{Advice, RunTimes, Verdict};
use pageset_replay::{Against, against};
use pageset_report::wrap;
use pageset_trace::TraceReader;

use super::args::AdviseArgs;
use super::recorder::{Recorder, Runs};
use crate::output::say;
use crate::signals::Signals;
use crate::{rights, terminal};

/// A setting that every machine has. If `--apply` names no setting, pageset opens this setting's file to find
/// out whether it may change settings.
const ANY_SETTING: &str = "vm.min_free_kbytes=65536";

/// A trial of a setting. Before a trial, pageset checks that it may change settings, and that no other
/// pageset command changes settings. Without `--yes`, pageset also checks that there is a terminal for its
/// question.
pub(super) struct Trial<'a> {
    args: &'a AdviseArgs,
    changes: Changes,
}

/// The result of a trial.
pub(super) enum TrialResult {
    /// No setting was changed; the text is the reason.
    Not(String),
    /// The setting was tried, and the measured visits were compared with the forecast.
    Compared(Box<Compared>),
}

/// The comparison of a tried setting with its forecast.
pub(super) struct Compared {
    pub(super) setting: String,
    pub(super) against: Against,
    /// How long the command took, before the change and with the setting.
    pub(super) run_times: RunTimes,
    /// Sentences that describe the result.
    pub(super) sentences: Vec<String>,
    /// Whether nothing is left to do. With `--keep`, the setting keeps its new value. Otherwise the setting
    /// has its old value, or another process has written it.
    pub(super) is_settled: bool,
}

impl TrialResult {
    pub(super) fn compared(&self) -> Option<&Compared> {
        match self {
            Self::Not(_) => None,
            Self::Compared(compared) => Some(compared),
        }
    }

    /// The sentences that describe the result.
    pub(super) fn sentences(&self) -> impl Iterator<Item = &str> {
        let all = match self {
            Self::Not(why) => std::slice::from_ref(why),
            Self::Compared(compared) => compared.sentences.as_slice(),
        };
        all.iter().map(String::as_str)
    }
}

impl<'a> Trial<'a> {
    /// Checks before anything runs that pageset can change settings and ask the user. Returns `None` without
    /// `--apply`.
    pub(super) fn begin(args: &'a AdviseArgs, settings: &Settings, command: &str) -> Result<Option<Self>> {
        let Some(named) = &args.apply else { return Ok(None) };
        settings.check(named.as_deref().unwrap_or(ANY_SETTING))?;
        if !args.yes && terminal::open().is_none() {
            bail!("there is no terminal to ask before a setting is changed; --yes changes it without asking");
        }
        Ok(Some(Self { args, changes: settings.begin(command)? }))
    }

    /// The setting to try: the setting that the user named, or the advised setting. `None` if there is
    /// neither.
    fn setting(&self, advice: &Advice) -> Option<String> {
        match self.args.apply.as_ref()? {
            Some(named) => Some(named.clone()),
            None => match advice.verdict {
                Verdict::Set { forecast, .. } => Some(advice.forecasts[forecast].settings.clone()),
                _ => None,
            },
        }
    }

    /// Changes the setting, records the load again, and compares the measured visits with the forecast.
    /// `open` is called with the path of each recording from before the change and from after the change, and
    /// opens this recording.
    pub(super) fn run(
        mut self,
        advice: &Advice,
        recorder: &Recorder<'_>,
        before: &Runs,
        signals: &Signals,
        open: impl Fn(&PathBuf) -> Result<Box<dyn TraceReader>> + Send + 'static,
    ) -> Result<TrialResult> {
        let Some(setting) = self.setting(advice) else {
            return Ok(TrialResult::Not("Nothing was tried: no setting is advised.".to_owned()));
        };
        if !self.args.yes && !is_agreed(advice, &setting, signals)? {
            return Ok(TrialResult::Not(format!("{setting} was not tried: you did not agree.")));
        }
        self.changes.set(&setting)?;
        let way_back = rights::as_root(&["advise", "--put-back"]);
        say(&format!("Set {setting}. If this process is killed, run `{way_back}` to put the setting back."));
        let after = recorder.record_settled("after", self.args.times, None);
        // Without `--keep`, restore the old value now: the comparison takes time, and does not need the new
        // value.
        let (after, ended) = self.end(after, &setting)?;
        let traces = (before.traces.clone(), after.traces);
        let found = signals.during(move || {
            let opened = |traces: &[PathBuf]| traces.iter().map(&open).collect::<Result<Vec<_>>>();
            Ok::<_, anyhow::Error>(against(&mut opened(&traces.0)?, &mut opened(&traces.1)?)?)
        })??;
        let run_times = RunTimes { before_s: before.seconds.clone(), after_s: after.seconds };
        let mut sentences: Vec<String> =
            run_times.sentence(&recorder.command(), &setting).into_iter().collect();
        sentences.extend(visits(&found, &setting));
        sentences.extend(after.warnings.into_iter().filter(|warning| !before.warnings.contains(warning)));
        sentences.extend(ended.sentences);
        let is_settled = ended.is_settled;
        Ok(TrialResult::Compared(Box::new(Compared {
            setting,
            against: found,
            run_times,
            sentences,
            is_settled,
        })))
    }

    /// Keeps the setting's new value or restores the old value. If nothing could be recorded, restores the
    /// old value even with `--keep`.
    fn end(self, after: Result<Runs>, setting: &str) -> Result<(Runs, Ended)> {
        if self.args.keep
            && let Ok(after) = after
        {
            let ways_back = self.changes.ways_back().join("; ");
            self.changes.keep()?;
            let sentence = format!("{setting} keeps its new value. `{ways_back}` restores the old value.");
            return Ok((after, Ended { sentences: vec![sentence], is_settled: true }));
        }
        let all = self.changes.put_back();
        let is_settled = all.iter().all(|one| one.is_settled());
        let sentences: Vec<String> = all.iter().map(ToString::to_string).collect();
        if after.is_err() {
            sentences.iter().for_each(|sentence| say(sentence));
        }
        Ok((after?, Ended { sentences, is_settled }))
    }
}

/// After a trial: sentences that say whether the setting was kept or restored, and whether this succeeded.
struct Ended {
    sentences: Vec<String>,
    is_settled: bool,
}

/// A sentence with the visits before and after the change, and with the forecast. `None` if visits were not
/// compared.
fn visits(found: &Against, setting: &str) -> Option<String> {
    let visits = found.changes.iter().find(|change| change.quantity == "visits")?;
    let range = match (visits.interval, visits.upper_end()) {
        (Some((low, _)), Some(high)) => format!(" ({low:.0} to {high:.0})"),
        (Some((low, _)), None) => format!(" (at least {low:.0})"),
        (None, _) => String::new(),
    };
    Some(format!(
        "Visits to the zones: {:.0} before, and {:.0} with {setting}; predicted were {:.0}{range}.",
        visits.from, visits.to, visits.predicted
    ))
}

/// Shows the verdict, and asks the person at the terminal whether to change the setting.
fn is_agreed(advice: &Advice, setting: &str, signals: &Signals) -> Result<bool> {
    let Some(terminal) = terminal::open() else { bail!("the terminal is gone; nothing was changed") };
    let verdict = advice.sentences.iter().take(3).flat_map(|sentence| wrap(sentence, 80));
    let question =
        format!("{}\nSet {setting} now, and record again? [y/N]", verdict.collect::<Vec<_>>().join("\n"));
    let answer = signals.during(move || terminal::ask(terminal, &question))??;
    Ok(["y", "yes"].contains(&answer.as_str()))
}
