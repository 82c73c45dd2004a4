//! Turns a limit that kills the process into an error.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Once};

use signal_hook::consts::SIGXFSZ;
use signal_hook::flag;

/// After this call, a write past the limit of file sizes (`ulimit -f`) fails, like a write to a full disk.
/// Without it the kernel ends the process by a signal, and a half-written file stays beside the result.
///
/// The signal gets a handler instead of being ignored: recorded commands inherit an ignored signal, but not a
/// handler.
pub(crate) fn make_errors() {
    // Python runs several commands in one process.
    static ONCE: Once = Once::new();
    // If the handler cannot be set, the limit kills this process, as it kills any other.
    ONCE.call_once(|| drop(flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))));
}
