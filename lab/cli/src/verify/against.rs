//! `pageset verify --against` compares a forecast with recordings of the load under the forecast's kernel and
//! settings.

use std::path::PathBuf;

use anyhow::Result;
use pageset_replay::{Against, Change, ReplayError, against};
use pageset_report::page::{Bar, Bars, Page, Part, Section};
use pageset_report::{Cell, Column, Format, Provenance, Row, Table, command_line, json_document};
use pageset_trace::TraceReader;
use serde::Serialize;

use crate::hint;
use crate::invocation::Invocation;
use crate::options::SourceArgs;
use crate::source::Source;
use crate::verify::args::VerifyArgs;
use crate::{output, page};

/// If repeats of one load differ by more than this percentage, a single value says little.
const QUIET_PERCENT: f64 = 25.0;

pub(super) fn run(args: &VerifyArgs, invocation: &Invocation) -> Result<()> {
    let open = |traces: &[PathBuf]| {
        let traces: Vec<Option<PathBuf>> = match traces {
            [] => vec![None],
            traces => traces.iter().cloned().map(Some).collect(),
        };
        let opened = traces.into_iter().map(|trace| {
            let source = Source::open(&SourceArgs { recording: trace, opening: args.opening.clone() })?;
            Ok(Box::new(source) as Box<dyn TraceReader>)
        });
        opened.collect::<Result<Vec<_>>>()
    };
    let (mut from, mut to) = (open(&args.traces)?, open(&args.against)?);
    let found = against(&mut from, &mut to).map_err(|error| match error {
        ReplayError::Trace(error) => hint::of_trace(error),
        error => error.into(),
    })?;
    let provenance = Provenance {
        machine: format!("recorded under {} and {}", found.from.policy, found.to.policy),
        policies: vec![found.from.policy.to_owned(), found.to.policy.to_owned()],
        ..invocation.provenance()
    };
    args.page.write(args.output.target.existing(), || Ok(as_page(&found, &provenance)))?;
    let format = args.output.format();
    output::write(&args.output.target, |out| {
        if format == Format::Json {
            return Ok(json_document(&AgainstDocument::new(&found, &provenance), out)?);
        }
        let table = if format == Format::Csv { table(&found) } else { compared(&found) };
        Ok(format.exporter().export(&table.with_provenance(provenance.clone()), out)?)
    })
}

/// Draws three bars for each quantity: the value in the replayed recordings, the value in the recordings of
/// `--against`, and the forecast.
fn as_page(found: &Against, provenance: &Provenance) -> Page {
    let whole = |value: f64| value.round().max(0.0) as u64;
    let bars = found.changes.iter().map(|change| {
        let bar = |name: &str, value: f64, range| Bar { name: name.to_owned(), value: whole(value), range };
        let ends = change.interval.zip(change.upper_end());
        let range = ends.map(|((low, _), high)| (whole(low), whole(high)));
        Bars {
            title: change.quantity.replace('_', " "),
            unit: String::new(),
            bars: vec![
                bar("was", change.from, None),
                bar("is", change.to, None),
                bar("predicted", change.predicted, range),
            ],
        }
    });
    let mut drawn = Section::new("Measured and predicted");
    drawn.push(Part::Bars(bars.collect()));
    page::page(&title(found), [drawn, page::tables([compared(found)]), page::origin(provenance)])
}

/// Turns the comparison into a table with notes.
pub(super) fn compared(found: &Against) -> Table {
    let mut table = table(found);
    notes(found).into_iter().for_each(|note| table.note(note));
    table
}

fn table(found: &Against) -> Table {
    let columns = vec![
        Column::label("quantity", "quantity"),
        Column::ratio("from", "was"),
        Column::ratio("to", "is"),
        Column::ratio("predicted", "predicted"),
        Column::ratio("low", "from"),
        Column::ratio("high", "to"),
        Column::ratio("real_ratio", "changed by"),
        Column::ratio("predicted_ratio", "predicted "),
        Column::ratio("noise_percent", "noise").with_unit("%"),
        Column::count("covered", "inside"),
        Column::count("compared", "of"),
    ];
    let mut table = Table::new(title(found), columns);
    for change in &found.changes {
        let end = |end: Option<f64>| Cell::real(end, 0);
        let count = |count: Option<u64>| count.map_or(Cell::Absent, Cell::from);
        table.push(Row::new([
            change.quantity.replace('_', " ").into(),
            Cell::real(change.from, 0),
            Cell::real(change.to, 0),
            Cell::real(change.predicted, 0),
            end(change.interval.map(|interval| interval.0)),
            end(change.upper_end()),
            Cell::real(change.real_ratio(), 2),
            Cell::real(change.predicted_ratio(), 2),
            // The noise of a single run is not known.
            Cell::real((found.to.runs.len() > 1).then_some(100.0 * change.noise), 0),
            count(change.covered.map(|covered| covered.0)),
            count(change.covered.map(|covered| covered.1)),
        ]));
    }
    table
}

fn title(found: &Against) -> String {
    let settings =
        if found.settings.is_empty() { String::new() } else { format!(" with {}", found.settings) };
    format!("From {} to {}{settings}: the forecast and the measurement", found.from.policy, found.to.policy)
}

fn notes(found: &Against) -> Vec<String> {
    let mut notes = vec![match (found.from.runs.len(), found.to.runs.len()) {
        (1, 1) => "One replayed run, and one run that it is compared with.".to_owned(),
        (from, to) => format!(
            "Means of {from} replayed {}, and of {to} {} that these are compared with.",
            runs(from),
            runs(to)
        ),
    }];
    notes[0] += " Zone visits are refills and drains.";
    let [from, to] = [&found.from, &found.to].map(|side| command_line(&side.command));
    if !from.is_empty() && !to.is_empty() && from != to {
        notes.push(format!("The commands differ: `{from}` and `{to}`."));
    }
    if found.changes.iter().any(|change| change.interval.is_some() && change.upper_end().is_none()) {
        notes.push(
            "Where an interval has no upper end, the forecast does not say how much at most: the end is larger \
             than this load allows."
                .to_owned(),
        );
    }
    if found.to.runs.len() < 2 {
        notes.push(
            "One run does not show how much runs differ: give several recordings of both sides.".to_owned(),
        );
    } else if found.changes.iter().any(|change| 100.0 * change.noise > QUIET_PERCENT) {
        notes.push(format!(
            "If the repeats differ by more than {QUIET_PERCENT:.0} %, compare the interval with their range, \
             not with the means."
        ));
    }
    notes
}

fn runs(count: usize) -> &'static str {
    if count == 1 { "run" } else { "runs" }
}

/// The result in JSON. Keys are stable.
#[derive(Serialize)]
struct AgainstDocument<'a> {
    #[serde(flatten)]
    against: &'a Against,
    ratios: Vec<Ratios>,
    provenance: &'a Provenance,
}

/// The change of one quantity, such as zone visits, as ratios: the real ratio and the predicted ratio.
#[derive(Serialize)]
struct Ratios {
    quantity: &'static str,
    real: f64,
    predicted: f64,
    off_by: f64,
}

impl<'a> AgainstDocument<'a> {
    fn new(against: &'a Against, provenance: &'a Provenance) -> Self {
        let ratios = |change: &Change| Ratios {
            quantity: change.quantity,
            real: change.real_ratio(),
            predicted: change.predicted_ratio(),
            off_by: change.off_by(),
        };
        Self { against, ratios: against.changes.iter().map(ratios).collect(), provenance }
    }
}
