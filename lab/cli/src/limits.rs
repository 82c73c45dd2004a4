//! Turns the limit on file sizes, which would kill the process, into an error.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Once};

use signal_hook::consts::SIGXFSZ;
use signal_hook::flag;

/// Makes a write past the limit of file sizes (`ulimit -f`) return an error, like a write to a full disk.
/// Without a call of `make_errors`, the kernel ends the process by a signal at such a write, and a temporary
/// file stays half written.
///
/// The function sets a handler for the signal (SIGXFSZ), instead of ignoring the signal. A recorded command
/// inherits an ignored signal, but not a handler.
pub(crate) fn make_errors() {
    // Set the handler only once, because Python may run several commands in one process.
    static ONCE: Once = Once::new();
    // If the handler cannot be set, a write past the limit kills this process, as it kills other programs.
    ONCE.call_once(|| drop(flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))));
}
