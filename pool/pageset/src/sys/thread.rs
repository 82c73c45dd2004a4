//! Sets the signal mask, the CPUs and the scheduling policy of the pool's thread. Otherwise the pool's thread
//! would inherit its signal mask, CPUs and policy from the thread that builds the pool.

use super::host;
pub(crate) use super::host::SignalsBlocked;

/// Blocks all signals for the calling thread, until the result is dropped.
pub(crate) fn block_signals() -> SignalsBlocked {
    host::block_signals()
}

/// Runs `start` with all signals blocked for the calling thread. A thread that `start` starts has all signals
/// blocked for its whole life. So the new thread never runs a signal handler of the program, and never takes
/// a signal that the program waits for.
pub(crate) fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    let _unblocks = block_signals();
    start()
}

/// Lets the calling thread run on all CPUs that the process's cpuset allows, and replaces a real-time policy
/// by the ordinary policy. If the system refuses a change, the thread keeps its old setting.
pub(crate) fn be_ordinary() {
    host::use_all_cpus();
    host::leave_real_time();
}
