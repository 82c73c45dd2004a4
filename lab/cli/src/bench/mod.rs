//! `pageset bench` measures what operations on memory cost on this machine. `faults` touches memory, and
//! `pages` clears and copies pages. `machine` writes a machine file, or measures the cost of a zone visit
//! with `visit_cost`.

pub(crate) mod args;
pub(crate) mod faults;
mod machine;
pub(crate) mod pages;
mod visit_cost;

use anyhow::Result;

use crate::invocation::Invocation;
use args::{BenchArgs, Benchmark};

pub(crate) fn run(args: &BenchArgs, invocation: &Invocation) -> Result<()> {
    match &args.benchmark {
        Benchmark::Faults(args) => faults::execute(args, invocation),
        Benchmark::Pages(args) if args.choose => pages::choose(args, invocation),
        Benchmark::Pages(args) => pages::run(args, invocation),
        Benchmark::Machine(args) => machine::run(args, invocation),
    }
}
