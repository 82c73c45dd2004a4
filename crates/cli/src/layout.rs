//! `pageset layout`: the layout of a trace's machine, or of a copy of `/proc/zoneinfo`, as a file to edit.

use anyhow::{Result, anyhow};
use pageset_trace::{Layout, TraceReader as _};

use crate::args::LayoutArgs;
use crate::hint;
use crate::layouts::{self, LayoutOrigin, LayoutSummary};
use crate::options::MachineArgs;
use crate::output;
use crate::source::{self, Source};

pub(crate) fn run(args: &LayoutArgs) -> Result<()> {
    let copy = args.source.trace.as_deref().filter(|path| path.is_file());
    if let Some(path) = copy
        && pageset_trace::is_zoneinfo(path).map_err(hint::of_trace)?
    {
        let machine = layouts::load(path, &args.facts.options())?;
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
        return write(args, &name, &machine, LayoutOrigin::Copied);
    }
    let source = Source::open(&args.source)?;
    let given = MachineArgs { layout: None, facts: args.facts.clone() };
    let (machine, origin) = layouts::find(&source, &args.source, &given)?;
    write(args, &source::title(source.info()), &machine, origin)
}

fn write(args: &LayoutArgs, name: &str, machine: &Layout, origin: LayoutOrigin) -> Result<()> {
    let text =
        machine.to_toml().map_err(|problem| anyhow!("the machine cannot be written as TOML: {problem}"))?;
    output::write(&args.target, |out| {
        writeln!(out, "# {name}: {}", LayoutSummary::new(machine, origin).line())?;
        if origin == LayoutOrigin::Guessed {
            writeln!(
                out,
                "# The trace does not describe its machine. CPUs and frames are those that occur in it; check"
            )?;
            writeln!(out, "# zones, watermarks and caches against /proc/zoneinfo and lscpu of the machine.")?;
        }
        if !machine.assumed.is_empty() {
            writeln!(
                out,
                "# `assumed`: what the file does not say. Correct what is wrong, and delete its sentence."
            )?;
        }
        out.write_all(text.as_bytes())?;
        Ok(())
    })
}
