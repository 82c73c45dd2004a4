//! A barrier that restarts every restartable sequence of this process.

use super::host;

/// `MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ`. Source: the membarrier(2) manual page.
const RESTART: libc::c_int = 1 << 7;
/// `MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ`. Source: the membarrier(2) manual page.
const REGISTER: libc::c_int = 1 << 8;

/// Announces that this process will use [`restart_all`]. `false` if the kernel does not support it (before
/// 5.10).
pub(crate) fn register() -> bool {
    host::membarrier(REGISTER)
}

/// Restarts the sequence of every thread that is inside of one, and waits until all threads see the earlier
/// writes of the calling thread. `false` if the kernel refuses.
pub(crate) fn restart_all() -> bool {
    host::membarrier(RESTART)
}
