//! `pageset top` shows what the page sets of this machine do. `args` has the options. `tables` turns the
//! readings of one interval, called a *view*, into tables. `once` prints the tables of one interval. `frame`
//! makes the lines of a screen from the page sets that `selection` chose, and `plain` or `screen` shows the
//! lines of the screen.

pub(crate) mod args;
mod frame;
mod once;
mod plain;
#[cfg(test)]
mod sample;
#[cfg(feature = "screen")]
mod screen;
mod selection;
mod size;
mod tables;

use std::io::{self, IsTerminal as _};

use anyhow::{Result, bail};
use pageset_live::{Monitor, Proc};
use pageset_measure::host::Settings;

use crate::args::exit_with_usage;
use crate::invocation::Invocation;
use crate::left;
use crate::signals::Signals;
use args::TopArgs;

pub(crate) fn run(args: &TopArgs, invocation: &Invocation) -> Result<()> {
    if let Some(problem) = args.problem() {
        exit_with_usage(problem);
    }
    if !args.once && !io::stdout().is_terminal() {
        bail!("the standard output is not a terminal; use --once to write one interval");
    }
    left::offer(&Settings::of_this_machine())?;
    let signals = Signals::watch()?;
    let monitor = Monitor::start(Proc::at(&args.proc))?;
    let ended = if args.once {
        once::run(args, monitor, &signals, invocation)
    } else {
        show(args, monitor, &signals)
    };
    signals.pass_on()?;
    ended
}

#[cfg(feature = "screen")]
fn show(args: &TopArgs, monitor: Monitor, signals: &Signals) -> Result<()> {
    // Keys are read from the standard input.
    if io::stdin().is_terminal() {
        screen::run(args, monitor, signals)
    } else {
        plain::run(
            args,
            monitor,
            signals,
            "Keys do nothing: the standard input is not a terminal. Ctrl-C ends.",
        )
    }
}

#[cfg(not(feature = "screen"))]
fn show(args: &TopArgs, monitor: Monitor, signals: &Signals) -> Result<()> {
    plain::run(
        args,
        monitor,
        signals,
        "Keys do nothing in this build; they work in the default build. Ctrl-C ends.",
    )
}
