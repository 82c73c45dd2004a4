//! `pageset bench faults` runs the page fault test. `args` has the options, `table` prints the result.

pub(crate) mod args;
mod table;

use anyhow::Result;
use pageset_report::{Format, json_document};
use pageset_study::pft::Test;

use crate::invocation::Invocation;
use crate::output;
use crate::progress::Progress;
use args::FaultsArgs;

/// Runs `pageset bench faults`.
pub(crate) fn execute(args: &FaultsArgs, invocation: &Invocation) -> Result<()> {
    let test = Test::new(&args.spec())?;
    let series = test.run(&mut Progress::on_terminal())?;
    let tables = table::PftTables::new(invocation.provenance(), &test, &series);
    let format = args.output.format();
    output::write(&args.output.target, |out| match format {
        Format::Json => Ok(json_document(&tables, out)?),
        Format::Csv => Ok(format.exporter().export(&tables.runs, out)?),
        Format::Table | Format::Markdown => {
            for table in tables.for_people() {
                format.exporter().export(table, out)?;
                writeln!(out)?;
            }
            Ok(())
        }
    })
}
