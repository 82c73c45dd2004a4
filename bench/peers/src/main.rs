//! The same page-allocation work on pageset and on its peers.
//!
//! The program starts itself once for each measurement. The parent goes through the jobs. For each job it
//! does several rounds, and each round goes through all targets. A child opens one target, does one job and
//! prints its values. So every measurement begins with a fresh heap, allocators never share a process's
//! memory, and a crashing peer costs one measurement.
//!
//! - `target`: one file per allocator, behind the trait `Target`.
//! - `row`: one file per kind of work, and the list of jobs and rows.
//! - `child`, `runner`: the two sides of a measurement.
//! - `document`, `table`, `markdown`, `goals`, `machine`: the output.
//! - `args`, `effort`: command line, and the length of measurements.
//! - `memory`, `shuffle`, `team`, `batches`: parts of rows.

mod args;
mod batches;
mod child;
mod document;
mod effort;
mod goals;
mod machine;
mod markdown;
mod memory;
mod row;
mod runner;
mod shuffle;
mod table;
mod target;
mod team;

use anyhow::Context as _;
use clap::Parser as _;

fn main() -> anyhow::Result<()> {
    let args = args::Args::parse();
    if let Some(order) = args.child_order()? {
        return child::run(&order);
    }
    let jobs = row::selected(&args.only)?;
    let targets = target::selected(&args.allocator)?;
    let machine = machine::Machine::here();
    let outcome = runner::run(&jobs, &targets, args.effort(), args.rounds())?;
    let document = document::Document::new(&args, machine, &outcome);
    let text = if args.markdown { markdown::text(&document) } else { table::text(&document) };
    print!("{text}");
    if let Some(path) = &args.json {
        let text = serde_json::to_string_pretty(&document).context("the results are plain values")?;
        std::fs::write(path, text + "\n").with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
