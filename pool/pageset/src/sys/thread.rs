//! Signals, CPUs and policy of the pool's thread. It inherits them from the thread that builds the pool, and must not keep them.

use super::host;

/// Runs `start` with all signals blocked for this thread. A thread that it starts has them blocked for its whole life, so it
/// never runs a handler of the program, and never takes a signal that the program waits for.
pub(crate) fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    let _unblocks = host::block_signals();
    start()
}

/// Makes this thread an ordinary one: on all CPUs that the process's cpuset allows, and without a real-time policy. What
/// the system refuses stays as it is.
pub(crate) fn be_ordinary() {
    host::use_all_cpus();
    host::leave_real_time();
}
