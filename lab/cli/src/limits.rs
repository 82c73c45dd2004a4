//! Makes a limit that a user has set for this process an error, instead of this process's end.

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
    // Python calls more than one command in a process.
    static ONCE: Once = Once::new();
    // If the handler cannot be set, a limit ends the process, as it ends any other.
    ONCE.call_once(|| drop(flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))));
}
