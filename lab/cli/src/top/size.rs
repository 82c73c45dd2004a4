//! The size of the terminal.

use std::io;

use super::frame;

/// Lines to assume for a terminal whose size is not known.
const HEIGHT: usize = 24;

/// Columns of the terminal. Where the output is no terminal, as many as every table needs.
pub(super) fn width() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stdout());
    size.ok().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0).unwrap_or(frame::WIDTH)
}

/// Lines of the terminal.
pub(super) fn height() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stdout());
    size.ok().map(|size| usize::from(size.ws_row)).filter(|lines| *lines > 0).unwrap_or(HEIGHT)
}
