//! `pageset advise` answers two questions: are page sets the problem of a machine, and would another setting
//! help?
//!
//! If the user gives no recording, `recorder` records this machine: first counts, and then events if
//! `counts_first` finds that events are needed. `apply` tries a setting. `fleet` gives advice for many
//! recordings.

mod apply;
pub(crate) mod args;
mod counts_first;
mod fleet;
mod recorder;

use std::error::Error;
use std::fmt;
use std::fs;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use pageset_measure::host::Settings;
use pageset_replay::advise::{Advice, Forecast, RunTimes, Verdict, advise_repeats};
use pageset_replay::fleet::Answer;
use pageset_replay::who::Who;
use pageset_replay::{Against, INTERVAL_COVERAGE, RECORD_LONGER, ReplayError};
use pageset_report::{Cell, Column, Format, Provenance, Row, Table, command_line, json_document, printable};
use pageset_study::latency::simulated;
use pageset_trace::{TraceError, TraceReader};
use serde::Serialize;

use crate::args::exit_with_usage;
use crate::hint;
use crate::invocation::Invocation;
use crate::left;
use crate::options::SourceArgs;
use crate::output;
use crate::paragraph;
use crate::progress::Progress;
use crate::signals::Signals;
use crate::sites;
use crate::source::Source;
use crate::verify;
use crate::who;
use apply::{Trial, TrialResult};
use args::AdviseArgs;
use counts_first::{Load as _, counts_first};
use recorder::{Recorder, Runs};

/// The name that a result gives to a recording that `advise` has made itself.
const THIS_MACHINE: &str = "This machine";

pub(crate) fn run(args: &AdviseArgs, invocation: &Invocation) -> Result<()> {
    if args.recordings.iter().any(|recording| recording.as_os_str() == "-") {
        exit_with_usage(
            "`advise` may read a recording twice, so the recording cannot come from the standard input: give a file",
        );
    }
    if !args.recordings.is_empty() && args.apply.is_none() && !args.command.is_empty() {
        exit_with_usage("COMMAND is run to be recorded: leave out the recording's file, or add --apply");
    }
    if !args.recordings.is_empty() && args.apply.is_none() && args.times > 1 {
        exit_with_usage(
            "--times makes several recordings: leave out the recording's file, or add --apply. For the forecasts of \
             several files of one load, use `pageset replay A B C`",
        );
    }
    let settings = Settings::of_this_machine();
    if args.put_back {
        return left::put_back(&settings);
    }
    let is_fleet = crate::fleet::is_one(&args.recordings);
    if is_fleet && args.apply.is_some() {
        exit_with_usage("--apply tries the advice of one recording: name one recording");
    }
    if let [command, _, ..] = args.recordings.as_slice()
        && args.recordings.iter().all(|recording| !recording.exists())
    {
        exit_with_usage(format!(
            "there is no file of these names; write a command to record after `--`: 'pageset advise -- {} ...'",
            command.display()
        ));
    }
    if let [recording] = args.recordings.as_slice() {
        hint::of_missing(recording, "`advise` records this machine")?;
    }
    args.output.check()?;
    left::offer(&settings)?;
    if is_fleet {
        return fleet::run(args, invocation);
    }
    let format = args.output.of_one()?;
    let signals = Signals::watch()?;
    let judged = judge(args, invocation, (&settings, format), &signals);
    signals.pass_on()?;
    judged
}

/// Runs `pageset advise`: records if no recording is given, prints the advice, and with `--apply` tries the
/// advised setting.
fn judge(
    args: &AdviseArgs,
    invocation: &Invocation,
    (settings, format): (&Settings, Format),
    signals: &Signals,
) -> Result<()> {
    let provenance = invocation.provenance();
    if let Some(file) = &args.keep_recording {
        output::check_file(file, output::Existing::Refuse)?;
    }
    let trial = Trial::begin(args, settings, &provenance.command)?;
    let recorder = Recorder::new(args, signals)?;
    let recording = args.recordings.first();
    if recording.is_none() || trial.is_some() {
        recorder.check()?;
    }
    let opening = args.opening.clone();
    let open = move |trace: &PathBuf| {
        Source::open(&SourceArgs { recording: Some(trace.clone()), opening: opening.clone() })
    };
    let advised = |traces: &[PathBuf]| {
        let (trace, repeats) = traces.split_first().context("there is no recording")?;
        if let Some(file) = &args.keep_recording {
            fs::copy(trace, file).with_context(|| file.display().to_string())?;
        }
        let (trace, repeats, open) = (trace.to_owned(), repeats.to_owned(), open.clone());
        let judged = signals.during(move || {
            let opened = repeats.iter().map(|repeat| Ok(Box::new(open(repeat)?) as Box<dyn TraceReader>));
            let mut opened = opened.collect::<Result<Vec<_>>>()?;
            advise_repeats(|| open(&trace), &mut opened, simulated, &mut Progress::on_terminal())
        })?;
        let mut advice = judged.map_err(of_reading)?;
        if recording.is_none() {
            advice.recording = THIS_MACHINE.to_owned();
            let longer = if args.command.is_empty() { "--for" } else { "COMMAND" };
            let times = (2 * args.times).max(3);
            let remedy = format!("Repeat with `--times {times}`, or with a longer {longer}.");
            for said in advice.sentences.iter_mut().chain(&mut advice.warnings) {
                RECORD_LONGER.iter().for_each(|made| *said = said.replace(made, &remedy));
            }
        }
        Ok(advice)
    };
    let (before, mut advice) = match recording {
        Some(recording) => {
            let advice = advised(std::slice::from_ref(recording))?;
            (Runs { traces: vec![recording.clone()], ..Runs::default() }, advice)
        }
        None if args.needs_events() => {
            let events = recorder.record(None)?;
            let advice = advised(&events.traces)?;
            (events, advice)
        }
        None => counts_first(&recorder, advised)?,
    };
    advice.warnings.extend(before.warnings.iter().cloned());
    let tried = match trial {
        Some(trial) => {
            let open = move |trace: &PathBuf| Ok(Box::new(open(trace)?) as Box<dyn TraceReader>);
            Some(trial.run(&advice, &recorder, &before, signals, open).map_err(of_reading)?)
        }
        None => None,
    };
    let provenance = with_machine(provenance, &advice);
    // If a change is advised, print the table of forecasts too, because the user should see the reasons.
    // Otherwise a few sentences are enough, unless the user gave `--evidence`.
    let is_change = matches!(advice.verdict, Verdict::Set { .. } | Verdict::ChangeKernel { .. });
    let is_brief = !is_change && tried.is_none() && !args.evidence && !advice.forecasts.is_empty();
    let said = Printed { advice: &advice, tried: tried.as_ref(), provenance: &provenance, is_brief };
    output::write(&args.output.target, |out| said.write(format, out))?;
    if tried.as_ref().and_then(TrialResult::compared).is_some_and(|compared| !compared.is_settled) {
        bail!("the setting was not put back");
    }
    if args.exit_code { AnswerStatus::check(Answer::of(&advice.verdict)) } else { Ok(()) }
}

/// Adds the recorded machine and its policy to the provenance.
fn with_machine(provenance: Provenance, advice: &Advice) -> Provenance {
    Provenance {
        machine: format!(
            "{} CPUs, Linux {}",
            advice.findings.cpus.map_or_else(|| "unknown".to_owned(), |cpus| cpus.to_string()),
            advice.kernel.as_deref().unwrap_or("unknown")
        ),
        policies: advice.policy.iter().cloned().collect(),
        ..provenance
    }
}

/// The exit status of `advise --exit-code` if the answer is not No. `advise` prints its advice, and then
/// returns this status as an error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnswerStatus(pub(crate) u8);

impl AnswerStatus {
    /// Returns an error that holds the exit status of an answer, or `Ok` if the answer is No. The statuses 1
    /// (an error) and 2 (a wrong command line) have other meanings.
    fn check(answer: Answer) -> Result<()> {
        match answer {
            Answer::No => Ok(()),
            Answer::Yes => Err(Self(3).into()),
            Answer::Unknown => Err(Self(4).into()),
        }
    }
}

impl fmt::Display for AnswerStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the answer is not no")
    }
}

impl Error for AnswerStatus {}

pub(crate) fn of_reading(error: anyhow::Error) -> anyhow::Error {
    match error.downcast::<ReplayError>() {
        Ok(ReplayError::Trace(error)) => hint::of_trace(error),
        Ok(error) => error.into(),
        Err(error) => match error.downcast::<TraceError>() {
            Ok(error) => hint::of_trace(error),
            Err(error) => error,
        },
    }
}

/// Advice, the result of its trial, and its provenance.
struct Printed<'a> {
    advice: &'a Advice,
    tried: Option<&'a TrialResult>,
    provenance: &'a Provenance,
    /// Whether the table of forecasts is left out, although there are forecasts: no change is advised or was
    /// tried, and the user did not give `--evidence`.
    is_brief: bool,
}

/// Largest number of the advice's sentences that are printed if the table of forecasts is left out.
const BRIEF: usize = 4;

/// The advice and its trial in JSON. Keys are stable.
#[derive(Serialize)]
struct AdviceDocument<'a> {
    #[serde(flatten)]
    advice: &'a Advice,
    #[serde(skip_serializing_if = "Option::is_none")]
    applied: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    against: Option<&'a Against>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_times: Option<&'a RunTimes>,
    /// The result of the trial, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    tried: Option<Vec<&'a str>>,
    provenance: &'a Provenance,
}

impl Printed<'_> {
    fn write(&self, format: Format, out: &mut dyn Write) -> Result<()> {
        let Self { advice, tried, provenance, is_brief } = *self;
        let whose = advice.who.as_ref().and_then(Who::sentence);
        match format {
            Format::Json => {
                let compared = tried.and_then(TrialResult::compared);
                let document = AdviceDocument {
                    advice,
                    applied: compared.map(|compared| compared.setting.as_str()),
                    against: compared.map(|compared| &compared.against),
                    run_times: compared.map(|compared| &compared.run_times),
                    tried: tried.map(|tried| tried.sentences().collect()),
                    provenance,
                };
                return Ok(json_document(&document, out)?);
            }
            Format::Csv => {
                let table = table(advice).with_provenance(provenance.clone());
                return Ok(Format::Csv.exporter().export(&table, out)?);
            }
            Format::Markdown => {
                writeln!(out, "## {}\n", title(advice))?;
                advice
                    .sentences
                    .iter()
                    .try_for_each(|sentence| writeln!(out, "- {}", printable(sentence)))?;
                whose.iter().try_for_each(|sentence| writeln!(out, "- {sentence}"))?;
                advice
                    .warnings
                    .iter()
                    .try_for_each(|warning| writeln!(out, "- *Note:* {}", printable(warning)))?;
            }
            Format::Table if is_brief => {
                writeln!(out, "{}\n", title(advice))?;
                let sentences = advice.sentences.iter().take(BRIEF);
                { sentences }.try_for_each(|sentence| paragraph::write(out, 0, sentence))?;
                whose.iter().try_for_each(|sentence| paragraph::write(out, 0, sentence))?;
                for warning in &advice.warnings {
                    paragraph::write(out, 0, &format!("Note: {warning}"))?;
                }
                let rows = advice.forecasts.len();
                if rows == 0 {
                    return Ok(());
                }
                return Ok(writeln!(
                    out,
                    "--evidence shows {rows} other settings and kernels with this load."
                )?);
            }
            Format::Table => {
                writeln!(out, "{}\n", title(advice))?;
                advice.sentences.iter().try_for_each(|sentence| paragraph::write(out, 0, sentence))?;
                whose.iter().try_for_each(|sentence| paragraph::write(out, 0, sentence))?;
                for warning in &advice.warnings {
                    paragraph::write(out, 0, &format!("Note: {warning}"))?;
                }
            }
        }
        writeln!(out)?;
        if let Some(tried) = tried {
            match format {
                Format::Markdown => {
                    tried.sentences().try_for_each(|sentence| writeln!(out, "- {sentence}"))?;
                }
                _ => tried.sentences().try_for_each(|sentence| paragraph::write(out, 0, sentence))?,
            }
            writeln!(out)?;
        }
        if let Some(compared) = tried.and_then(TrialResult::compared) {
            format.exporter().export(&verify::compared(&compared.against), out)?;
            writeln!(out)?;
        }
        let who = advice.who.iter().flat_map(who::tables);
        for (_, table) in who.chain(advice.sites.iter().flat_map(sites::tables)) {
            format.exporter().export(&table, out)?;
            writeln!(out)?;
        }
        if advice.forecasts.is_empty() {
            let none = Table::new("There is no forecast.", Vec::new());
            return Ok(format.exporter().export(&none.with_provenance(provenance.clone()), out)?);
        }
        let mut table = table(advice);
        table.note(format!(
            "`now` is the recorded kernel with its settings. Each other row is the forecast for a setting or kernel. \
             `from` and `to` are the ends of the forecast's 80 % interval; `least` and `most` are these ends in percent of \
             the recorded kernel's visits.  {INTERVAL_COVERAGE}",
        ));
        Ok(format.exporter().export(&table.with_provenance(provenance.clone()), out)?)
    }
}

fn title(advice: &Advice) -> String {
    let findings = &advice.findings;
    let command = if advice.command.is_empty() {
        String::new()
    } else {
        format!(", `{}`", command_line(&advice.command))
    };
    let (recording, seconds) = (printable(&advice.recording), findings.seconds);
    if findings.is_counted {
        return format!("{recording}: counts of {seconds:.1} s{command}");
    }
    format!("{recording}: {} events in {seconds:.1} s{command}", findings.events)
}

/// Makes the table of forecasts for other settings and kernels. The first row is the recorded kernel with its
/// settings.
pub(crate) fn table(advice: &Advice) -> Table {
    let columns = vec![
        Column::label("candidate", "setting or kernel"),
        Column::count("visits", "visits"),
        Column::count("visits_low", "from"),
        Column::count("visits_high", "to"),
        Column::ratio("visits_percent_low", "least").with_unit("%"),
        Column::ratio("visits_percent_high", "most").with_unit("%"),
        Column::count("held_pages_peak", "pages, peak"),
        Column::count("held_pages_idle", "pages, idle"),
    ];
    let mut table = Table::new("The evidence: visits to the zones under other settings and kernels", columns);
    let findings = &advice.findings;
    if let Some(visits) = findings.visits.filter(|_| !advice.forecasts.is_empty()) {
        let all = || if visits > 0 { Cell::real(100.0, 0) } else { Cell::Absent };
        table.push(Row::new([
            "now".into(),
            visits.into(),
            visits.into(),
            visits.into(),
            all(),
            all(),
            findings.held_pages_peak.map_or(Cell::Absent, Into::into),
            Cell::Absent,
        ]));
    }
    for forecast in &advice.forecasts {
        let percent = |percent: Option<f64>| Cell::real(percent, 0);
        table.push(Row::new([
            name(forecast).into(),
            forecast.visits.into(),
            forecast.visits_range.low.into(),
            forecast.visits_range.high.into(),
            percent(forecast.visits_percent.map(|range| range.0)),
            percent(forecast.visits_percent.map(|range| range.1)),
            forecast.held_pages_peak.into(),
            forecast.held_pages_idle.into(),
        ]));
    }
    table
}

/// The name of a row: the kernel, or the settings without the prefix `vm.percpu_pagelist_`.
pub(crate) fn name(forecast: &Forecast) -> String {
    match &forecast.kernel {
        Some(kernel) => kernel.clone(),
        None => forecast.settings.replace("vm.percpu_pagelist_", ""),
    }
}
