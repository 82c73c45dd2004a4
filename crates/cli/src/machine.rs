//! `pageset machine`: the machine of a trace as a file to edit.

use anyhow::{Result, anyhow};
use pageset_trace::TraceReader as _;

use crate::args::MachineArgs;
use crate::machines::{self, MachineOrigin, MachineSummary};
use crate::output;
use crate::source::{self, Source};

pub(crate) fn run(args: &MachineArgs) -> Result<()> {
    let source = Source::open(&args.source)?;
    let (machine, origin) = machines::find(&source, &args.source, None)?;
    let text =
        machine.to_toml().map_err(|problem| anyhow!("the machine cannot be written as TOML: {problem}"))?;
    output::write(&args.target, |out| {
        writeln!(
            out,
            "# {}: {}",
            source::title(source.info()),
            MachineSummary::new(&machine, origin).line()
        )?;
        if origin == MachineOrigin::Guessed {
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
