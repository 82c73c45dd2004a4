//! The size of the terminal.

use std::io;

use super::frame;

/// Number of lines that is assumed for a terminal whose size is not known.
const HEIGHT: usize = 24;

/// The number of columns of the terminal. If the output is not a terminal, returns [`frame::WIDTH`].
pub(super) fn width() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stdout());
    size.ok().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0).unwrap_or(frame::WIDTH)
}

/// The number of lines of the terminal.
pub(super) fn height() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stdout());
    size.ok().map(|size| usize::from(size.ws_row)).filter(|lines| *lines > 0).unwrap_or(HEIGHT)
}
