//! `pageset bench pageops`: what clearing and copying pages costs, and what it costs those who touch them afterwards.
//!
//! `contender` says what is compared, `load` what the other CPUs do, `memory` and `clock` what is measured with; `grid`
//! measures huge pages, on CPUs that wait for each other at a `gate`, `sizes` the others. `row` is the result; `tables`,
//! `goals` and `figure` show it.

pub(crate) mod clock;
pub(crate) mod contender;
mod figure;
mod gate;
mod goals;
pub(crate) mod grid;
pub(crate) mod load;
pub(crate) mod memory;
mod row;
mod sizes;
mod tables;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use pageset_pageops::{Isa, Kernel, Method};
use pageset_report::{Format, Provenance, Table, json_document};
use serde::Serialize;

use super::BenchPageopsArgs;
use crate::invocation::Invocation;
use crate::output::{self, Existing};
use crate::progress::Progress;
use crate::this_machine;
use contender::Operation;
use grid::Rounds;
use load::{EndOnDrop, Load};
use row::Row;

/// Rounds of a full run: its medians are of as many samples.
const ROUNDS: usize = 100;
/// Rounds of a quick run.
const ROUNDS_QUICK: usize = 10;
/// Rounds of single base pages, each of 512 operations.
const ROUNDS_SMALL: usize = 600;
/// Rounds of gigantic pages.
const ROUNDS_GIGANTIC: usize = 5;

pub(crate) fn run(args: &BenchPageopsArgs, invocation: &Invocation) -> Result<()> {
    if let Some(path) = &args.svg {
        output::check_file(path, args.output.target.existing())?;
    }
    let mut notes = notes();
    let rows = measure(args, &mut notes)?;
    let provenance = provenance(args, invocation);
    if let Some(path) = &args.svg {
        draw(&rows, &provenance, path, args.output.target.existing())?;
    }
    output::write(&args.output.target, |out| match args.output.format() {
        Format::Json => {
            let document = Document { rows: &rows, notes: &notes, provenance: &provenance };
            Ok(json_document(&document, out)?)
        }
        Format::Csv => {
            Ok(Format::Csv.exporter().export(&tables::of_all(&rows).with_provenance(provenance), out)?)
        }
        format @ (Format::Table | Format::Markdown) => {
            for table in sections(&rows, &notes, provenance) {
                format.exporter().export(&table, out)?;
                writeln!(out)?;
            }
            Ok(())
        }
    })
}

/// The whole result in JSON.
#[derive(Serialize)]
struct Document<'a> {
    rows: &'a [Row],
    notes: &'a [String],
    provenance: &'a Provenance,
}

fn provenance(args: &BenchPageopsArgs, invocation: &Invocation) -> Provenance {
    Provenance { machine: this_machine::line(), seed: Some(args.seed), ..invocation.provenance() }
}

/// What there is, and what is missing.
fn notes() -> Vec<String> {
    let method = Method::chosen();
    let mut notes = vec![format!(
        "The library's choice here: {}, {}, {} base pages around the target in the cache.",
        method.order().name(),
        method.kernel().isa().name(),
        2 * method.radius_pages() + 1,
    )];
    let missing: Vec<_> =
        Isa::ALL.into_iter().filter(|isa| Kernel::new(*isa).is_none()).map(Isa::name).collect();
    if !missing.is_empty() {
        notes.push(format!("Skipped, since this CPU has none: {}.", missing.join(", ")));
    }
    if Load::all().len() == 1 {
        notes.push("Skipped, since this machine has one CPU: loads other than alone.".to_owned());
    }
    notes
}

fn measure(args: &BenchPageopsArgs, notes: &mut Vec<String>) -> Result<Vec<Row>> {
    let rounds = Rounds { rounds: if args.quick { ROUNDS_QUICK } else { ROUNDS }, seed: args.seed };
    let loads = Load::all();
    let total: u64 =
        Operation::ALL.map(|operation| rounds.operations(operation)).iter().sum::<u64>() * loads.len() as u64;
    let done = AtomicU64::new(0);
    let mut rows = Vec::new();
    let mut all_huge = true;
    for operation in Operation::ALL {
        for load in &loads {
            let (measured, is_huge) =
                with_progress(&done, total, || grid::measure(operation, *load, rounds, &done))?;
            rows.extend(measured);
            all_huge &= is_huge;
        }
    }
    for operation in Operation::ALL {
        rows.extend(sizes::small(operation, if args.quick { ROUNDS_SMALL / 5 } else { ROUNDS_SMALL })?);
        if !args.quick {
            match sizes::gigantic(operation, ROUNDS_GIGANTIC)? {
                Some(measured) => rows.extend(measured),
                None => {
                    notes.push(format!("Skipped: {} 1 GiB, which needs 3 GiB of memory.", operation.name()))
                }
            }
        }
    }
    if !all_huge {
        let remedy = "write `madvise` to /sys/kernel/mm/transparent_hugepage/enabled";
        notes.push(format!(
            "The system backs the pages with base pages, so the TLB is part of all times: {remedy}."
        ));
    }
    Ok(rows)
}

/// Runs `work` while another thread shows how much of it is done. It looks ten times a second, so it does not disturb.
fn with_progress<R>(done: &AtomicU64, total: u64, work: impl FnOnce() -> R) -> R {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut progress = Progress::new("measuring", "operations", Some(total));
            while !is_over.load(Relaxed) {
                progress.update(done.load(Relaxed));
                thread::park_timeout(Duration::from_millis(100));
            }
        });
        // The scope waits for that thread, so it must end even if the work panics.
        let _end = EndOnDrop(&is_over);
        work()
    })
}

/// Tables for people, the notes below the last.
fn sections(rows: &[Row], notes: &[String], provenance: Provenance) -> Vec<Table> {
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

fn draw(rows: &[Row], provenance: &Provenance, path: &Path, existing: Existing) -> Result<()> {
    let svg = figure::figure(rows).with_provenance(provenance).to_svg();
    let svg = svg.with_context(|| format!("{}: cannot be drawn", path.display()))?;
    output::write_file(path, existing, |out| Ok(out.write_all(svg.as_bytes())?))
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    /// The thread that shows progress was never told, and waited for.
    #[test]
    fn work_that_panics_ends() {
        let done = AtomicU64::new(0);
        let work = || with_progress(&done, 1, || panic!("the work fails"));
        assert!(catch_unwind(AssertUnwindSafe(work)).is_err());
    }
}
