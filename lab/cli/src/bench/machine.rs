//! `pageset bench machine` measures the cost of a zone visit. With `-o` or `--check`, it measures what the
//! steps of this project's allocator cost, and writes or checks a machine file for `pageset simulate`.

use std::path::PathBuf;

use anyhow::Result;
use clap::ValueHint;
use pageset_measure::host;
use pageset_report::{Format, Provenance};
use pageset_study::machine::{self, Measured};
use pageset_study::simulate::parse_machine;
use pageset_trace::read_description;

use super::visit_cost;
use crate::invocation::Invocation;
use crate::options::OutputArgs;
use crate::output;

const READING: &str = "\
How to read this:
  Without an option, the command measures what a visit to a zone costs this
  kernel, and needs root. It runs a loop of page faults under two values of
  vm.percpu_pagelist_high_fraction, in seven pairs of runs, and compares the CPU
  time. The setting is put back at the end, also after Ctrl-C. The cost is saved
  in $XDG_STATE_HOME/pageset/visit-cost.json, or below ~/.local/state. Later
  recordings include the cost, and `pageset advise` uses it.

  With -o, the result is a machine file: pass it to `pageset simulate --machine
  FILE`. The file says for each number whether it was measured or guessed. Times
  are those of this project's allocator in user space, not of a kernel.

  With --check, workloads run on threads of this machine and on the virtual CPUs
  of its machine file, and each row compares the two. A ratio of 1.00 is a
  perfect prediction; rows outside 0.75 to 1.25 are marked. Other programs that
  run meanwhile make both the measured costs and the comparison wrong.

Examples:
  sudo pageset bench machine
  pageset bench machine -o here.toml
  pageset simulate --machine here.toml --workload page_fault1
  pageset bench machine --check";

/// Measure this machine, to simulate it or to learn the cost of a zone visit
///
/// Other programs must not run during the measurement. Without -o and --check, measures the cost of a zone
/// visit; this measurement takes about a minute and needs root. With -o, writes a machine file for
/// `pageset simulate`. With --check, compares this machine with a simulation of this machine.
#[derive(Debug, clap::Args)]
#[command(after_long_help = READING)]
pub(crate) struct MachineCostsArgs {
    /// Run workloads here and on a simulation of this machine, and compare
    #[arg(long)]
    check: bool,
    /// Check this machine file instead of measuring first
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "check")]
    machine: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(args: &MachineCostsArgs, invocation: &Invocation) -> Result<()> {
    if !args.check && args.output.target.output.is_none() {
        return visit_cost::run(invocation);
    }
    let (text, measured) = match &args.machine {
        Some(path) => (read_description(path)?, Measured::Before),
        None => (machine::measure()?, Measured::Now),
    };
    let origin =
        args.machine.as_ref().map_or("of this machine".to_owned(), |path| path.display().to_string());
    let parsed = parse_machine(&text, &origin)?;
    if !args.check {
        return output::write(&args.output.target, |out| Ok(out.write_all(text.as_bytes())?));
    }
    let table = machine::compare(parsed, measured)?
        .with_provenance(Provenance { machine: host::line(), ..invocation.provenance() });
    output::write(&args.output.target, |out| match args.output.format() {
        Format::Json => Ok(pageset_report::json_document(&table, out)?),
        format => Ok(format.exporter().export(&table, out)?),
    })
}
