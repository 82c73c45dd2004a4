//! A barrier that restarts every restartable sequence of this process.

use super::host;

/// `MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ`. Source: the membarrier(2) manual page.
const RESTART: libc::c_int = 1 << 7;
/// `MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ`. Source: the membarrier(2) manual page.
const REGISTER: libc::c_int = 1 << 8;

/// Announces that this process will use [`restart_all`]. Returns `false` if the kernel does not support the
/// barrier for sequences (before Linux 5.10).
pub(crate) fn register() -> bool {
    host::membarrier(REGISTER)
}

/// Restarts every sequence that a thread of this process is executing. When the call returns, all threads see
/// the calling thread's earlier writes. Returns `false` if the kernel refuses the call.
pub(crate) fn restart_all() -> bool {
    host::membarrier(RESTART)
}
