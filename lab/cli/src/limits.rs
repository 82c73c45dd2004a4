//! A limit that a user has set for this process is an error, and not its end.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Once};

use signal_hook::consts::SIGXFSZ;
use signal_hook::flag;

/// A write past the limit of file sizes (`ulimit -f`) then fails, like one to a full disk. The kernel would end the process
/// by a signal, with a half-written file beside the result.
///
/// The signal has a handler and is not ignored: commands that are recorded would inherit that, and not a handler.
pub(crate) fn make_errors() {
    // Python calls more than one command in a process.
    static ONCE: Once = Once::new();
    // Without the handler a limit ends the process, as it does any other.
    ONCE.call_once(|| drop(flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))));
}
