//! `pageset layout`: the layout of a trace's machine as a file to edit.

use anyhow::{Result, anyhow};
use pageset_trace::TraceReader as _;

use crate::args::LayoutArgs;
use crate::layouts::{self, LayoutOrigin, LayoutSummary};
use crate::output;
use crate::source::{self, Source};

pub(crate) fn run(args: &LayoutArgs) -> Result<()> {
    let source = Source::open(&args.source)?;
    let (machine, origin) = layouts::find(&source, &args.source, None)?;
    let text =
        machine.to_toml().map_err(|problem| anyhow!("the machine cannot be written as TOML: {problem}"))?;
    output::write(&args.target, |out| {
        writeln!(out, "# {}: {}", source::title(source.info()), LayoutSummary::new(&machine, origin).line())?;
        if origin == LayoutOrigin::Guessed {
            writeln!(
                out,
                "# The trace does not describe its machine. CPUs and frames are those that occur in it; check"
            )?;
            writeln!(out, "# zones, watermarks and caches against /proc/zoneinfo and lscpu of the machine.")?;
        }
        out.write_all(text.as_bytes())?;
        Ok(())
    })
}
