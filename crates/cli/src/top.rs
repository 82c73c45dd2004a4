//! `pageset top`: what the page sets of this machine do. `args` says what can be typed, `tables` turns a view into tables,
//! `once` prints one.

mod args;
mod once;
mod tables;

use anyhow::Result;
use pageset_live::{Monitor, Proc};

use crate::args::refuse;
use crate::invocation::Invocation;
pub(crate) use args::TopArgs;

pub(crate) fn run(args: &TopArgs, invocation: &Invocation) -> Result<()> {
    if let Some(problem) = args.problem() {
        refuse(problem);
    }
    let monitor = Monitor::start(Proc::at(&args.proc))?;
    once::run(args, monitor, invocation)
}
