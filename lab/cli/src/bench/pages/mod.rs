//! `pageset bench pages` measures what clearing and copying pages costs on this machine. `tables`, `goals`
//! and `figure` show the cost.

mod choose;
mod figure;
mod goals;
mod tables;

use std::path::Path;

use anyhow::{Context as _, Result};
use pageset_measure::host;
use pageset_measure::pageops::{BenchSpec, Load, Measurement, Measurements, Operation, bench};
use pageset_report::{Format, Provenance, Seeds, Table, json_document};
use serde::Serialize;

use super::args::BenchPagesArgs;
use crate::invocation::Invocation;
use crate::output::{self, Existing};
use crate::progress::Progress;
pub(super) use choose::choose;

pub(crate) fn run(args: &BenchPagesArgs, invocation: &Invocation) -> Result<()> {
    if let Some(path) = &args.svg {
        output::check_file(path, args.output.target.existing())?;
    }
    let spec = BenchSpec { is_quick: args.quick, seed: args.seed };
    let measured = bench(&spec, &mut Progress::on_terminal())?;
    let provenance = provenance(args, invocation);
    if let Some(path) = &args.svg {
        draw(&measured.rows, &provenance, path, args.output.target.existing())?;
    }
    output::write(&args.output.target, |out| match args.output.format() {
        Format::Json => {
            let document = BenchDocument { measured: &measured, provenance: &provenance };
            Ok(json_document(&document, out)?)
        }
        Format::Csv => Ok(Format::Csv
            .exporter()
            .export(&tables::of_all(&measured.rows).with_provenance(provenance), out)?),
        format @ (Format::Table | Format::Markdown) => {
            for table in sections(&measured, provenance) {
                format.exporter().export(&table, out)?;
                writeln!(out)?;
            }
            Ok(())
        }
    })
}

/// The JSON document with the whole result.
#[derive(Serialize)]
struct BenchDocument<'a> {
    #[serde(flatten)]
    measured: &'a Measurements,
    provenance: &'a Provenance,
}

fn provenance(args: &BenchPagesArgs, invocation: &Invocation) -> Provenance {
    Provenance { machine: host::line(), seeds: Some(Seeds::one(args.seed)), ..invocation.provenance() }
}

/// Tables for people, with the notes below the last table.
fn sections(Measurements { rows, notes }: &Measurements, provenance: Provenance) -> Vec<Table> {
    let mut tables = Vec::new();
    for operation in Operation::ALL {
        tables.extend(Load::all().into_iter().filter_map(|load| tables::of_huge(rows, operation, load)));
    }
    tables.push(tables::of_sizes(rows));
    let mut last = goals::table(rows);
    notes.iter().for_each(|note| last.note(note));
    tables.push(last.with_provenance(provenance));
    tables
}

fn draw(rows: &[Measurement], provenance: &Provenance, path: &Path, existing: Existing) -> Result<()> {
    let svg = figure::figure(rows).with_provenance(provenance).to_svg();
    let svg = svg.with_context(|| format!("{}: cannot be drawn", path.display()))?;
    output::write_file(path, existing, |out| Ok(out.write_all(svg.as_bytes())?))
}
