//! The barrier that restarts every restartable sequence of this process that is under way.

use super::host;

/// `MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ`. Source: the membarrier(2) manual page.
const RESTART: libc::c_int = 1 << 7;
/// `MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ`. Source: the membarrier(2) manual page.
const REGISTER: libc::c_int = 1 << 8;

/// Announces that this process will use [`restart_all`]. `false` if the kernel has no such thing (before 5.10).
pub(crate) fn register() -> bool {
    host::membarrier(REGISTER)
}

/// Makes every thread that is inside a restartable sequence begin it again, and waits until they all have seen what
/// this thread wrote before. `false` if the kernel refuses.
pub(crate) fn restart_all() -> bool {
    host::membarrier(RESTART)
}
