//! `pageset advise`: is it the page sets, and what would help?
//!
//! `recorder` records this machine where no recording is given, `apply` tries a setting.

mod apply;
mod args;
mod recorder;

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use pageset_lab::advise::{Advice, Forecast, advise};
use pageset_report::{Cell, Column, Format, Provenance, Row, Table, json_document};
use pageset_trace::{TraceError, TraceReader};
use pageset_workload::{Against, INTERVAL_COVERAGE, ReplayError};
use serde::Serialize;

pub(crate) use args::AdviseArgs;

use crate::args::refuse;
use crate::hint;
use crate::invocation::Invocation;
use crate::options::SourceArgs;
use crate::output;
use crate::paragraph;
use crate::progress::Progress;
use crate::source::Source;
use crate::verify;
use apply::Tried;
use recorder::Recorder;

/// Name of a recording that `advise` has made itself.
const THIS_MACHINE: &str = "This machine";

pub(crate) fn run(args: &AdviseArgs, invocation: &Invocation) -> Result<()> {
    if args.trace.as_ref().is_some_and(|trace| trace.as_os_str() == "-") {
        refuse("advice reads a recording twice, so it cannot come from the standard input: give a file");
    }
    if args.trace.is_some() && args.apply.is_none() && !args.command.is_empty() {
        refuse("a COMMAND is for recordings: leave out the file, or say --apply");
    }
    let recorder = Recorder::new(args.duration, &args.command)?;
    let traces = match &args.trace {
        Some(trace) => vec![trace.clone()],
        None if args.apply.is_some() => recorder.record_settled("before", args.times)?,
        None => vec![recorder.record("now")?],
    };
    let open = |trace: &PathBuf| {
        Source::open(&SourceArgs { trace: Some(trace.clone()), opening: args.opening.clone() })
    };
    let mut advice = advise(|| open(&traces[0]), &mut Progress::on_terminal()).map_err(of_reading)?;
    if args.trace.is_none() {
        advice.recording = THIS_MACHINE.to_owned();
    }
    let tried = match apply::setting(args, &advice) {
        Some(setting) => {
            let before = traces.iter().map(|trace| Ok(Box::new(open(trace)?) as Box<dyn TraceReader>));
            let mut before = before.collect::<Result<Vec<_>>>()?;
            Some(apply::run(args, setting, &recorder, &mut before).map_err(of_reading)?)
        }
        None => None,
    };
    let provenance = Provenance {
        machine: format!(
            "{} CPUs, Linux {}",
            advice.findings.cpus,
            advice.kernel.as_deref().unwrap_or("unknown")
        ),
        policies: advice.policy.iter().cloned().collect(),
        ..invocation.provenance()
    };
    let said = Said { advice: &advice, tried: tried.as_ref(), provenance: &provenance };
    output::write(&args.output.target, |out| said.write(args.output.format(), out))
}

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

/// Advice, what came of it, and where it comes from.
struct Said<'a> {
    advice: &'a Advice,
    tried: Option<&'a Tried>,
    provenance: &'a Provenance,
}

/// All of it in JSON. Keys are stable.
#[derive(Serialize)]
struct AdviceDocument<'a> {
    #[serde(flatten)]
    advice: &'a Advice,
    #[serde(skip_serializing_if = "Option::is_none")]
    applied: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    against: Option<&'a Against>,
    provenance: &'a Provenance,
}

impl Said<'_> {
    fn write(&self, format: Format, out: &mut dyn Write) -> Result<()> {
        let Self { advice, tried, provenance } = *self;
        match format {
            Format::Json => {
                let applied = tried.map(|tried| tried.setting.as_str());
                let against = tried.map(|tried| &tried.against);
                return Ok(json_document(&AdviceDocument { advice, applied, against, provenance }, out)?);
            }
            Format::Csv => {
                let table = table(advice).with_provenance(provenance.clone());
                return Ok(Format::Csv.exporter().export(&table, out)?);
            }
            Format::Markdown => {
                writeln!(out, "## {}\n", title(advice))?;
                advice.sentences.iter().try_for_each(|sentence| writeln!(out, "- {sentence}"))?;
                advice.warnings.iter().try_for_each(|warning| writeln!(out, "- *Note:* {warning}"))?;
            }
            Format::Table => {
                writeln!(out, "{}\n", title(advice))?;
                advice.sentences.iter().try_for_each(|sentence| paragraph::write(out, 0, sentence))?;
                for warning in &advice.warnings {
                    paragraph::write(out, 0, &format!("Note: {warning}"))?;
                }
            }
        }
        writeln!(out)?;
        if let Some(tried) = tried {
            let mut compared = verify::compared(&tried.against);
            compared.note(match &tried.way_back {
                Some(way_back) => format!("{} is left as it is. `{way_back}` puts it back.", tried.setting),
                None => format!("{} was put back.", tried.setting),
            });
            format.exporter().export(&compared, out)?;
            writeln!(out)?;
        }
        let mut table = table(advice);
        table.note(format!(
            "A row is what a setting or kernel would have made of the recorded load. `from` and `to` are its 80 % interval; in \
             percent of the recorded kernel's visits, `least` and `most`. {INTERVAL_COVERAGE}",
        ));
        Ok(format.exporter().export(&table.with_provenance(provenance.clone()), out)?)
    }
}

fn title(advice: &Advice) -> String {
    let findings = &advice.findings;
    let command =
        if advice.command.is_empty() { String::new() } else { format!(", `{}`", advice.command.join(" ")) };
    format!("{}: {} events in {:.1} s{command}", advice.recording, findings.events, findings.seconds)
}

/// What other settings and kernels would have made of the load.
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
    for forecast in &advice.forecasts {
        let percent = |percent: Option<f64>| percent.map_or(Cell::Absent, |percent| Cell::real(percent, 0));
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

/// The kernel, or the setting without what all of them begin with.
pub(crate) fn name(forecast: &Forecast) -> String {
    match &forecast.kernel {
        Some(kernel) => kernel.clone(),
        None => forecast.settings.replace("vm.percpu_pagelist_", ""),
    }
}
