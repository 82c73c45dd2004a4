//! `pageset pft`: the page fault test. `args` says what can be typed, `table` prints what was found.

mod args;
mod table;

use anyhow::Result;
use pageset_lab::pft::Test;
use pageset_report::{Format, json_document};

use crate::invocation::Invocation;
use crate::output;
use crate::progress::Progress;
pub(crate) use args::PftArgs;

/// The subcommand.
pub(crate) fn execute(args: &PftArgs, invocation: &Invocation) -> Result<()> {
    let test = Test::new(&args.spec())?;
    let series = test.run(&mut Progress::on_terminal())?;
    let document = table::Document::new(invocation.provenance(), &test, &series);
    let format = args.output.format();
    output::write(&args.output.target, |out| match format {
        Format::Json => Ok(json_document(&document, out)?),
        Format::Csv => Ok(format.exporter().export(&document.runs, out)?),
        Format::Table | Format::Markdown => {
            for table in document.for_people() {
                format.exporter().export(table, out)?;
                writeln!(out)?;
            }
            Ok(())
        }
    })
}
