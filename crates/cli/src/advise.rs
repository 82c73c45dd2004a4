//! `pageset advise`: is it the page sets, and what would help?

use std::io::Write;

use anyhow::Result;
use pageset_lab::advise::{Advice, Forecast, advise};
use pageset_report::{Cell, Column, Format, Provenance, Row, Table, json_document};
use pageset_trace::TraceError;
use pageset_workload::ReplayError;
use serde::Serialize;

use crate::args::{self, AdviseArgs};
use crate::hint;
use crate::invocation::Invocation;
use crate::output;
use crate::paragraph;
use crate::progress::Progress;
use crate::source::Source;

pub(crate) fn run(args: &AdviseArgs, invocation: &Invocation) -> Result<()> {
    if args.source.trace.as_ref().is_some_and(|trace| trace.as_os_str() == "-") {
        args::refuse(
            "advice reads a recording twice, so it cannot come from the standard input: give a file",
        );
    }
    let advice = advise(|| Source::open(&args.source), &mut Progress::on_terminal()).map_err(of_reading)?;
    let provenance = Provenance {
        machine: format!(
            "{} CPUs, Linux {}",
            advice.findings.cpus,
            advice.kernel.as_deref().unwrap_or("unknown")
        ),
        policies: advice.policy.iter().cloned().collect(),
        ..invocation.provenance()
    };
    output::write(&args.output.target, |out| write(&advice, &provenance, args.output.format(), out))
}

fn of_reading(error: anyhow::Error) -> anyhow::Error {
    match error.downcast::<ReplayError>() {
        Ok(ReplayError::Trace(error)) => hint::of_trace(error),
        Ok(error) => error.into(),
        Err(error) => match error.downcast::<TraceError>() {
            Ok(error) => hint::of_trace(error),
            Err(error) => error,
        },
    }
}

/// Advice, and where it comes from.
#[derive(Serialize)]
struct AdviceDocument<'a> {
    #[serde(flatten)]
    advice: &'a Advice,
    provenance: &'a Provenance,
}

fn write(advice: &Advice, provenance: &Provenance, format: Format, out: &mut dyn Write) -> Result<()> {
    match format {
        Format::Json => return Ok(json_document(&AdviceDocument { advice, provenance }, out)?),
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
    let mut table = table(advice);
    table.note(
        "A row is what a setting or kernel would have made of the recorded load. Four of five truths lie from `from` to \
         `to`; in percent of the recorded kernel's visits, `least` and `most`.",
    );
    Ok(format.exporter().export(&table.with_provenance(provenance.clone()), out)?)
}

fn title(advice: &Advice) -> String {
    let findings = &advice.findings;
    let command =
        if advice.command.is_empty() { String::new() } else { format!(", `{}`", advice.command.join(" ")) };
    format!("{}: {} events in {:.1} s{command}", advice.recording, findings.events, findings.seconds)
}

fn table(advice: &Advice) -> Table {
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
fn name(forecast: &Forecast) -> String {
    match &forecast.kernel {
        Some(kernel) => kernel.clone(),
        None => forecast.settings.replace("vm.percpu_pagelist_", ""),
    }
}
