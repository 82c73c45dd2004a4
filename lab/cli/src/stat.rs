//! `pageset stat` shows the contents of a recording.
//!
//! `sections` turns a survey into tables. `counts` turns a recording of counts into tables. `fleet` prints a
//! line for each of many recordings.

pub(crate) mod args;
mod counts;
mod fleet;
mod sections;
mod warnings;

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::Result;
use pageset_replay::sites::Sites;
use pageset_replay::who::Who;
use pageset_replay::{Bursts, Cpus, Kernel, Lifetimes, Orders, Survey, SurveyOptions, ZoneSurvey, survey};
use pageset_report::{Cell, Column, Format, Kind, Provenance, Row, Table, json_document};
use pageset_trace::{Counts, EventKind, TraceInfo, TraceReader as _};
use serde::Serialize;

use crate::hint;
use crate::invocation::Invocation;
use crate::layouts::{LayoutOrigin, LayoutSummary};
use crate::origin::{self, TraceDocument};
use crate::output;
use crate::paragraph;
use crate::progress::Progress;
use crate::source::Source;
use crate::stat::args::StatArgs;
pub(crate) use sections::{Section, duration, sections};
use warnings::warnings;

pub(crate) fn run(args: &StatArgs, invocation: &Invocation) -> Result<()> {
    args.output.check()?;
    if crate::fleet::is_one(&args.source.recordings) {
        return fleet::run(args, invocation);
    }
    let format = args.output.of_one()?;
    let mut source = Source::open(&args.source.single())?;
    let amount = source.amount();
    let mut progress = Progress::of_amount("reading", &amount);
    let survey = surveyed(&mut source, |events| progress.show(amount.done(events)))?;
    drop(progress);
    let provenance = provenance(&source, invocation);
    output::write(&args.output.target, |out| write(&source, &survey, &provenance, format, out))
}

fn surveyed(source: &mut Source, progress: impl FnMut(u64)) -> Result<Survey> {
    survey(source, &SurveyOptions::default(), progress).map_err(hint::of_trace)
}

fn provenance(source: &Source, invocation: &Invocation) -> Provenance {
    let machine = source.info().machine.as_ref();
    let line = machine.map(|machine| LayoutSummary::new(machine, LayoutOrigin::Recorded).line());
    Provenance { machine: line.unwrap_or_default(), ..invocation.provenance() }
}

fn write(
    source: &Source,
    survey: &Survey,
    provenance: &Provenance,
    format: Format,
    out: &mut dyn Write,
) -> Result<()> {
    let document = || StatDocument::new(source.info(), survey, provenance);
    match format {
        Format::Json => json_document(&document(), out)?,
        Format::Csv => long(&sections(source.info(), survey), provenance, out)?,
        Format::Table | Format::Markdown => {
            for section in sections(source.info(), survey) {
                match &section.drawing {
                    Some(drawing) if format == Format::Table => {
                        writeln!(out, "{}\n\n{drawing}", section.table.title())?;
                        let notes = section.table.notes();
                        notes.iter().try_for_each(|note| paragraph::write(out, 0, note))?;
                        if !notes.is_empty() {
                            writeln!(out)?;
                        }
                    }
                    _ => {
                        format.exporter().export(&section.table, out)?;
                        writeln!(out)?;
                    }
                }
            }
            let mut last = Table::new("Where this comes from", Vec::new());
            origin::lost_notes(&survey.lost).into_iter().for_each(|note| last.note(note));
            let info = source.info();
            let assumed = info.assumptions(info.machine.as_ref());
            assumed.into_iter().for_each(|note| last.note(note));
            source.info().not_recorded.iter().for_each(|what| last.note(format!("Not recorded: {what}.")));
            warnings(source.info(), survey).into_iter().for_each(|warning| last.note(warning));
            format.exporter().export(&last.with_provenance(provenance.clone()), out)?;
        }
    }
    Ok(())
}

/// The contents of one recording as JSON. Keys are stable. Times are in nanoseconds, sizes in pages.
#[derive(Serialize)]
struct StatDocument<'a> {
    trace: TraceDocument,
    /// Number of events of each tracepoint.
    events: BTreeMap<&'static str, u64>,
    /// Tracepoints that were perhaps not recorded. Figures that need their events are `null`.
    not_recorded: Vec<&'static str>,
    orders: &'a Orders,
    cpus: &'a Cpus,
    lifetimes: Option<&'a Lifetimes>,
    bursts: Option<&'a Bursts>,
    kernel: &'a Kernel,
    /// The numbers of a recording of counts, which has no events.
    #[serde(skip_serializing_if = "Option::is_none")]
    counts: Option<&'a Counts>,
    /// The load by process and by control group, and the recorded command's part. Absent if the recording
    /// does not distinguish tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    who: Option<Who>,
    /// Call sites, and locks other than zone locks that CPUs waited for. Absent if the recording has no call
    /// chains.
    #[serde(skip_serializing_if = "Option::is_none")]
    sites: Option<Sites>,
    zones: &'a [ZoneSurvey],
    warnings: Vec<String>,
    provenance: &'a Provenance,
}

impl<'a> StatDocument<'a> {
    fn new(info: &'a TraceInfo, survey: &'a Survey, provenance: &'a Provenance) -> Self {
        let seconds = survey.time.map(|time| time.seconds());
        let machine = info.machine.clone().map(|machine| (machine, LayoutOrigin::Recorded));
        let events = survey.kinds.iter().filter(|(_, count)| *count > 0);
        let lacking = survey.recorded.lacking(&EventKind::ALL);
        Self {
            trace: TraceDocument::new(info, survey.events, seconds, survey.lost, machine.as_ref()),
            events: events.map(|(kind, count)| (kind.name(), *count)).collect(),
            not_recorded: lacking.into_iter().map(EventKind::name).collect(),
            orders: &survey.orders,
            cpus: &survey.cpus,
            lifetimes: survey.lifetimes.as_ref(),
            bursts: survey.bursts.as_ref(),
            kernel: &survey.kernel,
            counts: info.counts.as_ref(),
            who: Who::new(info, survey),
            sites: Sites::new(info, survey),
            zones: &survey.zones,
            warnings: warnings(info, survey),
            provenance,
        }
    }
}

/// All sections as one table with a row for each number, because a CSV file cannot contain tables of
/// different shapes.
fn long(sections: &[Section], provenance: &Provenance, out: &mut dyn Write) -> Result<()> {
    let columns = vec![
        Column::label("section", "section"),
        Column::label("item", "item"),
        Column::label("name", "name"),
        Column::measure("value", "value"),
    ];
    let mut all = Table::new("", columns);
    for section in sections {
        let columns = section.table.columns();
        // If a table has no column of labels, its first `keys` columns name a row.
        let has_label = columns.iter().any(|column| column.kind == Kind::Label);
        for row in section.table.rows() {
            let cells = || columns.iter().zip(&row.cells).enumerate();
            let is_name = |(index, (column, _)): &(usize, (&Column, &Cell))| {
                if has_label { column.kind == Kind::Label } else { *index < section.keys }
            };
            let item: Vec<_> = cells().filter(is_name).map(|(_, (_, cell))| plain(cell)).collect();
            for (_, (column, cell)) in cells().filter(|cell| !is_name(cell) && *cell.1.1 != Cell::Absent) {
                let name = column.key.as_str();
                all.push(Row::new([section.key.into(), item.join(" ").into(), name.into(), cell.clone()]));
            }
        }
    }
    Format::Csv.exporter().export(&all.with_provenance(provenance.clone()), out)?;
    Ok(())
}

/// A label or a key as text.
fn plain(cell: &Cell) -> String {
    match cell {
        Cell::Text(text) => text.clone(),
        Cell::Count(count) => count.to_string(),
        Cell::Real { value, .. } => value.to_string(),
        Cell::Absent => String::new(),
    }
}
