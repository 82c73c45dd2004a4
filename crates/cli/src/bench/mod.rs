//! `pageset bench`: what operations cost on this machine.

mod args;
pub(crate) mod pageops;

use anyhow::Result;

pub(crate) use args::{BenchArgs, BenchPageopsArgs};

use args::Benchmark;

pub(crate) fn run(args: &BenchArgs) -> Result<()> {
    match &args.benchmark {
        Benchmark::Pageops(args) => pageops::run(args),
    }
}
