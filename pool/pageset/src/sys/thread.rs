//! Settings of the pool's thread: signals, CPUs, scheduling policy. The thread inherits them from the thread
//! that builds the pool, and must not keep them.

use super::host;
pub(crate) use super::host::SignalsBlocked;

/// Blocks all signals for the calling thread, until the result is dropped.
pub(crate) fn block_signals() -> SignalsBlocked {
    host::block_signals()
}

/// Runs `start` with all signals blocked for the calling thread. If `start` starts a thread, that thread
/// keeps them blocked for its whole life. So it never runs a signal handler of the program, and never takes a
/// signal that the program waits for.
pub(crate) fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    let _unblocks = block_signals();
    start()
}

/// Lets the calling thread run on all CPUs that the process's cpuset allows, and ends a real-time policy. If
/// the system refuses, nothing changes.
pub(crate) fn be_ordinary() {
    host::use_all_cpus();
    host::leave_real_time();
}
