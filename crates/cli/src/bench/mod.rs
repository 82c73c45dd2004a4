//! `pageset bench`: what operations cost on this machine.

mod args;
pub(crate) mod pageops;

use anyhow::Result;

pub(crate) use args::{BenchArgs, BenchPageopsArgs};

use crate::invocation::Invocation;
use args::Benchmark;

pub(crate) fn run(args: &BenchArgs, invocation: &Invocation) -> Result<()> {
    match &args.benchmark {
        Benchmark::Pageops(args) => pageops::run(args, invocation),
    }
}
