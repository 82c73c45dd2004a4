//! `pageset convert --to layout` writes the layout of a recording's machine, or of a copy of
//! `/proc/zoneinfo`, as a file that users can edit.

use anyhow::{Result, anyhow};
use pageset_trace::{Layout, TraceReader as _};

use crate::convert::args::ConvertArgs;
use crate::hint;
use crate::layouts::{self, LayoutOrigin, LayoutSummary};
use crate::options::{MachineArgs, SourceArgs, TargetArgs};
use crate::output;
use crate::source::{self, Source};

pub(super) fn run(args: &ConvertArgs) -> Result<()> {
    let facts = &args.machine.facts;
    let target = TargetArgs::to(args.output.clone(), args.force);
    if args.input.is_file() && pageset_trace::is_zoneinfo(&args.input).map_err(hint::of_trace)? {
        let machine = layouts::load(&args.input, &facts.options())?;
        let name = args.input.file_name().unwrap_or(args.input.as_os_str()).to_string_lossy();
        return write(&target, &name, &machine, LayoutOrigin::Copied);
    }
    let from = SourceArgs { recording: Some(args.input.clone()), opening: args.opening.clone() };
    let source = Source::open(&from)?;
    let given = MachineArgs { layout: None, facts: facts.clone() };
    let (machine, origin) = layouts::find(&source, &from, &given)?;
    write(&target, &source::title(source.info()), &machine, origin)
}

fn write(target: &TargetArgs, name: &str, machine: &Layout, origin: LayoutOrigin) -> Result<()> {
    let text =
        machine.to_toml().map_err(|problem| anyhow!("the machine cannot be written as TOML: {problem}"))?;
    output::write(target, |out| {
        writeln!(out, "# {name}: {}", LayoutSummary::new(machine, origin).line())?;
        if origin == LayoutOrigin::Guessed {
            writeln!(
                out,
                "# The recording does not describe its machine. The layout has the CPUs and frames that occur in events."
            )?;
            writeln!(
                out,
                "# Compare zones, watermarks and caches with /proc/zoneinfo and the output of lscpu \
                           on the machine."
            )?;
        }
        if !machine.assumed.is_empty() {
            writeln!(
                out,
                "# `assumed`: facts that the file lacks. If you correct a fact, delete its sentence."
            )?;
        }
        out.write_all(text.as_bytes())?;
        Ok(())
    })
}
