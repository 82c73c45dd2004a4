//! Turns the limit on file sizes, which would kill the process, into an error.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Once};

use signal_hook::consts::SIGXFSZ;
use signal_hook::flag;

/// After this call, a write past the limit of file sizes (`ulimit -f`) returns an error, like a write to a
/// full disk. Without this call, the kernel would end the process by a signal, and leave a temporary file
/// that is half written.
///
/// The signal (SIGXFSZ) gets a handler. If the signal were ignored, a recorded command would ignore it too. A
/// recorded command does not inherit a handler.
pub(crate) fn make_errors() {
    // Set the handler only once, because Python may run several commands in one process.
    static ONCE: Once = Once::new();
    // If the handler cannot be set, a write past the limit kills this process, as it kills other programs.
    ONCE.call_once(|| drop(flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))));
}
