//! Prints the current tables in each interval, on terminals of any kind.

use std::io::{self, Write as _};

use anyhow::Result;
use pageset_live::Monitor;

use super::args::TopArgs;
use super::frame::Frame;
use super::selection::Selection;
use super::size;
use crate::signals::Signals;

/// Control sequence that moves the cursor to the first line and clears the screen. Source: ECMA-48, CUP and
/// ED.
const CLEAR: &str = "\x1b[H\x1b[J";

/// Prints tables until a signal comes. `no_keys` is a line that says why keys do nothing.
pub(super) fn run(args: &TopArgs, mut monitor: Monitor, signals: &Signals, no_keys: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    let selection = Selection::default();
    write!(out, "{CLEAR}reading for {:?} ...", args.interval)?;
    out.flush()?;
    while signals.sleep(args.interval) {
        let view = monitor.step()?;
        // The terminal's last line stays empty, so that the terminal does not scroll.
        let (width, height) = (size::width(), size::height().saturating_sub(2));
        let lines = Frame::new(&view, &selection, width).lines(height).join("\n");
        write!(out, "{CLEAR}{lines}\n{no_keys}")?;
        out.flush()?;
    }
    Ok(())
}
