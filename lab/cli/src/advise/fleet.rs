//! Gives advice for many recordings of one load: the answer for each recording, and how many recordings have
//! each answer.

use std::io::Write;

use anyhow::Result;
use pageset_replay::advise::{Advice, advise};
use pageset_replay::fleet::{Answer, Answers, Line, drop_tables};
use pageset_report::{Cell, Column, Format, Provenance, Row, Table};
use pageset_study::latency::simulated;
use serde::Serialize;

use super::args::AdviseArgs;
use super::{AdviceDocument, AnswerStatus, of_reading, with_machine};
use crate::fleet::{self, Fleet};
use crate::invocation::Invocation;
use crate::options::RowsFormat;
use crate::output;
use crate::paragraph;
use crate::source::Source;

const READING: &str = "`saves` is how much of the CPU time the advised setting saves, from the least to the \
                       most. `at most` is how much of the CPU time waits and visits to the zones took. Recordings with a \
                       Yes come first, beginning with the worst. `pageset advise RECORDING` gives the reasons.";

pub(super) fn run(args: &AdviseArgs, invocation: &Invocation) -> Result<()> {
    let format = args.output.format;
    let fleet = fleet::read((&args.recordings, &args.opening), |recording| {
        let mut advice = advise(|| Source::open(recording), simulated, &mut ()).map_err(of_reading)?;
        let provenance = with_machine(invocation.provenance(), &advice);
        let document = AdviceDocument {
            advice: &advice,
            applied: None,
            against: None,
            run_times: None,
            tried: None,
            provenance: &provenance,
        };
        let document =
            (format == RowsFormat::Printed(Format::Json)).then(|| fleet::document(&document)).transpose()?;
        drop_tables(&mut advice);
        Ok((advice, document))
    })?;
    let answers = Answers::new(fleet.members.iter().map(|member| member.read.as_ref().ok()));
    let provenance = invocation.provenance();
    output::write(&args.output.target, |out| write(&fleet, &answers, &provenance, format, out))?;
    fleet.finish()?;
    match () {
        () if !args.exit_code => Ok(()),
        () if !answers.yes.is_empty() => AnswerStatus::check(Answer::Yes),
        () if answers.unknown > 0 => AnswerStatus::check(Answer::Unknown),
        () => Ok(()),
    }
}

#[derive(Serialize)]
struct Summary<'a> {
    #[serde(flatten)]
    answers: &'a Answers,
    /// Sentences that say how many recordings of the fleet have each answer.
    sentences: Vec<String>,
}

fn write(
    fleet: &Fleet<Advice>,
    answers: &Answers,
    provenance: &Provenance,
    format: RowsFormat,
    out: &mut dyn Write,
) -> Result<()> {
    let Some(format) = format.write_rows(|| rows(fleet, answers), provenance, out)? else { return Ok(()) };
    let sentences = answers.sentences(|at| fleet.name(at));
    match format {
        Format::Json => return fleet.write_json(Summary { answers, sentences }, provenance, out),
        Format::Csv => {}
        Format::Markdown => {
            writeln!(out, "## {}\n", fleet.title())?;
            sentences.iter().try_for_each(|sentence| writeln!(out, "- {sentence}"))?;
            writeln!(out)?;
        }
        Format::Table => {
            writeln!(out, "{}\n", fleet.title())?;
            sentences.iter().try_for_each(|sentence| paragraph::write(out, 0, sentence))?;
            writeln!(out)?;
        }
    }
    let mut table = lines(fleet, answers);
    if format != Format::Csv {
        table = table.without(&["saved_percent_least", "saved_percent_most", "error"]);
        table.note(READING);
        fleet.note_unread(&mut table);
    } else {
        table = table.without(&["saves"]);
    }
    Ok(format.exporter().export(&table.with_provenance(provenance.clone()), out)?)
}

fn lines(fleet: &Fleet<Advice>, answers: &Answers) -> Table {
    let columns = vec![
        Column::label("recording", "recording"),
        Column::label("answer", "answer"),
        Column::ratio("saves", "saves").with_unit("%"),
        Column::ratio("saved_percent_least", "saves, least").with_unit("%"),
        Column::ratio("saved_percent_most", "saves, most").with_unit("%"),
        Column::ratio("most_percent", "at most").with_unit("%"),
        Column::measure("visits_per_s", "visits").with_unit("/s"),
        Column::label("advised", "advised, or why not"),
        Column::label("error", "error"),
    ];
    let mut table = Table::new("Each recording, the worst first", columns);
    for at in answers.order.iter().copied() {
        let line = Line::new(fleet.members[at].read.as_ref().map_err(String::clone));
        let (least, most) = (line.saved_percent_least, line.saved_percent_most);
        let saves = least.zip(most).map(|(least, most)| format!("{least:.1} to {most:.1}"));
        let advised = line.advised.or(line.why_unknown);
        table.push(Row::new([
            fleet.name(at).into(),
            line.answer.unwrap_or_else(|| "error".to_owned()).into(),
            saves.into(),
            Cell::real(least, 1),
            Cell::real(most, 1),
            Cell::real(line.most_percent, 2),
            Cell::real(line.visits_per_s, 0),
            advised.map(|what| what.replace("vm.percpu_pagelist_", "")).into(),
            line.error.into(),
        ]));
    }
    table
}

/// The columns of `pageset.fleet` in Python: the recording's name, and the fields of its line.
fn columns_of_rows() -> Vec<Column> {
    vec![
        Column::label("recording", "recording"),
        Column::label("answer", "answer"),
        Column::label("advised", "advised"),
        Column::ratio("saved_percent_least", "saves, least").with_unit("%"),
        Column::ratio("saved_percent_most", "saves, most").with_unit("%"),
        Column::ratio("most_percent", "at most").with_unit("%"),
        Column::measure("visits_per_s", "visits").with_unit("/s"),
        Column::label("why_unknown", "why unknown"),
        Column::label("error", "error"),
    ]
}

/// One row for each recording, the worst first.
fn rows(fleet: &Fleet<Advice>, answers: &Answers) -> Table {
    let mut table = Table::new(fleet.title(), columns_of_rows());
    for at in answers.order.iter().copied() {
        let line = Line::new(fleet.members[at].read.as_ref().map_err(String::clone));
        table.push(Row::new([
            fleet.name(at).into(),
            line.answer.into(),
            line.advised.into(),
            Cell::real(line.saved_percent_least, 1),
            Cell::real(line.saved_percent_most, 1),
            Cell::real(line.most_percent, 2),
            Cell::real(line.visits_per_s, 0),
            line.why_unknown.into(),
            line.error.into(),
        ]));
    }
    table
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The columns of `pageset.fleet` are the fields of `Line`, and the name of the recording.
    #[test]
    fn rows_have_the_columns_of_pythons_fleet() {
        let columns = columns_of_rows();
        let columns: BTreeSet<&str> = columns.iter().map(|column| column.key.as_str()).collect();
        let line = serde_json::to_value(Line::default()).unwrap();
        let fields = line.as_object().unwrap().keys().map(String::as_str);
        assert_eq!(columns, fields.chain(["recording"]).collect());
    }
}
