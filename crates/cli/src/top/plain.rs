//! A table that is written again in each interval, on any terminal.

use std::io::{self, Write as _};

use anyhow::Result;
use pageset_live::Monitor;

use super::TopArgs;
use super::frame::Frame;
use super::selection::Selection;
use crate::signals::Signals;

/// Goes to the first line, and clears what is below. Source: ECMA-48, CUP and ED.
const CLEAR: &str = "\x1b[H\x1b[J";

pub(super) fn run(args: &TopArgs, mut monitor: Monitor, signals: &Signals) -> Result<()> {
    let mut out = io::stdout().lock();
    let selection = Selection::default();
    write!(out, "{CLEAR}reading for {:?} ...", args.interval)?;
    out.flush()?;
    while signals.sleep(args.interval) {
        let view = monitor.step()?;
        // The last line stays free, so that nothing scrolls.
        let height = super::height().saturating_sub(1);
        let lines = Frame::new(&view, &selection).lines(height).join("\n");
        write!(out, "{CLEAR}{lines}")?;
        out.flush()?;
    }
    Ok(())
}
