//! Shows many recordings of one load: a line for each recording, and how much their figures differ.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::Result;
use pageset_replay::advise::{Evidence, findings};
use pageset_report::{Cell, Column, Format, Provenance, Row, Spread, Table};
use pageset_trace::TraceReader as _;

use super::{StatDocument, provenance, surveyed};
use crate::fleet::{self, Fleet};
use crate::invocation::Invocation;
use crate::options::RowsFormat;
use crate::output;
use crate::source::Source;
use crate::stat::args::StatArgs;

/// A figure of a recording: its key, its heading, its unit, the number of its decimals, and the function that
/// returns its value.
type Figure = (&'static str, &'static str, &'static str, u8, fn(&Evidence) -> Option<f64>);

/// The figures of a recording's line. The summary has the median and the range of each figure.
const FIGURES: [Figure; 7] = [
    ("seconds", "time", "s", 1, |of| Some(of.seconds)),
    ("events", "events", "", 0, |of| Some(of.events as f64)),
    ("lost_events", "lost", "", 0, |of| Some(of.lost_events as f64)),
    ("pages_per_s", "pages", "/s", 0, |of| rate(of.allocated_pages, of)),
    ("visits_per_s", "visits", "/s", 0, |of| rate(of.visits, of)),
    ("waits_percent", "waits", "%", 2, |of| of.waiting.map(pageset_replay::advise::Waiting::percent)),
    ("remote_percent", "remote frees", "%", 1, |of| of.remote_percent),
];
/// Place in [`FIGURES`] of the figure that sorts the lines.
const VISITS: usize = 4;

const READING: &str = "Recordings with the most visits to the zones a second come first. `pages` is how many pages were allocated, \
    `waits` is the time of waits for zone locks in percent of all CPUs' time (an upper bound if waits were not recorded), \
    `remote frees` is the share of pages that another CPU freed. A `-` is unknown.";

fn rate(count: Option<u64>, of: &Evidence) -> Option<f64> {
    Some(count? as f64 / Some(of.seconds).filter(|seconds| *seconds > 0.0)?)
}

pub(super) fn run(args: &StatArgs, invocation: &Invocation) -> Result<()> {
    let format = args.output.format;
    let source = &args.source;
    let fleet = fleet::read((&source.recordings, &source.opening), |recording| {
        let mut source = Source::open(recording)?;
        let survey = surveyed(&mut source, |_| ())?;
        let from = provenance(&source, invocation);
        let document = (format == RowsFormat::Printed(Format::Json))
            .then(|| fleet::document(&StatDocument::new(source.info(), &survey, &from)))
            .transpose()?;
        Ok((findings(source.info(), &survey), document))
    })?;
    let provenance = invocation.provenance();
    output::write(&args.output.target, |out| write(&fleet, &provenance, format, out))?;
    fleet.finish()
}

fn write(
    fleet: &Fleet<Evidence>,
    provenance: &Provenance,
    format: RowsFormat,
    out: &mut dyn Write,
) -> Result<()> {
    let Some(format) = format.write_rows(|| lines(fleet), provenance, out)? else { return Ok(()) };
    let spreads = FIGURES.map(|(.., figure)| fleet::spread(fleet.known().map(figure)));
    match format {
        Format::Json => {
            #[derive(serde::Serialize)]
            struct Summary {
                recordings: usize,
                unread: usize,
                #[serde(flatten)]
                figures: BTreeMap<&'static str, Option<Spread>>,
            }
            let figures = FIGURES.iter().zip(spreads).map(|((key, ..), spread)| (*key, spread)).collect();
            let summary = Summary { recordings: fleet.members.len(), unread: fleet.unread(), figures };
            fleet.write_json(summary, provenance, out)
        }
        Format::Csv => {
            Ok(Format::Csv.exporter().export(&lines(fleet).with_provenance(provenance.clone()), out)?)
        }
        Format::Table | Format::Markdown => {
            let mut lines = lines(fleet).without(&["error"]);
            lines.note(READING);
            fleet.note_unread(&mut lines);
            format.exporter().export(&lines, out)?;
            writeln!(out)?;
            let mut columns = vec![Column::label("of", "of all")];
            columns.extend(FIGURES.iter().map(column));
            let mut summary =
                Table::new(format!("{} recordings", fleet.members.len() - fleet.unread()), columns);
            for (row, name) in ["least", "median", "most"].into_iter().enumerate() {
                let value = |of: &Spread| [of.min, of.median, of.max][row];
                let cells = FIGURES.iter().zip(&spreads);
                let cells =
                    cells.map(|((.., digits, _), spread)| Cell::real(spread.as_ref().map(value), *digits));
                summary.push(Row::new([name.into()].into_iter().chain(cells)));
            }
            Ok(format.exporter().export(&summary.with_provenance(provenance.clone()), out)?)
        }
    }
}

fn column((key, heading, unit, ..): &Figure) -> Column {
    Column::measure(key, heading).with_unit(unit)
}

fn lines(fleet: &Fleet<Evidence>) -> Table {
    let mut columns = vec![Column::label("recording", "recording")];
    columns.extend(FIGURES.iter().map(column));
    columns.push(Column::label("error", "error"));
    let mut order: Vec<usize> = (0..fleet.members.len()).collect();
    let visits =
        |at: usize| fleet.members[at].read.as_ref().ok().map(|of| FIGURES[VISITS].4(of).unwrap_or(-1.0));
    order.sort_by(|one, other| visits(*other).unwrap_or(-2.0).total_cmp(&visits(*one).unwrap_or(-2.0)));
    let mut table = Table::new(fleet.title(), columns);
    for at in order {
        let cells: Vec<Cell> = match &fleet.members[at].read {
            Ok(of) => FIGURES
                .iter()
                .map(|(.., digits, figure)| Cell::real(figure(of), *digits))
                .chain([Cell::Absent])
                .collect(),
            Err(problem) => {
                FIGURES.map(|_| Cell::Absent).into_iter().chain([problem.as_str().into()]).collect()
            }
        };
        table.push(Row::new([fleet.name(at).into()].into_iter().chain(cells)));
    }
    table
}
